//! What objects say of one service, seen from one client cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::networking::v1::NetworkPolicy;

use super::probe::{Answer, Reach};

/// A port that a container lists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ContainerPort {
    pub(crate) name: Option<String>,
    pub(crate) port: u16,
    pub(crate) protocol: String,
}

/// A pod of a source.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct PodFact {
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) addresses: Vec<IpAddr>,
    pub(crate) ports: Vec<ContainerPort>,
}

/// A port of the Service in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) port: u16,
    pub(crate) target: TargetPort,
}

/// Where a port of a Service leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TargetPort {
    Number(u16),
    Name(String),
}

/// An exporting cluster.
#[derive(Debug, Clone, Default)]
pub(crate) struct Source {
    pub(crate) cluster: String,
    /// Why its export is not valid: reason and message.
    pub(crate) invalid: Option<(String, String)>,
    /// Its Service; none if it is not there or could not be read.
    pub(crate) service: Option<ServiceFact>,
    /// How many endpoints its own slices have, and how many of them are ready; none if they could not be read.
    pub(crate) endpoints: Option<(usize, usize)>,
    /// The pods of the namespace; none if they could not be read.
    pub(crate) pods: Option<Vec<PodFact>>,
    /// The NetworkPolicies of the namespace; none if they could not be read.
    pub(crate) policies: Option<Vec<NetworkPolicy>>,
}

/// A Service in a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ServiceFact {
    /// Empty if it has none: its slices are written by others then.
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) ports: Vec<Target>,
}

/// An endpoint as the client's cluster has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Endpoint {
    /// The cluster that it is of.
    pub(crate) cluster: String,
    pub(crate) to: SocketAddr,
}

/// How CoreDNS of a cluster stands to `atoll dns`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Led {
    /// It forwards the zone, as it should.
    InPlace,
    /// It was never set up.
    Absent,
    /// It forwards the zone to other addresses than it should.
    Outdated,
    /// It was set up, and the Corefile was overwritten.
    Reverted(String),
    /// CoreDNS's own option serves the zone.
    Multicluster,
    /// Another block serves the zone.
    Others,
    /// There is no Corefile where one is expected.
    NoCorefile,
    /// It could not be read.
    Unknown(String),
}

/// The names of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Dns {
    pub(crate) led: Led,
    /// Whether a server of `atoll dns` is ready; none if that could not be read, or there is no such Service.
    pub(crate) servers: Option<bool>,
}

/// All that objects say.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// As `namespace/name`.
    pub(crate) service: String,
    pub(crate) namespace: String,
    /// The cluster whose pods are the clients.
    pub(crate) client: String,
    /// Whether it has the namespace; none if that could not be read.
    pub(crate) has_namespace: Option<bool>,
    /// Whether it has the ServiceImport; none if that could not be read.
    pub(crate) imported: Option<bool>,
    /// The addresses of the ServiceImport; none for a headless service.
    pub(crate) addresses: Vec<IpAddr>,
    /// The endpoints that it holds.
    pub(crate) endpoints: Vec<Endpoint>,
    pub(crate) sources: Vec<Source>,
    /// The NetworkPolicies of the client's namespace; none if they could not be read.
    pub(crate) policies: Option<Vec<NetworkPolicy>>,
    pub(crate) dns: Dns,
}

/// What the probe found.
#[derive(Debug, Clone, Default)]
pub(crate) struct Probes {
    /// The pod's own addresses and labels.
    pub(crate) from: Vec<IpAddr>,
    pub(crate) labels: BTreeMap<String, String>,
    /// To endpoints.
    pub(crate) endpoints: Vec<(Endpoint, Reach)>,
    /// To the addresses of the ServiceImport.
    pub(crate) service: Vec<(SocketAddr, Reach)>,
    /// To pods of other services in the sources, to tell a route that is missing from a policy.
    pub(crate) others: Vec<(Endpoint, Reach)>,
    /// The service's name.
    pub(crate) name: Option<Answer>,
    /// A name that every cluster answers.
    pub(crate) own_name: Option<Answer>,
}

impl Facts {
    pub(crate) fn source(&self, cluster: &str) -> Option<&Source> {
        self.sources.iter().find(|source| source.cluster == cluster)
    }

    /// The clusters whose endpoints it holds.
    pub(crate) fn clusters(&self) -> BTreeSet<&str> {
        self.endpoints.iter().map(|one| one.cluster.as_str()).collect()
    }
}
