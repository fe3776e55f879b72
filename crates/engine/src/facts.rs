//! What one cluster says of itself, in the engine's own compact types.
//!
//! Slices that a multi-cluster controller wrote are never facts: whoever makes facts of objects leaves them out, or exports
//! would loop. FQDN slices are left out as well.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::annotation::{liveness, locality};
use serde::{Deserialize, Serialize};

use crate::names::{AppProtocol, Hostname, NodeName, PortName, Uid, Zone};
use crate::network::Family;
use crate::time::Time;

/// Labels or annotations, as a user wrote them: unchecked.
pub type Pairs = BTreeMap<Arc<str>, Arc<str>>;

/// What a cluster can do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    /// The families its Services can have, the primary one first.
    pub families: Vec<Family>,
    /// The minor version of its Kubernetes 1.x API.
    pub kubernetes_minor: u16,
}

/// Whether a cluster can be reached now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Contact {
    /// Its lease is current.
    #[default]
    Alive,
    /// Its lease has ended.
    Lost {
        /// When.
        since: Time,
    },
}

impl Contact {
    /// Since when it is lost, if it is.
    pub fn lost(self) -> Option<Time> {
        match self {
            Self::Alive => None,
            Self::Lost { since } => Some(since),
        }
    }
}

/// A namespace that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum NamespaceState {
    /// Objects can be made in it.
    Active,
    /// It is going; creates are answered with 403.
    Terminating,
}

/// A transport protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Protocol {
    /// TCP.
    Tcp,
    /// UDP.
    Udp,
    /// SCTP.
    Sctp,
}

impl Protocol {
    /// As Kubernetes spells it; nothing said is TCP.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        let text = text.unwrap_or(Self::Tcp.as_str());
        [Self::Tcp, Self::Udp, Self::Sctp].into_iter().find(|protocol| protocol.as_str() == text)
    }

    /// As Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
        }
    }
}

/// A port of a Service.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServicePort {
    /// Its name, empty when it has none.
    pub name: PortName,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number, as clients see it.
    #[serde(deserialize_with = "number::port")]
    pub port: u16,
    /// What is spoken there, if its owner says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_protocol: Option<AppProtocol>,
}

/// `spec.type` of a Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ServiceType {
    /// ClusterIP, headless ones included.
    ClusterIp,
    /// NodePort: exported like ClusterIP.
    NodePort,
    /// `LoadBalancer`: exported like ClusterIP.
    LoadBalancer,
    /// `ExternalName`: can't be exported.
    ExternalName,
}

/// `spec.sessionAffinity`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum SessionAffinity {
    /// None.
    #[default]
    None,
    /// By the client's address.
    ClientIp,
}

/// `spec.internalTrafficPolicy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub enum InternalTrafficPolicy {
    /// All endpoints.
    #[default]
    Cluster,
    /// Those of the client's node.
    Local,
}

/// `spec.trafficDistribution`. A value unknown to us is left out of the facts: no importer's API could be asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum TrafficDistribution {
    /// The old name of `PreferSameZone`.
    PreferClose,
    /// Endpoints of the client's zone first.
    PreferSameZone,
    /// Endpoints of the client's node first, then of its zone.
    PreferSameNode,
}

/// A Service that has been, or may be, exported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceFact {
    /// Its type.
    pub service_type: ServiceType,
    /// Whether its `clusterIP` is `None`.
    pub headless: bool,
    /// Whether a multi-cluster controller made it: exporting such a Service would loop.
    pub derived: bool,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// Its session affinity.
    pub session_affinity: SessionAffinity,
    /// `sessionAffinityConfig.clientIP.timeoutSeconds`.
    pub client_ip_timeout: Option<u32>,
    /// Its internal traffic policy.
    pub internal_traffic_policy: InternalTrafficPolicy,
    /// Its traffic distribution.
    pub traffic_distribution: Option<TrafficDistribution>,
    /// Its families, the primary one first; as the API server defaulted them.
    pub families: Vec<Family>,
}

