//! Which `MultiClusterServices` there are, what each asks for, and what has to be written on it. No socket, no clock.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::names::{event, finalizer, label};
use atoll_api::types::MultiClusterService;
use atoll_engine::intent::CrossCluster;
use atoll_engine::names::ServiceKey;
use kube::ResourceExt;
use serde_json::Value;

use super::edge::{self, Asked};
use super::show::{Is, Shown, show};
use super::view::{Contact, View};
use crate::api::debounce::Unshown;
use crate::policies::{Copied, Standing};
use crate::services::mirror;

/// What is to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// The finalizer and the permanent id, onto this state of the object.
    Hold { key: ServiceKey, uid: String, revision: String, finalizers: Vec<String>, id: Option<String> },
    /// No finalizer of ours any more: nothing is left to clean up.
    Release { key: ServiceKey, uid: String, revision: String, finalizers: Vec<String> },
    /// The status.
    Status { key: ServiceKey, uid: String, status: Box<Value> },
    /// Copies of slices that were exported through the hub.
    Mirror(mirror::Command),
    /// Something that happened.
    Tell { key: ServiceKey, uid: String, warning: bool, reason: &'static str, message: String },
}

/// What follows for the engine and for the Service itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Wish {
    /// It asks for this, by the word of this author.
    Cross(ServiceKey, CrossCluster, Option<String>),
    /// It is being deleted: nothing is asked for, and what was brought goes.
    End(ServiceKey),
    /// It is gone, or asks for nothing of ours.
    Gone(ServiceKey),
}

#[derive(Debug)]
struct Item {
    uid: String,
    generation: i64,
    revision: String,
    finalizers: Vec<String>,
    deleting: bool,
    /// None if it is of a type that is not ours.
    asked: Option<Asked>,
    copied: Copied,
    /// What was last shown, and the status as it was written.
    shown: Option<Shown>,
    status: Value,
    /// What was told last, by reason.
    told: BTreeMap<&'static str, String>,
    /// The state on which the finalizer or the id was asked for last: asked once per state.
    held: String,
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct MultiClusterServices {
    items: BTreeMap<ServiceKey, Item>,
    /// What is under way, and is not shown before it is done or has been so for a while.
    unshown: Unshown<ServiceKey>,
    balances: bool,
    /// What has to be looked at.
    news: BTreeSet<ServiceKey>,
}

impl MultiClusterServices {
    /// With nothing on it; `balances` if load balancers are ours to make.
    pub(crate) fn new(balances: bool) -> Self {
        Self { items: BTreeMap::new(), unshown: Unshown::default(), balances, news: BTreeSet::new() }
    }

    /// One of them was seen; `standing` is its author's. `id`: a fresh permanent id, in case that it has none.
    pub(crate) fn seen(
        &mut self,
        object: &MultiClusterService,
        standing: Standing,
        id: &str,
    ) -> (Option<Wish>, Vec<Command>) {
        let Some(key) = edge::key(object) else { return (None, Vec::new()) };
        let asked = edge::asked(object, self.balances).map(|asked| asked.by(standing));
        let before = self.items.remove(&key);
        let uid = object.uid().unwrap_or_default();
        let same = before.filter(|item| item.uid == uid);
        let was = same.as_ref().map(|item| (item.deleting, item.asked.clone()));
        let deleting = object.metadata.deletion_timestamp.is_some();
        let status = object.status.as_ref().and_then(|status| serde_json::to_value(status).ok());
        let mut item = same.unwrap_or_else(|| Item {
            uid,
            generation: 0,
            revision: String::new(),
            finalizers: Vec::new(),
            deleting,
            asked: None,
            copied: Copied::Unknown,
            shown: None,
            status: status.unwrap_or_default(),
            told: BTreeMap::new(),
            held: String::new(),
        });
        item.generation = object.metadata.generation.unwrap_or_default();
        item.revision = object.resource_version().unwrap_or_default();
        item.finalizers = object.finalizers().to_vec();
        (item.deleting, item.asked) = (deleting, asked.clone());
        let mut commands = Vec::new();
        let ours =
            asked.is_some() || item.finalizers.iter().any(|one| one == finalizer::MULTI_CLUSTER_SERVICE);
        if let Some(asked) = asked.as_ref().filter(|_| !deleting && item.held != item.revision) {
            // What a balancer needs cleaning up for has a finalizer of its own.
            commands.extend(hold(&key, &mut item, object, id, !asked.intent.balanced));
        }
        let wish = match (asked, deleting) {
            (Some(asked), false) if was == Some((false, Some(asked.clone()))) => None,
            (Some(asked), false) => Some(Wish::Cross(key.clone(), asked.intent, asked.author)),
            (_, true) if ours && was.as_ref().is_some_and(|(deleting, _)| *deleting) => None,
            (_, true) if ours => Some(Wish::End(key.clone())),
            (None, false) | (_, true) => Some(Wish::Gone(key.clone())),
        };
        // One that is being deleted is looked at in every state: a release that met a newer state has to be asked for again.
        if deleting || matches!(wish, Some(Wish::Cross(..) | Wish::End(_))) {
            self.news.insert(key.clone());
        }
        self.items.insert(key, item);
        (wish, commands)
    }

