//! Decides what is ordered of whom, and what is written into the hub's API. No socket, no clock.
//!
//! ```text
//!   templates, policies, clusters ─▶ placer ─▶ binding written, with who may hold a copy ─▶ orders to members
//!   reports of members ─▶ status of the binding, status of the template
//! ```
//! Nothing is ordered before its binding says who may hold a copy, and a binding goes only when no member does: so a hub that is killed
//! at any moment leaves nothing behind that the next one does not know of.

mod authors;
mod bindings;
mod explain;
mod importing;
mod services;
mod show;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use atoll_api::names::namespace::is_control_plane;
use atoll_api::names::{event, label};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::placement::access::{Question, Verdict};
use atoll_engine::placement::copies::Withheld;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::policy::PolicyId;
use atoll_engine::placement::select::Nowhere;
use atoll_engine::placement::{Change, Copy, Outcome, Placed, Placer};
use atoll_link::{CopyReport, CopyState, Order};
use serde_json::{Value, json};

use super::binding::{Held, Holders};
use super::seal::Sealer;
use super::{Copied, Implied, Rules, Trial, edge};
use crate::api::debounce::Unshown;
use crate::services::imports;
pub(super) use authors::HINT;
use authors::Refusals;
use importing::Imports;

/// On a policy.
const SELECTS_NOTHING: &str = "its resourceSelectors match no object in the hub; check apiVersion, kind, name and labels in them, and create the object here in the hub";

/// Where an object of the hub's API was seen.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    Propagation(Scope),
    Overriding(Scope),
    Clusters,
    Namespaces,
    Bindings(Scope),
    Templates(Kind),
}

/// Of a namespace, or of the whole clusterset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Namespace,
    Cluster,
}

impl Source {
    /// What has to be known before anything is planned.
    pub(super) const FIXED: [Self; 8] = [
        Self::Propagation(Scope::Namespace),
        Self::Propagation(Scope::Cluster),
        Self::Overriding(Scope::Namespace),
        Self::Overriding(Scope::Cluster),
        Self::Clusters,
        Self::Namespaces,
        Self::Bindings(Scope::Namespace),
        Self::Bindings(Scope::Cluster),
    ];
}

/// Something that happened.
#[derive(Debug)]
pub(super) enum Event {
    /// An object of the hub's API is there, or is gone.
    Seen(Source, ObjectKey, Option<Box<Value>>),
    /// Everything of this source has been seen.
    Listed(Source),
    /// A member runs, and takes orders.
    Started(ClusterId),
    /// A member does not.
    Stopped(ClusterId),
    /// A member has said something.
    Copy(ClusterId, CopyReport),
    /// The binding of an object was written, like this.
    Written(ObjectKey, Box<Value>),
    /// A while has passed; about a second.
    Waited,
    /// What a `MultiClusterService` asks for its Service.
    Implied(ServiceKey, Option<Box<Implied>>),
    /// Why clusters that should import a service do not.
    Absent(ServiceKey, imports::Absent),
    /// What the hub's API answered about an author.
    Verdict(Question, Verdict),
    /// Rights may have changed since they were asked about.
    AskAgain,
}

/// Something to do.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    /// Watch templates of this kind.
    Watch(Kind),
    /// Order something of a member.
    Order(ClusterId, ObjectKey, Order),
    /// Write a binding, and say when that is done: [`Event::Written`], by the key of its template.
    PutBinding {
        of: ObjectKey,
        binding: ObjectKey,
        object: Box<Value>,
        /// What stands there is not ours: nothing of it may be left.
        anew: bool,
    },
    /// Write the status of a binding or of a template.
    PutStatus(ObjectKey, Box<Value>),
    /// Delete a binding.
    DeleteBinding(ObjectKey),
    /// Say what became of the Service of a `MultiClusterService`.
    Copied(ServiceKey, Copied),
    /// Say where `ServiceImports` go.
    Imports(imports::News),
    /// Ask the hub's API about an author: [`Event::Verdict`].
    Ask(Question),
    /// Tell users.
    Tell { of: ObjectKey, uid: String, warning: bool, reason: &'static str, message: String },
}

