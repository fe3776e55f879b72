//! What the controllers keep of objects: small values, read once from JSON. The object itself is dropped.

mod pod;
mod service;
mod workload;

pub(crate) use pod::{Phase, Pod};
pub(crate) use service::{Node, Service, ServicePort, Slice, TargetPort};
pub(crate) use workload::{Deployment, Job, ReplicaSet, Revision, StatefulSet, Strategy, Update};

use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// Labels or annotations.
pub(crate) type StringMap = BTreeMap<String, String>;

/// What every object has.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Meta {
    pub(crate) namespace: String,
    pub(crate) name: String,
    pub(crate) uid: String,
    /// The resourceVersion; larger is newer.
    pub(crate) version: u64,
    pub(crate) generation: i64,
    pub(crate) created: Option<Timestamp>,
    /// It is on its way out.
    pub(crate) going: bool,
    pub(crate) labels: StringMap,
    pub(crate) owner: Option<Owner>,
    /// It has no owner.
    pub(crate) is_orphan: bool,
}

/// The controller that an object belongs to.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Owner {
    pub(crate) kind: String,
    pub(crate) name: String,
    pub(crate) uid: String,
}

impl Meta {
    pub(crate) fn read(object: &Value) -> Self {
        let meta = &object["metadata"];
        let owner = list(&meta["ownerReferences"]).find(|owner| owner["controller"] == true);
        Self {
            namespace: text(&meta["namespace"]),
            name: text(&meta["name"]),
            uid: text(&meta["uid"]),
            version: meta["resourceVersion"].as_str().and_then(|version| version.parse().ok()).unwrap_or(0),
            generation: meta["generation"].as_i64().unwrap_or(0),
            created: time(&meta["creationTimestamp"]),
            going: meta["deletionTimestamp"].is_string(),
            labels: words(&meta["labels"]),
            is_orphan: list(&meta["ownerReferences"]).next().is_none(),
            owner: owner.map(|owner| Owner {
                kind: text(&owner["kind"]),
                name: text(&owner["name"]),
                uid: text(&owner["uid"]),
            }),
        }
    }

    pub(crate) fn belongs_to(&self, uid: &str) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.uid == uid)
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn number(value: &Value) -> Option<i64> {
    value.as_i64()
}

pub(crate) fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

pub(crate) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(crate) fn words(value: &Value) -> StringMap {
    let pairs = value.as_object().into_iter().flatten();
    pairs.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
