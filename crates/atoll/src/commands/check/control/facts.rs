//! What is known of the hub and of each member.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::types::Cluster;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;

use crate::commands::check::path::facts::Dns;
use crate::commands::check::ways::Trouble;

/// What an API says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiFact {
    /// Its version.
    pub(crate) version: String,
    /// How many seconds its clock is ahead of ours; none if it does not tell the time.
    pub(crate) ahead: Option<i64>,
}

/// The hub's Lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LeaseFact {
    pub(crate) holder: Option<String>,
    pub(crate) renewed: Option<Timestamp>,
    pub(crate) seconds: i64,
}

/// A CRD of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Crd {
    /// There, and as new as ours.
    Fine,
    /// Not there, or without the version that is used.
    Missing(String),
    /// There, and older; with what `judge` says of it.
    Older,
    /// Could not be read.
    Unknown,
}

/// The hub.
#[derive(Debug, Clone)]
pub(crate) struct HubFacts {
    /// When the lease was read: its age counts from then, however long other checks take.
    pub(crate) at: Timestamp,
    pub(crate) api: Result<ApiFact, Trouble>,
    /// The groups and plurals that it does not serve, of those that it should.
    pub(crate) missing: Vec<String>,
    pub(crate) lease: Result<LeaseFact, Trouble>,
    /// The version of the hub that leads; none if it can't be asked.
    pub(crate) hub_version: Option<String>,
    /// What `atoll status` says is wrong; none if nothing is, or the leader can't be asked.
    pub(crate) status: Option<String>,
    /// The members.
    pub(crate) clusters: Result<Vec<Cluster>, Trouble>,
    /// Their Secrets, which say what networks count.
    pub(crate) secrets: Result<Vec<Secret>, Trouble>,
    /// The namespaces whose services only go where a ServiceImport is.
    pub(crate) explicit: BTreeSet<String>,
}

/// A member.
#[derive(Debug, Clone)]
pub(crate) struct MemberFacts {
    pub(crate) name: String,
    pub(crate) cluster: Cluster,
    /// Why there is no way to it from here.
    pub(crate) no_way: Option<String>,
    pub(crate) api: Result<ApiFact, Trouble>,
    /// The rights that the hub lacks there; none if it could not be asked as the hub.
    pub(crate) lacks: Result<Vec<String>, Trouble>,
    pub(crate) crds: Vec<(String, Crd)>,
    /// When the hub's token ends; none if it says no end.
    pub(crate) token_ends: Result<Option<Timestamp>, Trouble>,
    /// Its ClusterProperties, by name.
    pub(crate) properties: Result<BTreeMap<String, String>, Trouble>,
    /// What it exports: namespace and name.
    pub(crate) exports: Vec<(String, String)>,
    pub(crate) namespaces: Option<BTreeSet<String>>,
    pub(crate) dns: Dns,
}
