//! What would change: the question with its manifests, and the answer.
//!
//! A plan is asked for by `create plans`, answered at once, and never stored. Nothing is written into any cluster.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Header, Remark};

/// What is supposed to happen.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanRequest {
    /// `apiVersion`, if it is given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub api_version: Option<String>,
    /// `kind`, if it is given.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// Metadata, if it is given: nothing of it is read.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub metadata: Option<Value>,
    /// Objects that are applied or deleted, in this order.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changes: Vec<Supposed>,
    /// What is there now of Services that the hub does not know: members tell it only of those that are exported.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub current: Vec<There>,
    /// Members that are unjoined.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub without: Vec<String>,
}

/// An object that is applied or deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Supposed {
    /// The member in which that happens; none is the hub.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cluster: Option<String>,
    /// What happens.
    pub action: Action,
    /// The object as it would be. For `Delete`, `apiVersion`, `kind` and the names are enough.
    pub object: Value,
}

/// What happens to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// It is made or changed.
    Apply,
    /// It is deleted.
    Delete,
}

/// An object that is there now.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct There {
    /// The member that has it; none is the hub.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cluster: Option<String>,
    /// The object.
    pub object: Value,
}

/// What would change.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanAnswer {
    /// What this is.
    #[serde(flatten)]
    pub header: Header,
    /// When the leader said so, in RFC 3339.
    pub at: String,
    /// Each cluster in which something would change, or in which something stands in the way.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clusters: Vec<ClusterChanges>,
    /// Conflicts between exports that arise, end or are decided otherwise.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub conflicts: Vec<ConflictChange>,
    /// What the hub itself would say or do: `MultiClusterServices` and their load balancers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub hub: Vec<ServiceChange>,
    /// Where policies would bring templates.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub placements: Vec<PlacementChange>,
    /// What was given and does not count, and why.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ignored: Vec<Ignored>,
    /// All of it, counted.
    pub summary: Summary,
}

/// All changes, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects that are made.
    pub made: usize,
    /// Objects that change.
    pub changed: usize,
    /// Objects that are deleted.
    pub deleted: usize,
    /// Endpoints that importers get.
    pub endpoints_added: usize,
    /// Endpoints that importers lose.
    pub endpoints_removed: usize,
    /// Conditions that change.
    pub conditions: usize,
    /// Conflicts that arise, end or are decided otherwise.
    pub conflicts: usize,
    /// Templates whose placement changes.
    pub placements: usize,
    /// What would stand in the way: remarks that are warnings or worse.
    pub problems: usize,
}

impl Summary {
    /// Whether anything would change. Problems alone are no change.
    pub fn changes(&self) -> bool {
        let Self {
            made,
            changed,
            deleted,
            endpoints_added,
            endpoints_removed,
            conditions,
            conflicts,
            placements,
            problems: _,
        } = self;
        [made, changed, deleted, endpoints_added, endpoints_removed, conditions, conflicts, placements]
            .into_iter()
            .any(|count| *count > 0)
    }
}

/// How something changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Change {
    /// It was not there.
    Add,
    /// It is there, and will be different.
    Change,
    /// It will not be there.
    Remove,
}

impl Change {
    /// The mark in front of a line.
    pub fn mark(self) -> char {
        match self {
            Self::Add => '+',
            Self::Change => '~',
            Self::Remove => '-',
        }
    }
}

/// What would change in one member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterChanges {
    /// The member.
    pub cluster: String,
    /// Objects that Atoll would make, change or delete there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub objects: Vec<ObjectChange>,
    /// Endpoints that come and go there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub endpoints: Vec<EndpointChange>,
    /// Conditions that change there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub conditions: Vec<ConditionChange>,
    /// What would stand in the way there, by service.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub problems: Vec<ServiceRemark>,
}

/// An object that would be made, changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectChange {
    /// How.
    pub change: Change,
    /// Its kind.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Why it goes, or from where it comes.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub why: String,
    /// For one that changes: what of it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
}

/// A field that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldChange {
    /// The field.
    pub field: String,
    /// What it says now; empty if nothing.
    pub before: String,
    /// What it would say; empty if nothing.
    pub after: String,
}

/// Endpoints of one service that come to an importer, or go, by source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EndpointChange {
    /// The service, as `namespace/name`.
    pub service: String,
    /// The cluster that they are in.
    pub source: String,
    /// Addresses that come.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub added: Vec<String>,
    /// Addresses that become ready, or not ready, or otherwise different.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed: Vec<String>,
    /// Addresses that go.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub removed: Vec<String>,
    /// Whether the source has none yet: they come when its pods are ready.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub awaited: bool,
}

/// A condition that changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionChange {
    /// The kind of its object.
    pub kind: String,
    /// The namespace of its object.
    pub namespace: String,
    /// The name of its object.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub condition: String,
    /// What it says now.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub before: Option<Condition>,
    /// What it would say.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub after: Option<Condition>,
}

/// What a condition says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// `True` or `False`.
    pub status: String,
    /// Why, for programs.
    pub reason: String,
    /// Why, for people.
    pub message: String,
}

/// A conflict between exports that arises, ends or is decided otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConflictChange {
    /// How.
    pub change: Change,
    /// The service, as `namespace/name`.
    pub service: String,
    /// The cluster whose word counts; for a conflict that ends, counted.
    pub winner: String,
    /// What it is about.
    pub remark: Remark,
}

/// A reason that is about a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceRemark {
    /// The service, as `namespace/name`.
    pub service: String,
    /// The reason.
    pub remark: Remark,
}

/// What would change of a `MultiClusterService`, in the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceChange {
    /// The service, as `namespace/name`.
    pub service: String,
    /// Fields: providers, consumers.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
    /// Backends of its load balancer that come.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub added: Vec<String>,
    /// Backends of its load balancer that become different.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub changed: Vec<String>,
    /// Backends of its load balancer that go.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub removed: Vec<String>,
    /// What its owner would be told, that is news.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<Remark>,
}

/// A template that policies would bring elsewhere, or otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementChange {
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// Fields: the policy that counts.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
    /// Each cluster to which it would go, stay with a difference, or no longer go.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub clusters: Vec<CopyChange>,
    /// Why it goes nowhere, where that is news.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<Remark>,
}

/// A copy of a template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CopyChange {
    /// The member.
    pub cluster: String,
    /// How.
    pub change: Change,
    /// What of it: replicas, fields that overrides set.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub fields: Vec<FieldChange>,
}

/// What was given and does not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ignored {
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// The member that it was for; none is the hub.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cluster: Option<String>,
    /// Why.
    pub why: String,
}
