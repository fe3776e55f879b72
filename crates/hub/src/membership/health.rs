//! Keeps the `Ready` condition of a member true: what the member says of itself is written when it has changed.

use atoll_api::names::kind::cluster as cluster_kind;
use atoll_api::names::{condition, event, reason};
use atoll_api::types::Cluster;
use atoll_apimachinery::conditions;
use atoll_engine::names::ClusterId;
use atoll_link as link;
use atoll_member::Permit;
use atoll_member::events::{About, Events, Notice};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::api::{Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::watch;

use crate::membership::clean;
use crate::membership::connect::{code, why};
use crate::membership::roster::NoLink;

/// How often a write is tried that others come before.
const TRIES: usize = 5;
/// Longer messages are cut: a member's words end up in the hub's API.
const LONGEST: usize = 1024;

/// What is shown of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    Ready {
        version: String,
    },
    NotReady {
        why: String,
    },
    NotReachable {
        why: String,
    },
    NoVersion {
        why: String,
    },
    /// It is not asked, for this reason.
    Unknown {
        why: String,
    },
    /// It is not used, since it asks for what is not its own, or is not the cluster that joined.
    Refused {
        reason: &'static str,
        why: String,
    },
}

impl Health {
    /// What is wrong; empty if nothing is.
    pub(crate) fn why(&self) -> &str {
        match self {
            Self::Ready { .. } => "",
            Self::NotReady { why }
            | Self::NotReachable { why }
            | Self::NoVersion { why }
            | Self::Unknown { why }
            | Self::Refused { why, .. } => why,
        }
    }

    /// Status, reason and message of the condition.
    fn condition(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::Ready { .. } => {
                ("True", reason::cluster::READY, "the member's API answers and is healthy".to_owned())
            }
            Self::NotReady { why } => ("False", reason::cluster::NOT_READY, why.clone()),
            Self::NotReachable { why } => ("False", reason::cluster::NOT_REACHABLE, why.clone()),
            Self::NoVersion { why } => ("False", reason::cluster::STATUS_COLLECTION_FAILED, why.clone()),
            Self::Unknown { why } => ("Unknown", reason::cluster::STATUS_UNKNOWN, why.clone()),
            Self::Refused { reason, why } => ("False", reason, why.clone()),
        }
    }
}

impl NoLink {
    /// Why the member `id` is not used, and what to do.
    pub(crate) fn health(&self, id: &ClusterId) -> Health {
        let join = format!("run `atoll join {id} --cluster-kubeconfig FILE` again");
        let refused = |reason, why| Health::Refused { reason, why };
        let why = match self {
            Self::Twin(other) => {
                return refused(
                    reason::cluster::ALREADY_A_MEMBER,
                    format!(
                        "refused: this is the same cluster as member {other} (same UID of kube-system); delete this Cluster, which keeps the member, or unjoin {other} first"
                    ),
                );
            }
            Self::NotItsOwn { secret, of: Some(other) } => {
                return refused(
                    reason::cluster::CREDENTIALS_NOT_FOR_THIS_CLUSTER,
                    format!(
                        "the Secret {secret} was created for the Cluster {other}; nothing was sent; {join}"
                    ),
                );
            }
            Self::NotItsOwn { secret, of: None } => {
                return refused(
                    reason::cluster::CREDENTIALS_NOT_FOR_THIS_CLUSTER,
                    format!(
                        "the Secret {secret} does not say for which Cluster and endpoint it was created; nothing was sent; {join}"
                    ),
                );
            }
            Self::OtherWay { field, said, bound } => {
                return refused(
                    reason::cluster::ENDPOINT_NOT_ALLOWED,
                    format!(
                        "{field} is {said:?}, but the credentials are for {bound:?} only; nothing was sent; change it back, or {join}"
                    ),
                );
            }
            Self::PlainHttp(endpoint) => {
                return refused(
                    reason::cluster::ENDPOINT_NOT_ALLOWED,
                    format!(
                        "tokens are not sent over plain HTTP, to {endpoint}; use an https:// endpoint and {join}"
                    ),
                );
            }
            Self::Insecure => {
                return refused(
                    reason::cluster::INSECURE_NOT_ALLOWED,
                    format!(
                        "the member was joined without a check of its certificate; nothing was sent; {join} with a kubeconfig that has a CA, or start the hub with --allow-insecure-members"
                    ),
                );
            }
            Self::OtherCluster { pinned, answered } => {
                let answered = answered.as_deref().unwrap_or("none");
                return refused(
                    reason::cluster::IDENTITY_MISMATCH,
                    format!(
                        "the API answers with kube-system UID {answered}, but the cluster that joined has {pinned}; it is not used until it answers with that UID; if the cluster was replaced, unjoin {id} and join the new one"
                    ),
                );
            }
            Self::Pull => "this hub does not serve members in Pull mode".to_owned(),
            Self::NoEndpoint => "spec.apiEndpoint is not set".to_owned(),
            Self::NoSecretRef => "spec.secretRef is not set".to_owned(),
            Self::ForeignNamespace(namespace) => {
                format!(
                    "spec.secretRef has the namespace {namespace}, but the hub reads Secrets of its own namespace only"
                )
            }
            Self::BadNetworks(why) => format!(
                "the annotation with its networks, on its Secret or on the Cluster, is invalid: {why}"
            ),
            Self::NoSecret(name) => format!("the Secret {name} does not exist, or has no key token"),
        };
        Health::Unknown { why }
    }
}