/// What happens to endpoints whose cluster is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Liveness {
    /// They stay, marked stale.
    #[default]
    Retain,
    /// They stay while they answer a probe from the consumer's side.
    Probe,
    /// They go.
    Withdraw,
}

impl Liveness {
    /// As users write it in an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            liveness::RETAIN => Some(Self::Retain),
            liveness::PROBE => Some(Self::Probe),
            liveness::WITHDRAW => Some(Self::Withdraw),
            _ => None,
        }
    }
}

/// Which endpoints a consumer gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Locality {
    /// All of them.
    #[default]
    Anywhere,
    /// Remote ones only while the consumer's own cluster has none that is ready.
    LocalFirst,
}

impl Locality {
    /// As users write it in an annotation.
    pub fn parse(text: &str) -> Option<Self> {
        let is = |names: [&str; 2]| names.contains(&text);
        if is(locality::ANYWHERE) {
            Some(Self::Anywhere)
        } else {
            is(locality::LOCAL_FIRST).then_some(Self::LocalFirst)
        }
    }
}

/// What holds for exports that do not say otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Settings {
    /// What happens to endpoints whose cluster is lost.
    pub liveness: Liveness,
    /// Which endpoints a consumer gets.
    pub locality: Locality,
}

/// A ServiceExport.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExportFact {
    /// Its uid: a deleted and remade export is another one.
    pub uid: Uid,
    /// Its `creationTimestamp`: the member's word.
    pub created: Time,
    /// `spec.exportedLabels`.
    pub labels: Pairs,
    /// `spec.exportedAnnotations`.
    pub annotations: Pairs,
    /// Its own liveness policy, if it has one.
    pub liveness: Option<Liveness>,
    /// Its own locality, if it has one.
    pub locality: Option<Locality>,
}

/// An EndpointSlice of an exported Service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceFact {
    /// Its `addressType`.
    pub family: Family,
    /// Its ports: target ports, under the names of the Service's ports.
    pub ports: Vec<SlicePort>,
    /// Its endpoints.
    pub endpoints: Vec<EndpointFact>,
}

/// A port of an EndpointSlice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SlicePort {
    /// The name of the Service's port that it serves.
    pub name: PortName,
    /// Its protocol.
    pub protocol: Protocol,
    /// The target port; none means any.
    #[serde(default, deserialize_with = "number::any_port")]
    pub port: Option<u16>,
    /// What is spoken there.
    pub app_protocol: Option<AppProtocol>,
}

/// The conditions of an endpoint, exactly as its cluster gives them: they are copied, never judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct EndpointConditions {
    /// `ready`; unset counts as true.
    pub ready: Option<bool>,
    /// `serving`.
    pub serving: Option<bool>,
    /// `terminating`.
    pub terminating: Option<bool>,
}

impl EndpointConditions {
    /// Whether a consumer takes the endpoint for ready.
    pub fn is_ready(self) -> bool {
        self.ready.unwrap_or(true)
    }
}

/// An endpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndpointFact {
    /// Its addresses; one, but for slices made by hand.
    pub addresses: Box<[IpAddr]>,
    /// Its conditions.
    pub conditions: EndpointConditions,
    /// Its hostname.
    pub hostname: Option<Hostname>,
    /// Its node.
    pub node: Option<NodeName>,
    /// Its zone.
    pub zone: Option<Zone>,
    /// `hints.forZones`, for an endpoint whose zone is not given.
    pub for_zones: Box<[Zone]>,
}

/// No port has the number 0: who reads one from elsewhere refuses it.
mod number {
    use std::num::NonZeroU16;

    use serde::{Deserialize, Deserializer};

    pub(super) fn port<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
        NonZeroU16::deserialize(from).map(NonZeroU16::get)
    }

    pub(super) fn any_port<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u16>, D::Error> {
        Ok(Option::<NonZeroU16>::deserialize(from)?.map(NonZeroU16::get))
    }
}