    /// The rights of its author are others now; what it asks for from here on, if that is something else.
    pub(crate) fn stands(&mut self, key: &ServiceKey, standing: Standing) -> Option<CrossCluster> {
        let item = self.items.get_mut(key).filter(|item| !item.deleting)?;
        let before = item.asked.take()?;
        let asked = item.asked.insert(before.clone().by(standing));
        if *asked == before {
            return None;
        }
        self.news.insert(key.clone());
        Some(asked.intent.clone())
    }

    /// Whether it has a load balancer of ours, as [`edge`] has decided.
    pub(crate) fn has_balancer(&self, key: &ServiceKey) -> bool {
        let asked = self.items.get(key).and_then(|item| item.asked.as_ref());
        asked.is_some_and(|asked| asked.intent.balanced)
    }

    /// One of them is gone.
    pub(crate) fn gone(&mut self, namespace: &str, name: &str) -> Option<Wish> {
        let key = ServiceKey::parse(namespace, name).ok()?;
        self.unshown.done(&key);
        self.news.remove(&key);
        self.items.remove(&key).map(|_| Wish::Gone(key))
    }

    /// What became of the Service itself.
    pub(crate) fn copied(&mut self, key: ServiceKey, copied: Copied) {
        if let Some(item) = self.items.get_mut(&key).filter(|item| item.copied != copied) {
            item.copied = copied;
            self.news.insert(key);
        }
    }

    /// What has to be looked at since the last time.
    pub(crate) fn news(&mut self) -> BTreeSet<ServiceKey> {
        std::mem::take(&mut self.news)
    }

    /// A while has passed: what has been under way for all of it has to be looked at.
    pub(crate) fn overdue(&mut self) -> BTreeSet<ServiceKey> {
        self.unshown.overdue()
    }