impl Health {
    /// What a member says of itself; of one that leaves with what follows from it.
    fn said(health: link::Health, leaving: bool) -> Self {
        let why = |why: String| if leaving { clean::stuck(&why) } else { why };
        match health {
            link::Health::Ready { version } => Self::Ready { version },
            link::Health::NotReady { why: said } => Self::NotReady { why: why(said) },
            link::Health::NotReachable { why: said } => Self::NotReachable { why: why(said) },
            link::Health::NoVersion { why: said } => Self::NoVersion { why: why(said) },
        }
    }
}

/// Writes down what a member says of its health, for as long as it is let.
pub(crate) async fn keep(
    id: ClusterId,
    hub: Client,
    permit: Permit,
    events: Events,
    mut said: watch::Receiver<Option<link::Health>>,
    leaving: bool,
) {
    let mut written: Option<Health> = None;
    while said.changed().await.is_ok() {
        let Some(health) = said.borrow_and_update().clone() else { continue };
        let health = Health::said(health, leaving);
        // What could not be written is tried again with the member's next word.
        if written.as_ref() != Some(&health) && permit.holds() {
            let Some(before) = shown(&hub, &id, &health).await else { continue };
            tell_health(&events, &id, &before, &health);
            written = Some(health);
        }
    }
}

/// Says in an event what has happened to a member.
fn tell(events: &Events, id: &ClusterId, warning: bool, reason: &'static str, message: String) {
    let about = About {
        api_version: Cluster::api_version(&()),
        kind: cluster_kind::CLUSTER.into(),
        namespace: String::new(),
        name: id.to_string(),
        uid: None,
    };
    events.tell(Notice { about, warning, reason, message });
}

/// Tells of a member that has joined, was lost or came back: once, since the condition itself says what was before.
fn tell_health(events: &Events, id: &ClusterId, before: &Before, health: &Health) {
    let (status, reason, why) = health.condition();
    let Before::Was { status: old, reason: was } = before else { return };
    let (warning, told, message) = match (old.as_deref(), status) {
        (None, "True") => (
            false,
            event::cluster::JOINED,
            "the member has joined: its API answers and is healthy".to_owned(),
        ),
        (Some("True"), "True") => return,
        (Some(_), "True") => {
            (false, event::cluster::BACK, "the member's API answers again and is healthy".to_owned())
        }
        (_, _) if was.as_deref() == Some(reason) => return,
        (_, _) => match health {
            Health::NotReachable { .. } => {
                let message = format!(
                    "the member's API does not answer: {why}; imports from it are marked stale or withdrawn, as each export's liveness says, when its lease has ended"
                );
                (true, event::cluster::LOST, message)
            }
            Health::Refused { reason, .. } => (true, *reason, why),
            Health::Ready { .. }
            | Health::NotReady { .. }
            | Health::NoVersion { .. }
            | Health::Unknown { .. } => (true, event::cluster::NOT_READY, why),
        },
    };
    tell(events, id, warning, told, message);
}

/// What stood there before a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Before {
    /// The same, or there is no such `Cluster`.
    Same,
    /// Another status or reason of `Ready`; none if there was none.
    Was { status: Option<String>, reason: Option<String> },
}

/// Writes the condition; says what was there before, if that was possible.
async fn shown(hub: &Client, id: &ClusterId, health: &Health) -> Option<Before> {
    match write(hub, id, health).await {
        Ok(before) => Some(before),
        Err(error) => {
            tracing::warn!(cluster = %id, why = why(&error), "cannot write the member's status");
            None
        }
    }
}

/// Writes the condition, and tells what has changed.
pub(crate) async fn show(hub: &Client, events: &Events, id: &ClusterId, health: &Health) {
    if let Some(before) = shown(hub, id, health).await {
        tell_health(events, id, &before, health);
    }
}

