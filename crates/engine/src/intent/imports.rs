//! What `ServiceImports` of the hub ask for, beside the automatic imports of KEP-1645.
//!
//! ```text
//!   namespace     a ServiceImport in the hub        who imports
//!   auto          whether or not                    every cluster with the namespace
//!   explicit      goes to some clusters             those
//!   explicit      there is none                     no cluster
//! ```
//! Where one goes and names ports, only these are imported.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::facts::{Protocol, ServicePort};
use crate::names::{ClusterId, Namespace, PortName, ServiceKey};

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct HubImports {
    /// The namespaces whose services are imported only where that is asked for.
    pub explicit: BTreeSet<Namespace>,
    /// The `ServiceImports` of the hub.
    pub asked: BTreeMap<ServiceKey, Asked>,
}

/// A ServiceImport of the hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// There is one, and it is not known yet where it goes: nothing changes until that is known.
    Unplaced,
    /// It goes there.
    To(Arc<ImportTo>),
}

/// Where a ServiceImport of the hub goes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportTo {
    /// The clusters.
    pub clusters: BTreeSet<ClusterId>,
    /// The ports that are imported; all of them if there are none here.
    pub ports: Vec<ImportPort>,
}

/// A port that is asked for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ImportPort {
    /// Its name, if it is given.
    pub name: Option<PortName>,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
}

impl ImportPort {
    /// Whether it is this one.
    pub fn means(&self, port: &ServicePort) -> bool {
        self.port == port.port
            && self.protocol == port.protocol
            && self.name.as_ref().is_none_or(|name| *name == port.name)
    }
}

/// Whether a cluster imports a service, by the hub's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// It does; only these ports, if any are named.
    Yes(&'a [ImportPort]),
    /// It does not.
    No,
    /// It is not known yet.
    Unknown,
}

impl HubImports {
    /// Whether `cluster` imports the service.
    pub fn wanted(&self, key: &ServiceKey, cluster: &ClusterId) -> Wanted<'_> {
        match (self.asked.get(key), self.explicit.contains(&key.namespace)) {
            (Some(Asked::Unplaced), _) => Wanted::Unknown,
            (Some(Asked::To(to)), _) if to.clusters.contains(cluster) => Wanted::Yes(&to.ports),
            (Some(Asked::To(_)) | None, false) => Wanted::Yes(&[]),
            (Some(Asked::To(_)) | None, true) => Wanted::No,
        }
    }
}