    /// What has to be written now that it is like this. What is under way is shown when it is `overdue`, and not in every state that it
    /// passes through.
    pub(crate) fn look_at(
        &mut self,
        key: &ServiceKey,
        view: &View,
        now: &str,
        overdue: bool,
    ) -> Vec<Command> {
        let Some(item) = self.items.get_mut(key) else { return Vec::new() };
        if item.deleting {
            return release(key, item, view).into_iter().collect();
        }
        let Some(asked) = &item.asked else { return Vec::new() };
        let shown = show(key.name.as_str(), asked, view, &item.copied, &item.status);
        if shown.is_under_way() && !overdue {
            self.unshown.wait(key);
            return Vec::new();
        }
        self.unshown.done(key);
        let mut commands = Vec::new();
        let status = shown.status(&item.status, item.generation, now);
        if status != item.status {
            item.status = status.clone();
            let (key, uid) = (key.clone(), item.uid.clone());
            commands.push(Command::Status { key, uid, status: Box::new(status) });
        }
        tell(key, item, &shown, &mut commands);
        item.shown = Some(shown);
        commands
    }
}

/// The finalizer and the permanent id, where they are missing.
fn hold(
    key: &ServiceKey,
    item: &mut Item,
    object: &MultiClusterService,
    id: &str,
    wants_finalizer: bool,
) -> Option<Command> {
    let held = !wants_finalizer || item.finalizers.iter().any(|one| one == finalizer::MULTI_CLUSTER_SERVICE);
    let known = object.labels().get(label::MCS_PERMANENT_ID).is_some_and(|id| !id.is_empty());
    if held && known {
        return None;
    }
    item.held.clone_from(&item.revision);
    let mut finalizers = item.finalizers.clone();
    if !held {
        finalizers.push(finalizer::MULTI_CLUSTER_SERVICE.to_owned());
    }
    Some(Command::Hold {
        key: key.clone(),
        uid: item.uid.clone(),
        revision: item.revision.clone(),
        finalizers,
        id: (!known).then(|| id.to_owned()),
    })
}

/// Lets it go when no member that can be reached holds anything of it. One that can't will clean up when it comes back.
fn release(key: &ServiceKey, item: &mut Item, view: &View) -> Option<Command> {
    if !item.finalizers.iter().any(|one| one == finalizer::MULTI_CLUSTER_SERVICE) || view.crossing.is_some() {
        return None;
    }
    let clean = view.members.values().all(|member| match (member.contact, &member.said) {
        (Contact::Lost(_) | Contact::Silent, _) => true,
        (Contact::Unheard, _) | (Contact::Fine, None) => false,
        (Contact::Fine, Some(said)) => said.slices == 0 && !said.pending,
    });
    if !clean || item.held == item.revision {
        return None;
    }
    item.held.clone_from(&item.revision);
    let finalizers = item.finalizers.iter().filter(|one| *one != finalizer::MULTI_CLUSTER_SERVICE);
    Some(Command::Release {
        key: key.clone(),
        uid: item.uid.clone(),
        revision: item.revision.clone(),
        finalizers: finalizers.cloned().collect(),
    })
}

/// Tells what has changed, once.
fn tell(key: &ServiceKey, item: &mut Item, shown: &Shown, commands: &mut Vec<Command>) {
    use event::multi_cluster_service as events;
    let mut said: Vec<(&'static str, bool, String)> = Vec::new();
    if !shown.strangers.is_empty() {
        let message = format!(
            "no such member: {}; check the names against `kubectl get clusters`",
            shown.strangers.join(", ")
        );
        said.push((events::CLUSTER_NOT_FOUND, true, message));
    }
    let remarks = item.asked.as_ref().filter(|asked| asked.intent.balanced).map(|asked| &asked.remarks);
    // What still works is no reason to warn.
    let outdated = item.asked.as_ref().map(|asked| &asked.outdated[..]).unwrap_or_default();
    match outdated {
        [] => drop(item.told.remove(events::DEPRECATED_FIELD)),
        _ => said.push((events::DEPRECATED_FIELD, false, outdated.join("; "))),
    }
    match remarks {
        Some(remarks) if !remarks.is_empty() => said.push((events::LOAD_BALANCER, true, remarks.join("; "))),
        Some(_) | None => drop(item.told.remove(events::LOAD_BALANCER)),
    }
    for (verdict, good, bad) in [
        (&shown.applied, events::SYNC_SERVICE_SUCCEED, events::SYNC_SERVICE_FAILED),
        (&shown.dispatched, events::DISPATCH_SUCCEED, events::DISPATCH_FAILED),
    ] {
        match verdict.is {
            // Nothing is brought anywhere.
            _ if shown.balanced => {}
            Is::So => said.push((good, false, verdict.message.clone())),
            Is::NotSo => said.push((bad, true, verdict.message.clone())),
            Is::UnderWay => {}
        }
    }
    // What is over may be told again when it comes back.
    for (reason, other) in [
        (events::SYNC_SERVICE_SUCCEED, &shown.applied),
        (events::SYNC_SERVICE_FAILED, &shown.applied),
        (events::DISPATCH_SUCCEED, &shown.dispatched),
        (events::DISPATCH_FAILED, &shown.dispatched),
    ] {
        let over = other.is != Is::UnderWay && said.iter().all(|(now, ..)| *now != reason);
        if over {
            item.told.remove(reason);
        }
    }
    if shown.strangers.is_empty() {
        item.told.remove(events::CLUSTER_NOT_FOUND);
    }
    for (reason, warning, message) in said {
        if item.told.get(reason) != Some(&message) {
            item.told.insert(reason, message.clone());
            let (key, uid) = (key.clone(), item.uid.clone());
            commands.push(Command::Tell { key, uid, warning, reason, message });
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deleted(revision: &str) -> MultiClusterService {
        serde_json::from_value(json!({
            "apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "resourceVersion": revision,
                "finalizers": [finalizer::MULTI_CLUSTER_SERVICE], "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"types": ["CrossCluster"]},
        }))
        .unwrap()
    }

    #[test]
    fn a_release_that_met_a_newer_state_is_asked_for_again() {
        let mut all = MultiClusterServices::new(false);
        for revision in ["1", "2"] {
            let _ = all.seen(&deleted(revision), Ok(()), "id");
            let news = all.news();
            assert_eq!(news.len(), 1, "state {revision} is looked at");
            let view = View { crossing: None, members: BTreeMap::new() };
            let key = news.into_iter().next().unwrap();
            let commands = all.look_at(&key, &view, "2026-01-01T00:00:01Z", false);
            let released = commands
                .iter()
                .any(|one| matches!(one, Command::Release { revision: of, .. } if of == revision));
            assert!(released, "state {revision}: {commands:?}");
        }
    }
}