/// Writes the condition, if it differs from what is there.
pub(crate) async fn write(hub: &Client, id: &ClusterId, health: &Health) -> Result<Before, kube::Error> {
    for _ in 1..TRIES {
        match write_once(hub, id, health).await {
            Err(error) if code(&error) == Some(409) => {} // it was written since, most likely our own finalizer
            other => return other,
        }
    }
    write_once(hub, id, health).await
}

async fn write_once(hub: &Client, id: &ClusterId, health: &Health) -> Result<Before, kube::Error> {
    let api: Api<Cluster> = Api::all(hub.clone());
    let Some(cluster) = api.get_opt(id.as_str()).await? else { return Ok(Before::Same) };
    let status = cluster.status.clone().unwrap_or_default();
    let version = match health {
        Health::Ready { version } => Some(version.clone()),
        Health::NotReady { .. }
        | Health::NotReachable { .. }
        | Health::NoVersion { .. }
        | Health::Unknown { .. }
        | Health::Refused { .. } => status.kubernetes_version.clone(),
    };
    let now = || Time(Timestamp::now());
    let conditions = updated(&status.conditions, health, now());
    let before = match &conditions {
        None => Before::Same,
        Some(_) => {
            let old = status.conditions.iter().find(|one| one.type_ == condition::cluster::READY);
            Before::Was {
                status: old.map(|old| old.status.clone()),
                reason: old.map(|old| old.reason.clone()),
            }
        }
    };
    if conditions.is_none() && version == status.kubernetes_version {
        return Ok(Before::Same);
    }
    let conditions = conditions.unwrap_or(status.conditions);
    let patch = json!({
        "metadata": { "resourceVersion": cluster.metadata.resource_version },
        "status": { "kubernetesVersion": version, "conditions": conditions },
    });
    api.patch_status(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(|_| before)
}

/// The conditions with `Ready` as it is now; none if it is there already.
fn updated(existing: &[Condition], health: &Health, now: Time) -> Option<Vec<Condition>> {
    let (status, reason, mut message) = health.condition();
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
    }
    let old = existing.iter().find(|condition| condition.type_ == condition::cluster::READY);
    if old.is_some_and(|old| old.status == status && old.reason == reason && old.message == message) {
        return None;
    }
    let before = old.map(|old| (old.status.as_str(), old.last_transition_time.clone()));
    let since = conditions::since(before, status, now);
    let ready = Condition {
        type_: condition::cluster::READY.to_owned(),
        status: status.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: since,
        observed_generation: None,
    };
    let others = existing.iter().filter(|condition| condition.type_ != condition::cluster::READY).cloned();
    Some(others.chain([ready]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time(Timestamp::from_second(seconds).unwrap())
    }

    #[test]
    fn a_condition_is_written_when_it_changes_and_dated_when_its_status_does() {
        let ready = Health::Ready { version: "v1.36.0".to_owned() };
        let gone = |why: &str| Health::NotReachable { why: why.to_owned() };
        let first = updated(&[], &ready, at(1)).unwrap();
        assert_eq!((first[0].status.as_str(), first[0].reason.as_str()), ("True", "ClusterReady"));
        assert_eq!(updated(&first, &ready, at(2)), None);
        let second = updated(&first, &gone("refused"), at(3)).unwrap();
        assert_eq!((second[0].status.as_str(), &second[0].last_transition_time), ("False", &at(3)));
        let third = updated(&second, &gone("timeout"), at(4)).unwrap();
        assert_eq!((third[0].message.as_str(), &third[0].last_transition_time), ("timeout", &at(3)));
    }

    #[test]
    fn a_twin_is_not_ready_and_says_whose_and_what_to_do() {
        let twin = NoLink::Twin(ClusterId::parse("paris").unwrap());
        let twin = twin.health(&ClusterId::parse("lyon").unwrap());
        let ready = updated(&[], &twin, at(1)).unwrap().remove(0);
        assert_eq!(ready.status, "False");
        assert!(ready.message.contains("member paris") && ready.message.contains("delete"), "{ready:?}");
    }

    #[test]
    fn conditions_of_others_stay_and_long_messages_are_cut() {
        let mut other = updated(&[], &Health::Unknown { why: "x".to_owned() }, at(1)).unwrap();
        other[0].type_ = "CompleteAPIEnablements".to_owned();
        let both = updated(&other, &Health::NotReady { why: "é".repeat(2000) }, at(2)).unwrap();
        assert_eq!(both.len(), 2);
        assert_eq!(both[0], other[0]);
        assert_eq!(both[1].message.len(), LONGEST);
    }
}