/// A template that some member holds, or should.
#[derive(Debug, Default)]
struct Item {
    binding: Option<ObjectKey>,
    placed: Option<Placed>,
    /// Copies stay, and are managed by Atoll no more.
    preserve: bool,
    holders: Holders,
    /// What each member was ordered last.
    ordered: BTreeMap<ClusterId, Order>,
    /// The binding as it was last written, and whether that is done.
    written: Value,
    persisted: bool,
    /// One of another owner stands in its place, until ours is written.
    anew: bool,
    /// The seal of the one that was last written over a user's changes: done once for each.
    repaired: Value,
    status: Value,
    template_status: Value,
}

/// The state machine.
#[derive(Debug)]
pub(super) struct Propagator {
    placer: Placer,
    sealer: Sealer,
    rules: Rules,
    listed: BTreeSet<Source>,
    /// Kinds whose templates are watched, and those that have all been seen.
    watched: BTreeSet<Kind>,
    known: BTreeSet<Kind>,
    members: BTreeSet<ClusterId>,
    namespaces: BTreeMap<String, Arc<Value>>,
    items: BTreeMap<ObjectKey, Item>,
    /// Whose a binding is.
    bindings: BTreeMap<ObjectKey, ObjectKey>,
    /// Bindings that a user deleted, and that wait for us; and namespaces that go.
    deleted: BTreeSet<ObjectKey>,
    /// Bindings that are there and not the hub's: nothing follows from them.
    unbelieved: BTreeSet<ObjectKey>,
    closing: BTreeSet<String>,
    policies: BTreeMap<PolicyId, (ObjectKey, String)>,
    overrides: BTreeMap<PolicyId, (ObjectKey, String)>,
    refusals: Refusals,
    told: BTreeMap<(ObjectKey, &'static str), String>,
    /// Templates that were made while all of their kind were known, and not planned yet.
    fresh: BTreeSet<ObjectKey>,
    /// Templates of which nothing is shown before members that run have spoken.
    unshown: Unshown<ObjectKey>,
    /// The Services of `MultiClusterServices`, what was last said of them, and those of which something may be new.
    implied: BTreeMap<ObjectKey, (ServiceKey, Copied)>,
    implied_news: BTreeSet<ObjectKey>,
    /// Templates of which it is not known yet whether their policies count.
    undecided: BTreeSet<ObjectKey>,
    /// Why `MultiClusterServices` do not count.
    implied_refused: BTreeMap<ObjectKey, String>,
    /// Where `ServiceImports` go, and what stands in their way.
    imports: Imports,
    /// What went along with which bindings in a former life.
    along: Vec<(ObjectKey, Vec<ObjectKey>)>,
    out: Vec<Command>,
}

impl Propagator {
    pub(super) fn new(rules: Rules, sealer: Sealer) -> Self {
        Self {
            placer: Placer::with_external_ips(rules.external_ips),
            sealer,
            rules,
            listed: BTreeSet::new(),
            watched: BTreeSet::new(),
            known: BTreeSet::new(),
            members: BTreeSet::new(),
            namespaces: BTreeMap::new(),
            items: BTreeMap::new(),
            bindings: BTreeMap::new(),
            deleted: BTreeSet::new(),
            unbelieved: BTreeSet::new(),
            closing: BTreeSet::new(),
            policies: BTreeMap::new(),
            overrides: BTreeMap::new(),
            refusals: Refusals::default(),
            told: BTreeMap::new(),
            fresh: BTreeSet::new(),
            unshown: Unshown::default(),
            implied: BTreeMap::new(),
            implied_news: BTreeSet::new(),
            undecided: BTreeSet::new(),
            implied_refused: BTreeMap::new(),
            imports: Imports::default(),
            along: Vec::new(),
            out: Vec::new(),
        }
    }

    /// A copy to try something on; nothing before all that policies plan by has been listed.
    pub(super) fn trial(&self) -> Option<Trial> {
        let listed = Source::FIXED.iter().all(|source| self.listed.contains(source));
        listed.then(|| Trial::new(&self.placer, &self.rules, &self.known))
    }

    /// After this, [`Event::AskAgain`] is wanted.
    pub(super) fn ask_again(&self) -> Duration {
        self.rules.ask_again
    }

