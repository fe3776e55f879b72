//! What a pool is told: who could take connections, and how they are shared out. The same types are what a configuration lists: in a file, in
//! a `ConfigMap`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{Checks, Ejection, Time};

/// Something that takes connections. Its address is its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    /// The cluster that it is in; empty if that does not matter.
    #[serde(
        default,
        skip_serializing_if = "str::is_empty",
        serialize_with = "text",
        deserialize_with = "shared"
    )]
    pub cluster: Arc<str>,
    /// Its part of what its cluster gets, beside the others there. With 0 it is used only when no other backend is left.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub weight: u32,
    /// It finishes what it has and wants nothing new.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub draining: bool,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn is_one(number: &u32) -> bool {
    *number == 1
}

fn text<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(text)
}

fn shared<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<str>, D::Error> {
    String::deserialize(deserializer).map(Into::into)
}

impl Backend {
    /// An ordinary one.
    pub fn new(address: SocketAddr, cluster: &str) -> Self {
        Self { address, cluster: cluster.into(), weight: 1, draining: false }
    }
}

/// How one is picked among those that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Algorithm {
    /// By the client's address and port: several balancers agree, and a change moves few.
    #[default]
    Maglev,
    /// Whoever has the fewest connections for its weight.
    LeastConnections,
}

/// What a cluster gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ClusterShare {
    /// Its share beside other clusters, however many backends it has. If no cluster has one, each backend counts alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
    /// Clusters of a higher tier get connections only if no lower one has a healthy backend.
    #[serde(default)]
    pub tier: u32,
}

/// How a pool shares connections out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How one is picked.
    pub algorithm: Algorithm,
    /// A client comes back to the same backend for so long after its last connection.
    pub affinity: Option<Time>,
    /// What each cluster gets; one that is not named has the first tier, and a weight of 1 if others have weights.
    pub clusters: BTreeMap<Arc<str>, ClusterShare>,
    /// Whether and how backends are checked.
    pub checks: Option<Checks>,
    /// Whether and when those that fail are left out.
    pub ejection: Option<Ejection>,
    /// For how long a backend that is no longer listed may finish its connections.
    pub drain: Time,
    /// Balancers that share clients need the same.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::default(),
            affinity: None,
            clusters: BTreeMap::new(),
            checks: None,
            ejection: Some(Ejection::default()),
            drain: Time::from_secs(30),
            seed: 0,
        }
    }
}
