//! What a pool is told: who could take connections, and how they are shared out.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::{Checks, Ejection, Time};

/// Something that takes connections. Its address is its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    /// The cluster that it is in.
    pub cluster: Arc<str>,
    /// Its part of what its cluster gets, beside the others there. 0 only when nobody else is left.
    pub weight: u32,
    /// It finishes what it has and wants nothing new.
    pub draining: bool,
}

impl Backend {
    /// An ordinary one.
    pub fn new(address: SocketAddr, cluster: &str) -> Self {
        Self { address, cluster: cluster.into(), weight: 1, draining: false }
    }
}

/// How one is picked among those that may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// By the client's address and port: several balancers agree, and a change moves few.
    #[default]
    Maglev,
    /// Whoever has the fewest connections for its weight.
    LeastConnections,
}

/// What a cluster gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClusterShare {
    /// Its share beside other clusters, however many backends it has. If no cluster has one, each backend counts alike.
    pub weight: Option<u32>,
    /// Clusters of a higher tier get connections only if no lower one has a healthy backend.
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