    /// Takes in an event.
    pub(super) fn take(&mut self, event: Event, now: &str) {
        match event {
            Event::Seen(source, key, object) => self.seen(&source, key, object.as_deref(), now),
            Event::Listed(Source::Templates(kind)) => drop(self.known.insert(kind)),
            Event::Listed(source) => drop(self.listed.insert(source)),
            Event::Started(id) => self.started(&id),
            Event::Stopped(id) => {
                self.members.remove(&id);
                for (key, item) in &mut self.items {
                    item.ordered.remove(&id);
                    // It is not waited for any longer.
                    if item.holders.get(&id) == Some(&Held::Silent) && self.implied.contains_key(key) {
                        self.implied_news.insert(key.clone());
                    }
                }
            }
            Event::Copy(id, report) => self.copied(&id, report, now),
            Event::Waited => {
                self.show_waiting(now);
                self.let_go();
            }
            Event::Implied(key, intent) => self.imply(key, intent.as_deref()),
            Event::Absent(key, absent) => self.absent(&key, absent),
            Event::Verdict(question, verdict) => self.placer.apply(Change::Verdict(question, verdict)),
            Event::AskAgain => {
                let stale = self.placer.stale_questions();
                self.out.extend(stale.into_iter().map(Command::Ask));
            }
            Event::Written(key, object) => {
                // One that was overtaken by a newer one says too little.
                if let Some(item) = self.items.get_mut(&key).filter(|item| item.written == *object) {
                    (item.persisted, item.anew) = (true, false);
                    if let Some(binding) = &item.binding {
                        self.unbelieved.remove(binding);
                    }
                    self.order(&key);
                    self.show(&key, now);
                }
            }
        }
    }

    /// Plans what changed, and says what is to be done.
    pub(super) fn work(&mut self, now: &str) -> Vec<Command> {
        if Source::FIXED.iter().all(|source| self.listed.contains(source)) {
            self.recall_along();
            self.watch();
            loop {
                let known = &self.known;
                let Some((key, outcome)) = self.placer.plan_next_of(|kind| known.contains(kind)) else {
                    break;
                };
                self.planned(&key, outcome, now);
                self.watch();
            }
            self.ask_about_authors();
            self.tell_idle();
            self.tell_implied();
            self.say_imports();
        }
        std::mem::take(&mut self.out)
    }

    /// Before anything is planned: nothing that goes along is dropped because its parent was not read first.
    fn recall_along(&mut self) {
        for (key, bindings) in std::mem::take(&mut self.along) {
            let parents = bindings.iter().filter_map(|binding| self.bindings.get(binding).cloned()).collect();
            self.placer.apply(Change::RecalledAlong(key, parents));
        }
    }

    fn watch(&mut self) {
        for kind in self.placer.new_kinds() {
            self.watched.insert(kind.clone());
            self.out.push(Command::Watch(kind));
        }
    }

    fn seen(&mut self, source: &Source, key: ObjectKey, object: Option<&Value>, now: &str) {
        match source {
            Source::Propagation(_) => {
                let (id, uid) = (edge::policy_id(&key), uid(object));
                match edge::propagation(&key, object, self.rules.stamps) {
                    Ok(change) => {
                        self.refusals.forget(false, &id);
                        self.placer.apply(change);
                    }
                    Err(why) => {
                        self.tell(
                            &key,
                            &uid,
                            true,
                            event::policy::APPLY_FAILED,
                            format!("invalid object: {why}"),
                        );
                    }
                }
                match object {
                    Some(_) => drop(self.policies.insert(id, (key, uid))),
                    None => drop(self.policies.remove(&id)),
                }
            }
            Source::Overriding(_) => {
                let (id, uid) = (edge::policy_id(&key), uid(object));
                match edge::overriding(&key, object, self.rules.stamps) {
                    Ok(change) => {
                        self.refusals.forget(true, &id);
                        self.placer.apply(change);
                    }
                    Err(why) => {
                        let message = format!("invalid object: {why}");
                        self.tell(&key, &uid, true, event::policy::APPLY_OVERRIDE_FAILED, message);
                    }
                }
                match object {
                    Some(_) => drop(self.overrides.insert(id, (key, uid))),
                    None => drop(self.overrides.remove(&id)),
                }
            }
            Source::Clusters => {
                if let Some(change) = edge::cluster(&key, object) {
                    self.placer.apply(change);
                }
                if let (None, Ok(id)) = (object, ClusterId::parse(key.name.as_str())) {
                    self.left(&id, now);
                }
            }
            Source::Namespaces => {
                if object.is_some_and(is_going) {
                    self.closing.insert(key.name.clone());
                } else {
                    self.closing.remove(&key.name);
                }
                self.import_mode(&key, object);
                self.namespace(&key.name, object);
            }
            Source::Bindings(_) => self.bound(source, &key, object),
            Source::Templates(_) => {
                if key.namespace == self.rules.namespace && !key.namespace.is_empty() {
                    return;
                }
                let template = object.filter(|object| !is_going(object));
                let template = template.map(|object| Arc::new(edge::template(object)));
                if self.implied.contains_key(&key) {
                    self.implied_news.insert(key.clone());
                }
                if template.is_none() {
                    self.fresh.remove(&key);
                    self.told.remove(&(key.clone(), event::policy::NOT_SELECTED));
                } else if self.known.contains(&key.kind) && self.placer.template(&key).is_none() {
                    self.fresh.insert(key.clone());
                }
                self.placer.apply(Change::Template(key, template));
            }
        }
    }

