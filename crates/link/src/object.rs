//! The objects that a member deals with, by name.

use std::fmt;
use std::sync::Arc;

use atoll_engine::names::Namespace;
use serde::{Deserialize, Serialize};

/// A kind that is watched in a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Kind {
    /// Namespaces.
    Namespace,
    /// Nodes, of which only the addresses are kept.
    Node,
    /// Services.
    Service,
    /// EndpointSlices.
    Slice,
    /// `ServiceExports`.
    Export,
    /// `ServiceImports`.
    Import,
    /// `ClusterProperties`.
    Property,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 7] =
        [Self::Namespace, Self::Node, Self::Service, Self::Slice, Self::Export, Self::Import, Self::Property];

    /// As in a URL.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::Service => "services",
            Self::Slice => "endpointslices",
            Self::Export => "serviceexports",
            Self::Import => "serviceimports",
            Self::Property => "clusterproperties",
        }
    }
}

/// The properties that a member has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum PropertyName {
    /// `cluster.clusterset.k8s.io`.
    ClusterId,
    /// `clusterset.k8s.io`.
    Clusterset,
}

impl PropertyName {
    /// Both.
    pub const ALL: [Self; 2] = [Self::ClusterId, Self::Clusterset];

    /// The object's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ClusterId => atoll_api::names::property::CLUSTER_ID,
            Self::Clusterset => atoll_api::names::property::CLUSTERSET,
        }
    }
}

impl fmt::Display for PropertyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An object of a member, for a person to find.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ObjectName {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if it has one.
    pub namespace: Option<Namespace>,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for ObjectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.plural(), self.name),
            None => write!(f, "{} {}", self.kind.plural(), self.name),
        }
    }
}
