//! What is asked of the clusterset.
//!
//! An intent decides four things; all else is common to both kinds of it: who provides ([`crate::services::recall`],
//! [`crate::services::mcs`]), who consumes, which Service of a consumer the endpoints are attached to, and how the slices there
//! are called. Facts, rendering, liveness, locality and naming are the same code for both.

pub mod imports;

use std::collections::BTreeSet;

use atoll_api::names::prefix;

use crate::facts::{Liveness, Locality};
use crate::names::{ClusterId, PortName, SliceName};
use crate::services::naming;
use crate::world::World;

/// The kinds of intents; a service can have both at once, and then has slices of both, on different Services of a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Intent {
    /// KEP-1645: a ServiceExport offers, and every cluster with the namespace imports.
    Export,
    /// A `MultiClusterService`: some clusters provide, some consume, under the Service's own name.
    CrossCluster,
}

impl Intent {
    /// How a consumer calls the slice that `source` calls `original`. No name of one kind is a name of the other.
    pub(crate) fn slice_name(self, world: &World, source: &ClusterId, original: &SliceName) -> SliceName {
        match self {
            Self::Export => naming::slice(prefix::IMPORTED, source, original, &world.clusters),
            Self::CrossCluster => naming::dispatched(source, original, &world.clusters),
        }
    }
}

/// What a `MultiClusterService` asks for. One of type `LoadBalancer` has no consumers, and is balanced.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CrossCluster {
    /// Whose endpoints are used.
    pub providers: Clusters,
    /// Who uses them.
    pub consumers: Clusters,
    /// The ports that are used; all of them if there are none here.
    pub ports: Vec<AskedPort>,
    /// Its own liveness policy, if it has one.
    pub liveness: Option<Liveness>,
    /// Its own locality, if it has one.
    pub locality: Option<Locality>,
    /// Whether hostnames cross: `web-0.web.ns.svc` then answers from every cluster that has one.
    pub hostnames: bool,
    /// Whether one balancer outside all clusters leads to the providers.
    pub balanced: bool,
    /// Whether its author may not ask for this: nothing follows from it, and what was brought for it stays as it is.
    pub frozen: bool,
}

/// Some clusters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Clusters {
    /// Every member.
    #[default]
    All,
    /// Those of them that are members.
    Named(BTreeSet<ClusterId>),
}

impl Clusters {
    /// Whether it is one of them.
    pub fn contains(&self, id: &ClusterId) -> bool {
        match self {
            Self::All => true,
            Self::Named(named) => named.contains(id),
        }
    }

    /// Those that are named.
    pub fn named(&self) -> impl Iterator<Item = &ClusterId> {
        match self {
            Self::All => None,
            Self::Named(named) => Some(named),
        }
        .into_iter()
        .flatten()
    }
}

/// A port that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskedPort {
    /// Its name in the Service, if it is given.
    pub name: Option<PortName>,
    /// Its number in the Service.
    pub port: u16,
}