    fn started(&mut self, id: &ClusterId) {
        self.members.insert(id.clone());
        let namespaces: Vec<_> = self.namespaces.keys().cloned().collect();
        for name in namespaces {
            self.ensure_namespace(id, &name);
        }
        let held = self.items.iter().filter(|(_, item)| item.holders.contains_key(id));
        let held: Vec<_> = held.map(|(key, _)| key.clone()).collect();
        held.iter().for_each(|key| self.order(key));
    }

    /// A cluster is no member any more: what it holds is its own.
    fn left(&mut self, id: &ClusterId, now: &str) {
        let mut touched = Vec::new();
        for (key, item) in &mut self.items {
            item.ordered.remove(id);
            if item.holders.remove(id).is_some() {
                touched.push(key.clone());
            }
        }
        for key in touched {
            self.settle(&key, now);
        }
    }

    fn namespace(&mut self, name: &str, object: Option<&Value>) {
        let skipped = is_control_plane(name) || ["default", self.rules.namespace.as_str()].contains(&name);
        if skipped || !self.rules.sync_namespaces {
            return;
        }
        let wanted = object.filter(|object| {
            !is_going(object) && object["metadata"]["labels"][label::SKIP_NAMESPACE] != "true"
        });
        // What the hub's users delete there is not deleted here: much else may live in it.
        let Some(object) = wanted else {
            if self.namespaces.remove(name).is_some() {
                let members: Vec<_> = self.members.iter().cloned().collect();
                members
                    .into_iter()
                    .for_each(|id| self.out.push(Command::Order(id, namespace_key(name), Order::Release)));
            }
            return;
        };
        let mut labels = object["metadata"]["labels"].clone();
        if let Some(labels) = labels.as_object_mut() {
            labels.remove("kubernetes.io/metadata.name");
        }
        let mut copy = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": name } });
        if labels.as_object().is_some_and(|labels| !labels.is_empty()) {
            copy["metadata"]["labels"] = labels;
        }
        if self.namespaces.insert(name.to_owned(), Arc::new(copy)).is_none() {
            let members: Vec<_> = self.members.iter().cloned().collect();
            members.iter().for_each(|id| self.ensure_namespace(id, name));
        }
    }

    fn ensure_namespace(&mut self, id: &ClusterId, name: &str) {
        let key =
            ObjectKey { kind: Kind::new("v1", "Namespace"), namespace: String::new(), name: name.to_owned() };
        // A policy that speaks of it has the say.
        let spoken = self.items.get(&key).is_some_and(|item| item.holders.contains_key(id));
        if let Some(object) = self.namespaces.get(name).filter(|_| !spoken) {
            self.out.push(Command::Order(id.clone(), key, Order::Ensure(Arc::clone(object))));
        }
    }

