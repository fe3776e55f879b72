//! Objects of the hub's API, read into what placement knows. What can't be read is said, with its reason.

use std::sync::Arc;

use atoll_api::names::{annotation, condition};
use atoll_api::types::Cluster;
use atoll_api::types::cluster::TaintEffect;
use atoll_engine::names::ClusterId;
use atoll_engine::placement::access::{Author, Stamp};
use atoll_engine::placement::affinity::{ClusterFact, Effect, Taint};
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::overrides::Overriding;
use atoll_engine::placement::policy::PolicyId;
use atoll_engine::placement::{Change, Policy};
use serde_json::Value;

use super::Stamps;
use crate::options::Unstamped;

/// A policy's name.
pub(super) fn policy_id(key: &ObjectKey) -> PolicyId {
    let namespace = Some(key.namespace.clone()).filter(|namespace| !namespace.is_empty());
    PolicyId { namespace, name: key.name.clone() }
}

/// Who wrote it, as its API server says.
pub(super) fn stamp(written: Option<&str>, stamps: Stamps) -> Stamp {
    let written = written.filter(|_| stamps.genuine); // else any user could have written it
    match (written.and_then(Author::read), stamps.unstamped) {
        (Some(author), _) => Stamp::By(Arc::new(author)),
        (None, Unstamped::Allow) => Stamp::Unchecked,
        (None, Unstamped::Refuse) => Stamp::Missing,
    }
}

fn stamp_of(object: &Value, stamps: Stamps) -> Stamp {
    stamp(object["metadata"]["annotations"][annotation::AUTHOR].as_str(), stamps)
}

/// A propagation policy, or why it can't be read.
pub(super) fn propagation(key: &ObjectKey, object: Option<&Value>, stamps: Stamps) -> Result<Change, String> {
    let Some(object) = object else { return Ok(Change::Policy(policy_id(key), None)) };
    let spec = serde_json::from_value(object["spec"].clone()).map_err(|error| error.to_string())?;
    let written = Arc::new(object["spec"]["placement"].clone());
    Ok(Change::Policy(
        policy_id(key),
        Some(Box::new(Policy { spec, written, stamp: stamp_of(object, stamps) })),
    ))
}

/// An override policy, or why it can't be read.
pub(super) fn overriding(key: &ObjectKey, object: Option<&Value>, stamps: Stamps) -> Result<Change, String> {
    let Some(object) = object else { return Ok(Change::Override(policy_id(key), None)) };
    let spec = serde_json::from_value(object["spec"].clone()).map_err(|error| error.to_string())?;
    let stamp = stamp_of(object, stamps);
    Ok(Change::Override(policy_id(key), Some(Box::new(Overriding { spec, stamp }))))
}

/// A member; one that leaves is none.
pub(super) fn cluster(key: &ObjectKey, object: Option<&Value>) -> Option<Change> {
    let id = ClusterId::parse(key.name.as_str()).ok()?;
    let fact = object.filter(|object| object["metadata"]["deletionTimestamp"].is_null()).and_then(fact);
    Some(Change::Cluster(id, fact))
}

fn fact(object: &Value) -> Option<ClusterFact> {
    let cluster: Cluster = serde_json::from_value(object.clone()).ok()?;
    let conditions = cluster.status.unwrap_or_default().conditions;
    let annotations = cluster.metadata.annotations.unwrap_or_default();
    let taint = |taint: atoll_api::types::cluster::Taint| Taint {
        key: taint.key,
        value: taint.value.unwrap_or_default(),
        effect: match taint.effect {
            TaintEffect::NoExecute => Effect::NoExecute,
            TaintEffect::NoSchedule => Effect::NoSchedule,
            TaintEffect::PreferNoSchedule => Effect::PreferNoSchedule,
        },
    };
    Some(ClusterFact {
        labels: cluster.metadata.labels.unwrap_or_default(),
        provider: cluster.spec.provider,
        region: cluster.spec.region,
        zones: cluster.spec.zones,
        taints: cluster.spec.taints.into_iter().map(taint).collect(),
        ready: conditions.iter().any(|one| one.type_ == condition::cluster::READY && one.status == "True"),
        asks_authors: annotations.get(annotation::CHECK_AUTHORS).is_some_and(|value| value == "true"),
    })
}

/// A template without what changes with every write to it.
pub(super) fn template(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(root) = object.as_object_mut() {
        root.remove("status");
        if let Some(Value::Object(meta)) = root.get_mut("metadata") {
            meta.retain(|key, _| key != "managedFields" && key != "resourceVersion");
        }
    }
    object
}
