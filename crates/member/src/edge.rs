//! The edge: Kubernetes objects in, our own small types out, and back. What a member says is checked here.

pub(crate) mod endpoints;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod meta;
pub(crate) mod service;
pub(crate) mod slice;

use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use atoll_engine::facts::NamespaceState;
use atoll_engine::names::{BadName, Namespace, NodeName};
use atoll_engine::network::Nodes;
use atoll_link::Problem;
use k8s_openapi::api::core::v1::{Namespace as NamespaceObject, Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DeserializeGuard;

use crate::core::event::{Seen, SeenProperty};
use crate::core::object::{Kind, PropertyName};

/// A kind that the edge can read.
pub(crate) trait Readable {
    /// Which.
    const KIND: Kind;
    /// Reduces the object to what concerns us; none if nothing does. What stays behind is said.
    fn read(&self, edge: &Edge, left_out: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable>;
}

/// What the edge has to know.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// The uid of our hub: the value of our label.
    pub hub: std::sync::Arc<str>,
    /// Shares strings that occur often.
    pub interned: std::sync::Arc<endpoints::Interned>,
}

/// Why an object means nothing to us.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    /// A name that Kubernetes would not take.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A `resourceVersion` that is no number.
    #[error("resourceVersion {0:?} is not a number")]
    Revision(String),
    /// The object does not fit its type.
    #[error("{0}")]
    Shape(String),
}

impl Readable for NamespaceObject {
    const KIND: Kind = Kind::Namespace;

    fn read(&self, _: &Edge, _: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        let name = Namespace::parse(self.metadata.name.as_deref().unwrap_or_default())?;
        let phase = self.status.as_ref().and_then(|status| status.phase.as_deref());
        let terminating = phase == Some("Terminating") || self.metadata.deletion_timestamp.is_some();
        let state = if terminating { NamespaceState::Terminating } else { NamespaceState::Active };
        Ok(Some(Seen::Namespace(name, state)))
    }
}

/// So many addresses, and so many pod ranges, of a node are read.
const OF_A_NODE_MOST: usize = 32;

impl Readable for Node {
    const KIND: Kind = Kind::Node;

    fn read(&self, _: &Edge, _: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        let name = NodeName::parse(self.metadata.name.as_deref().unwrap_or_default())?;
        let addresses = self.status.iter().flat_map(|status| status.addresses.iter().flatten());
        // Host names are of no use here, and no slice holds one.
        let addresses = addresses
            .filter(|address| ["InternalIP", "ExternalIP"].contains(&address.type_.as_str()))
            .filter_map(|address| address.address.parse::<std::net::IpAddr>().ok())
            .map(|address| address.to_canonical())
            .take(OF_A_NODE_MOST);
        let spec = self.spec.as_ref();
        let pods = spec.into_iter().flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr));
        let pods = pods.filter_map(|range| range.parse().ok()).take(OF_A_NODE_MOST).collect();
        Ok(Some(Seen::Node(name, Nodes { addresses: addresses.collect(), pods })))
    }
}

impl Readable for Service {
    const KIND: Kind = Kind::Service;

    fn read(&self, edge: &Edge, left_out: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        service::read(self, edge, left_out).map(Some)
    }
}

impl Readable for EndpointSlice {
    const KIND: Kind = Kind::Slice;

    fn read(&self, edge: &Edge, left_out: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        slice::read(self, edge, left_out).map(Some)
    }
}

impl Readable for ServiceExport {
    const KIND: Kind = Kind::Export;

    fn read(&self, _: &Edge, left_out: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        export::read(self, left_out).map(Some)
    }
}

impl Readable for ServiceImport {
    const KIND: Kind = Kind::Import;

    fn read(&self, edge: &Edge, _: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        import::read(self, edge).map(Some)
    }
}

impl Readable for ClusterProperty {
    const KIND: Kind = Kind::Property;

    fn read(&self, edge: &Edge, _: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        let name = self.metadata.name.as_deref().unwrap_or_default();
        let Some(name) = PropertyName::ALL.into_iter().find(|known| known.as_str() == name) else {
            return Ok(None);
        };
        let version = meta::version(&self.metadata)?;
        let ours = meta::is_ours(&self.metadata, &edge.hub);
        Ok(Some(Seen::Property(SeenProperty { name, version, ours, value: self.spec.value.clone() })))
    }
}

impl<K: Readable> Readable for DeserializeGuard<K> {
    const KIND: Kind = K::KIND;

    fn read(&self, edge: &Edge, left_out: &mut Vec<Problem>) -> Result<Option<Seen>, Unreadable> {
        match &self.0 {
            Ok(object) => object.read(edge, left_out),
            Err(invalid) => Err(Unreadable::Shape(invalid.error.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_its_addresses_and_the_networks_of_its_pods() {
        let node = serde_json::from_value::<Node>(serde_json::json!({
            "metadata": {"name": "node-1"},
            "spec": {"podCIDR": "10.1.0.0/24", "podCIDRs": ["10.1.0.0/24", "fd01::/64", "none"]},
            "status": {"addresses": [
                {"type": "Hostname", "address": "node-1"},
                {"type": "InternalIP", "address": "192.168.0.4"},
                {"type": "InternalIP", "address": "fd00::4"},
                {"type": "ExternalIP", "address": "203.0.113.4"},
                {"type": "ExternalIP", "address": "none"},
                {"type": "InternalDNS", "address": "10.0.0.1"},
            ]},
        }));
        let edge = Edge { hub: "hub".into(), interned: std::sync::Arc::default() };
        let Ok(Some(Seen::Node(name, Nodes { addresses, pods }))) =
            node.unwrap().read(&edge, &mut Vec::new())
        else {
            panic!()
        };
        assert_eq!(name.as_str(), "node-1");
        let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        assert_eq!(addresses, ["192.168.0.4", "203.0.113.4", "fd00::4"]);
        let pods: Vec<String> = pods.iter().map(ToString::to_string).collect();
        assert_eq!(pods, ["10.1.0.0/24", "fd01::/64"]);
    }
}
