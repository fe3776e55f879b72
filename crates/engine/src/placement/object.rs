//! Objects of any kind: how they are called, and the few parts of them that placement reads.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A kind, as a manifest says it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Kind {
    /// `apps/v1`, or `v1`.
    pub api_version: String,
    /// `Deployment`.
    pub kind: String,
}

/// An object, in the hub and in every member alike.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct ObjectKey {
    /// Its kind. First, so that objects of one kind lie together in a map.
    #[serde(flatten)]
    pub kind: Kind,
    /// Its namespace; empty where it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl Kind {
    /// A kind by its two words.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// The group; empty for the core.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version alone.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// Whether it is this kind of this group, in whatever version.
    pub fn is(&self, group: &str, kind: &str) -> bool {
        self.group() == group && self.kind == kind
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, Kind={}", self.api_version, self.kind)
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.namespace.is_empty() {
            write!(f, "{} {}", self.kind.kind, self.name)
        } else {
            write!(f, "{} {}/{}", self.kind.kind, self.namespace, self.name)
        }
    }
}

impl ObjectKey {
    /// The key of an object; none if it lacks a kind or a name.
    pub fn of(object: &Value) -> Option<Self> {
        let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
        let meta = &object["metadata"];
        Some(Self {
            kind: Kind { api_version: text(&object["apiVersion"])?, kind: text(&object["kind"])? },
            namespace: text(&meta["namespace"]).unwrap_or_default(),
            name: text(&meta["name"])?,
        })
    }
}

/// How many replicas a workload asks for; none where its kind has no such thing.
pub fn replicas(template: &Value) -> Option<i64> {
    template.pointer(replicas_at(template)?).map_or(Some(1), Value::as_i64)
}

/// Where a kind says how many replicas it wants.
pub fn replicas_at(template: &Value) -> Option<&'static str> {
    match (group_of(template), template["kind"].as_str()?) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => Some("/spec/replicas"),
        ("batch", "Job") => Some("/spec/parallelism"),
        _ => None,
    }
}

/// Whether objects of a kind have replicas that an autoscaler can see to.
pub fn has_replicas(kind: &Kind) -> bool {
    kind.group() == "apps" && ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind.kind.as_str())
}

/// The group in an object's `apiVersion`.
pub fn group_of(object: &Value) -> &str {
    object["apiVersion"].as_str().and_then(|version| version.split_once('/')).map_or("", |(group, _)| group)
}

/// The pod that an object makes, or is: its spec, and where that stands.
pub fn pod_spec(object: &Value) -> Option<(&'static str, &Value)> {
    let at = match (group_of(object), object["kind"].as_str()?) {
        ("", "Pod") => "/spec",
        ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job") => {
            "/spec/template/spec"
        }
        ("batch", "CronJob") => "/spec/jobTemplate/spec/template/spec",
        _ => return None,
    };
    Some((at, object.pointer(at)?))
}