    fn copied(&mut self, id: &ClusterId, report: CopyReport, now: &str) {
        let CopyReport { key, state } = report;
        let Some(item) = self.items.get_mut(&key).filter(|item| item.holders.contains_key(id)) else {
            return;
        };
        let wanted = item.placed.as_ref().is_some_and(|placed| placed.copies.contains_key(id));
        if state == CopyState::Gone && !wanted {
            item.holders.remove(id);
            item.ordered.remove(id);
        } else {
            item.holders.insert(id.clone(), Held::Said(state));
        }
        self.settle(&key, now);
    }

    fn planned(&mut self, key: &ObjectKey, outcome: Outcome, now: &str) {
        let unchecked = |copy: &Copy| matches!(copy.object, Err(Withheld::Unchecked));
        let undecided = match &outcome {
            Outcome::Undecided => true,
            Outcome::Placed(placed) => placed.copies.values().any(unchecked),
            Outcome::Nowhere { .. } => false,
        };
        if undecided {
            self.undecided.insert(key.clone());
        } else {
            self.undecided.remove(key);
        }
        match outcome {
            Outcome::Undecided => return, // nothing changes until its policies' authors are known
            Outcome::Nowhere { preserve } => {
                self.tell_unselected(key);
                let Some(item) = self.items.get_mut(key) else { return self.imports.placed(key) };
                (item.placed, item.preserve) = (None, preserve);
                item.persisted = true; // the binding of what goes is not written any more, but for its end
            }
            Outcome::Placed(placed) => {
                self.fresh.remove(key);
                let has_policy = |placed: &Placed| placed.decision.as_ref().map(|one| one.policy.is_some());
                let before = self.items.get(key).and_then(|item| item.placed.as_ref()).and_then(has_policy);
                match (before, has_policy(&placed)) {
                    (Some(true), Some(false)) => self.tell_left(key),
                    (_, Some(true)) => drop(self.told.remove(&(key.clone(), event::policy::NOT_SELECTED))),
                    (_, Some(false) | None) => {}
                }
                let item = self.items.entry(key.clone()).or_default();
                for id in placed.copies.keys() {
                    item.holders.entry(id.clone()).or_insert(Held::Silent);
                }
                (item.placed, item.preserve) = (Some(*placed), false);
                self.tell_of(key);
            }
        }
        self.imports.placed(key);
        self.settle(key, now);
    }

    /// Brings everything about a template in line with what is known: its binding, the orders, what is shown.
    fn settle(&mut self, key: &ObjectKey, now: &str) {
        if self.implied.contains_key(key) {
            self.implied_news.insert(key.clone());
        }
        let Some(item) = self.items.get(key) else { return };
        if item.placed.is_none() && item.holders.is_empty() {
            if let Some(binding) = self.items.remove(key).and_then(|item| item.binding) {
                self.bindings.remove(&binding);
                self.deleted.remove(&binding);
                self.out.push(Command::DeleteBinding(binding));
            }
            return;
        }
        self.bind(key);
        self.order(key);
        self.show(key, now);
    }

    /// Orders what has not been ordered.
    fn order(&mut self, key: &ObjectKey) {
        let Some(item) = self.items.get_mut(key).filter(|item| item.persisted) else { return };
        let ids: Vec<ClusterId> = item.holders.keys().cloned().collect();
        for id in ids {
            let copy = item.placed.as_ref().and_then(|placed| placed.copies.get(&id));
            let order = match copy {
                None if item.preserve => Order::Release,
                None => Order::Drop,
                // As long as there is no answer, nothing is ordered and nothing is said.
                Some(Copy { object: Err(Withheld::Unchecked), .. }) => continue,
                Some(Copy { object: Err(why), .. }) => {
                    item.ordered.remove(&id); // when it counts again, it is ordered again
                    item.holders.insert(id, Held::Unordered(why.to_string()));
                    continue;
                }
                Some(Copy { observed: true, .. }) => Order::Observe,
                Some(Copy { suspended: true, .. }) => Order::Suspend,
                Some(Copy { object: Ok(object), conflict, .. }) => {
                    Order::Hold { object: Arc::clone(object), conflict: *conflict }
                }
            };
            if self.members.contains(&id) && item.ordered.get(&id) != Some(&order) {
                item.ordered.insert(id.clone(), order.clone());
                self.out.push(Command::Order(id, key.clone(), order));
            }
        }
    }

