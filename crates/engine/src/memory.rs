//! What is remembered on purpose: the hub persists it, so that a restart while a member is down changes nothing.
//!
//! Endpoints are not remembered; they are in the members. The hub writes an update down *before* it hands out the plan that
//! came with it: then a service missing from memory is one that no cluster holds anything of.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::facts::{
    InternalTrafficPolicy, Liveness, Locality, Pairs, ServicePort, SessionAffinity, TrafficDistribution,
};
use crate::names::{ClusterId, ServiceKey, Uid};
use crate::network::Family;
use crate::time::Time;

/// All that is remembered, by service. Each service is persisted on its own.
pub type Memory = BTreeMap<ServiceKey, ServiceMemory>;

/// What is remembered of one service. With no exports it is a tombstone: we know that no cluster exports it, which is more than
/// knowing nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServiceMemory {
    /// The export whose word counts, until it is deleted or invalid or its cluster leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incumbent: Option<Incumbent>,
    /// The export of each cluster that has one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub exports: BTreeMap<ClusterId, RememberedExport>,
    /// Where the derived Service has the hashed name because the plain one was taken: a rename would change its IP.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub hashed_in: BTreeSet<ClusterId>,
}

/// The winner that was chosen; another export of the same cluster is not it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Incumbent {
    /// Its cluster.
    pub cluster: ClusterId,
    /// Its uid.
    pub uid: Uid,
}

/// An export as it was last seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedExport {
    /// Its uid.
    pub uid: Uid,
    /// When it says it was made.
    pub created: Time,
    /// When the hub saw it first.
    pub first_seen: Time,
    /// The age that the hub grants it; see [`crate::services::precedence`].
    pub credited: Time,
    /// What it brings, or nothing while it is invalid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer: Option<Arc<Offer>>,
}

/// What a valid export brings into the merge: all but its endpoints.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Offer {
    /// Whether its Service is headless.
    pub headless: bool,
    /// The ports of its Service.
    pub ports: Vec<ServicePort>,
    /// The families of its Service.
    pub families: Vec<Family>,
    /// Its session affinity.
    #[serde(default)]
    pub session_affinity: SessionAffinity,
    /// The timeout of that affinity, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_ip_timeout: Option<u32>,
    /// Its internal traffic policy.
    #[serde(default)]
    pub internal_traffic_policy: InternalTrafficPolicy,
    /// Its traffic distribution.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Its exported labels, unchecked.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub labels: Pairs,
    /// Its exported annotations, unchecked.
    #[serde(default, skip_serializing_if = "Pairs::is_empty")]
    pub annotations: Pairs,
    /// Its own liveness policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub liveness: Option<Liveness>,
    /// Its own locality.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locality: Option<Locality>,
}

/// A change to what is remembered of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemoryUpdate {
    /// Remember this.
    Put(ServiceKey, ServiceMemory),
    /// Nothing is left to remember.
    Forget(ServiceKey),
}
