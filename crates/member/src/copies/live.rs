//! An object of the member, reduced to what decides.

use std::hash::{DefaultHasher, Hash, Hasher};

use atoll_api::names::{annotation, label};
use atoll_engine::placement::aggregate;
use serde_json::Value;

/// Who owns our fields in copies, for the API server.
pub(super) const MANAGER: &str = "atoll-propagation";

/// An object of the member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Live {
    pub(crate) uid: String,
    pub(crate) revision: String,
    /// It carries our hub's label.
    pub(crate) ours: bool,
    /// It was there before us.
    pub(crate) adopted: bool,
    pub(crate) deleting: bool,
    /// Which fields the API server holds to be ours: changes when another field manager changes one of them.
    pub(crate) fields: u64,
    /// `managedFields` for as long as ours are those of a POST, which apply would not take back.
    pub(crate) posted: Option<Value>,
    /// Only that POST, and PUTs of ours after it, have set fields.
    pub(crate) alone: bool,
    /// How many replicas it has.
    pub(crate) replicas: Option<Value>,
    /// An autoscaler of the member's own was the last to say how many these are.
    pub(crate) autoscaled: bool,
    pub(crate) status: Value,
    pub(crate) healthy: Option<bool>,
}

impl Live {
    pub(crate) fn read(object: &Value, hub: &str) -> Self {
        let meta = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let managed = meta["managedFields"].as_array();
        let mine = || managed.into_iter().flatten().filter(|entry| is_mine(entry));
        let mut fields = DefaultHasher::new();
        for entry in mine() {
            entry["operation"].to_string().hash(&mut fields);
            entry["fieldsV1"].to_string().hash(&mut fields);
        }
        let posted = mine().any(|entry| entry["operation"] == "Update");
        let status = object["status"].clone();
        Self {
            uid: text(&meta["uid"]),
            revision: text(&meta["resourceVersion"]),
            ours: meta["labels"][label::PROPAGATED] == hub,
            adopted: meta["annotations"][annotation::ADOPTED] == "true",
            deleting: !meta["deletionTimestamp"].is_null(),
            fields: fields.finish(),
            posted: posted.then(|| meta["managedFields"].clone()),
            alone: posted && managed.is_some_and(|all| all.len() == 1),
            replicas: object.pointer("/spec/replicas").cloned(),
            autoscaled: managed.into_iter().flatten().any(is_of_autoscaler),
            healthy: aggregate::healthy(object, &status),
            status,
        }
    }
}

impl Live {
    /// Revisions of one object are numbers that grow, in every API server that there is.
    pub(crate) fn revision_number(&self) -> u64 {
        self.revision.parse().unwrap_or(0)
    }
}

fn is_mine(entry: &Value) -> bool {
    entry["manager"] == MANAGER && entry["subresource"].as_str().is_none_or(str::is_empty)
}

/// Whether an entry says that a `HorizontalPodAutoscaler` sees to the replicas: of the controllers that Kubernetes has, none else scales
/// what users make, and a person who scales has another name.
fn is_of_autoscaler(entry: &Value) -> bool {
    entry["manager"] == "kube-controller-manager"
        && entry["subresource"] == "scale"
        && entry.pointer("/fieldsV1/f:spec/f:replicas").is_some()
}

/// The same fields, as those of an apply: then what a later apply leaves out goes.
pub(super) fn as_applied(managed: &Value) -> Value {
    let mut managed = managed.clone();
    for entry in managed.as_array_mut().into_iter().flatten().filter(|entry| is_mine(entry)) {
        entry["operation"] = "Apply".into();
    }
    managed
}