    /// A new workload or Service that no policy selects: said once, on the template. Others, such as the `ConfigMaps` that Kubernetes makes
    /// itself, are none of our business.
    fn tell_unselected(&mut self, key: &ObjectKey) {
        let fresh = self.fresh.remove(key);
        let Some(template) = self.placer.template(key) else { return };
        let uid = uid(Some(template));
        let foreign = is_control_plane(&key.namespace) || self.implied.contains_key(key);
        if fresh && !foreign && is_service_or_workload(&key.kind) {
            let message = "no policy selects it: it is not copied to any member; to bring it to members, create a PropagationPolicy whose resourceSelectors match its kind and name";
            self.tell(key, &uid, false, event::policy::NOT_SELECTED, message.to_owned());
        }
    }

    /// A template whose policy is gone, or turned away from it: what it has stays.
    fn tell_left(&mut self, key: &ObjectKey) {
        let uid = self.placer.template(key).map(|template| uid(Some(template))).unwrap_or_default();
        let message = "its policy is gone, or does not select it any more: its copies stay in members and follow it; delete it here to remove them, or create a PropagationPolicy that selects it";
        self.tell(key, &uid, true, event::policy::NOT_SELECTED, message.to_owned());
    }

    fn tell_of(&mut self, key: &ObjectKey) {
        let uid = self.placer.template(key).map(|template| uid(Some(template))).unwrap_or_default();
        let Some(placed) = self.items.get(key).and_then(|item| item.placed.as_ref()) else { return };
        let nowhere = placed.nowhere.as_ref().map(Nowhere::text);
        let unknown: Vec<_> = placed.unknown.iter().cloned().collect();
        match nowhere {
            Some(why) => self.tell(key, &uid, true, event::policy::SCHEDULE_FAILED, why),
            None => drop(self.told.remove(&(key.clone(), event::policy::SCHEDULE_FAILED))),
        }
        if !unknown.is_empty() {
            let message = format!(
                "its policy lists clusters that are not members: {}; check the names against `kubectl get clusters`",
                unknown.join(", ")
            );
            self.tell(key, &uid, true, event::policy::CLUSTER_NOT_FOUND, message);
        } else {
            self.told.remove(&(key.clone(), event::policy::CLUSTER_NOT_FOUND));
        }
    }

    /// Policies that select nothing: said once, on the policy.
    fn tell_idle(&mut self) {
        if self.known != self.watched {
            return;
        }
        let (idle, busy): (Vec<_>, Vec<_>) =
            self.policies.iter().partition(|(id, _)| self.placer.is_idle(id));
        for (_, (key, _)) in busy {
            // When it selects nothing again, that is told again.
            let place = (key.clone(), event::policy::APPLY_FAILED);
            if self.told.get(&place).is_some_and(|told| told == SELECTS_NOTHING) {
                self.told.remove(&place);
            }
        }
        let idle: Vec<(ObjectKey, String)> = idle.into_iter().map(|(_, told)| told.clone()).collect();
        for (key, uid) in idle {
            self.tell(&key, &uid, true, event::policy::APPLY_FAILED, SELECTS_NOTHING.to_owned());
        }
    }

    fn tell(&mut self, of: &ObjectKey, uid: &str, warning: bool, reason: &'static str, message: String) {
        let before = self.told.insert((of.clone(), reason), message.clone());
        if before.as_deref() != Some(message.as_str()) {
            let (of, uid) = (of.clone(), uid.to_owned());
            self.out.push(Command::Tell { of, uid, warning, reason, message });
        }
    }
}

/// What people make in order to run it in members.
fn is_service_or_workload(kind: &Kind) -> bool {
    matches!(
        (kind.group(), &*kind.kind),
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet") | ("batch", "Job" | "CronJob") | ("", "Service")
    )
}

fn namespace_key(name: &str) -> ObjectKey {
    ObjectKey { kind: Kind::new("v1", "Namespace"), namespace: String::new(), name: name.to_owned() }
}

/// Whether it was deleted, and something holds it up.
fn is_going(object: &Value) -> bool {
    !object["metadata"]["deletionTimestamp"].is_null()
}

fn uid(object: Option<&Value>) -> String {
    object.and_then(|object| object["metadata"]["uid"].as_str()).unwrap_or_default().to_owned()
}
