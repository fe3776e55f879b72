//! How the clusterset is: `atoll status`.

use serde::{Deserialize, Serialize};

use super::{Header, Remark};

/// How the clusterset is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterSetStatus {
    /// Which clusterset.
    #[serde(flatten)]
    pub header: Header,
    /// When the leader said so, in RFC 3339.
    pub at: String,
    /// The clusterset's name.
    pub clusterset: String,
    /// Who leads.
    pub leader: String,
    /// The leader's version.
    pub version: String,
    /// The verdict: the worst of all, or that all is well.
    pub verdict: Remark,
    /// What is counted.
    pub totals: Totals,
    /// Each member.
    pub members: Vec<Member>,
    /// What is wrong, by service, the worst first.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub troubles: Vec<Trouble>,
    /// Whether more services have troubles than are listed.
    #[serde(default)]
    pub more_troubles: bool,
}

/// A service with a trouble.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trouble {
    /// The service, as `namespace/name`.
    pub service: String,
    /// What is wrong.
    pub remark: Remark,
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Totals {
    /// Services that some cluster exports.
    pub services: usize,
    /// Valid exports.
    pub exports: usize,
    /// Exports that are not valid.
    pub invalid_exports: usize,
    /// Services whose exports disagree.
    pub conflicts: usize,
    /// Imports, in all clusters.
    pub imports: usize,
    /// Services with a source that is lost.
    pub stale: usize,
    /// Services with a refused endpoint.
    pub refused: usize,
    /// `MultiClusterServices`.
    pub multi_cluster_services: usize,
    /// Load balancers.
    pub balancers: usize,
    /// Services that wait for a plan.
    pub planning: usize,
    /// Services that wait for the hub's API.
    pub unwritten: usize,
    /// Services that are not counted yet: ask again.
    #[serde(default)]
    pub uncounted: usize,
}

/// A member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Member {
    /// Its name.
    pub cluster: String,
    /// `Push` or `Pull`.
    pub mode: String,
    /// Its Kubernetes version, where known.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// How it is.
    pub remark: Remark,
    /// Services that it exports.
    pub exports: usize,
    /// Services that it imports.
    pub imports: usize,
    /// Endpoints that it gives to others.
    pub endpoints: usize,
    /// How long the last changes took to be written here, in milliseconds: the median of the last ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub lag_milliseconds: Option<f64>,
    /// What else a person must do there.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub problems: Vec<Remark>,
}
