//! Why a service is as it is, in each cluster.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Header, Remark};

/// Why a service is as it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServiceExplanation {
    /// Which service.
    #[serde(flatten)]
    pub header: Header,
    /// When the leader said so, in RFC 3339.
    pub at: String,
    /// The name of the clusterset.
    pub clusterset: String,
    /// The verdict: the worst reason of all, or that all is well.
    pub verdict: Remark,
    /// What the hub itself waits for before this is final.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pending: Vec<Remark>,
    /// Under which names clients in importing clusters find it.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub names: Vec<String>,
    /// `ClusterSetIP` or `Headless`, if any cluster exports it.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none", default)]
    pub kind: Option<String>,
    /// The merged ports.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub ports: Vec<Port>,
    /// On what the exports disagree, and who won.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub conflicts: Vec<Remark>,
    /// Each member.
    pub clusters: Vec<ClusterPart>,
    /// What a `MultiClusterService` of this name comes to.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub multi_cluster_service: Option<CrossCluster>,
    /// What policies of the hub do with the Service as a template.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub template: Option<Template>,
}

/// A port of a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// Its name; empty if it has none.
    #[serde(skip_serializing_if = "String::is_empty", default)]
    pub name: String,
    /// `TCP`, `UDP` or `SCTP`.
    pub protocol: String,
    /// Its number.
    pub port: u16,
}

/// What one member has to do with a service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterPart {
    /// The member.
    pub cluster: String,
    /// How it is with the member itself; nothing if all is well.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub member: Vec<Remark>,
    /// Its export, if it has one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub export: Option<Export>,
    /// Whether and how it imports the service.
    pub import: Import,
    /// What a `MultiClusterService` brings here.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dispatch: Option<Import>,
}

/// An export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Export {
    /// Whether it is a part of the service.
    pub valid: bool,
    /// Its place in the order of precedence: 1 wins conflicts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub precedence: Option<usize>,
    /// Its endpoints, counted.
    pub endpoints: Endpoints,
    /// Why.
    pub remarks: Vec<Remark>,
}

/// Endpoints, counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// Those that are ready, and may be used.
    pub ready: usize,
    /// Those that are not ready.
    pub not_ready: usize,
    /// Addresses that are refused.
    pub refused: usize,
}

/// What a cluster holds of a service that others provide.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Import {
    /// Whether it holds it. False where that is not known, and a remark says so.
    pub present: bool,
    /// The Service that clients use.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub service: Option<String>,
    /// Endpoints that clients can use here, from all sources.
    pub endpoints: Endpoints,
    /// Why.
    pub remarks: Vec<Remark>,
    /// What it holds of each source.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub sources: Vec<Source>,
}

/// What a cluster holds of one source.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Source {
    /// The source.
    pub cluster: String,
    /// Why all of it is in or out; nothing where each endpoint has its own reason.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub remarks: Vec<Remark>,
    /// Each address.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub candidates: Vec<Candidate>,
    /// Whether there are more than are listed. Ask with `in` and `from` for fewer clusters.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub more: bool,
}

/// An address that could be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Candidate {
    /// The address.
    pub address: String,
    /// The `EndpointSlice` that has it at the source.
    pub slice: String,
    /// Whether it is in.
    pub used: bool,
    /// The deciding fact.
    pub remark: Remark,
    /// For a refused address: why, as in metrics.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub detail: Option<String>,
}

/// What a `MultiClusterService` comes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CrossCluster {
    /// The members that provide.
    pub providers: Vec<String>,
    /// The members that consume.
    pub consumers: Vec<String>,
    /// What its owner should know.
    pub remarks: Vec<Remark>,
    /// Where its load balancer leads to: `address:port` to the cluster.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub backends: BTreeMap<String, String>,
}

/// What policies do with an object of the hub.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Template {
    /// The object, as `Kind namespace/name`.
    pub object: String,
    /// Why it goes where it goes.
    pub remarks: Vec<Remark>,
    /// The policies that select it, the one that counts first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub policies: Vec<PolicyPart>,
    /// Each cluster that was considered.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub placements: Vec<Placement>,
}

/// A policy that selects an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyPart {
    /// The policy, as `Kind namespace/name`.
    pub policy: String,
    /// Whether it counts.
    pub counts: bool,
    /// Why.
    pub remark: Remark,
}

/// What a policy means for one cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Placement {
    /// The cluster.
    pub cluster: String,
    /// Whether it is chosen.
    pub chosen: bool,
    /// How many replicas go there, where they are divided.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub replicas: Option<i64>,
    /// Why; and what became of the copy.
    pub remarks: Vec<Remark>,
}
