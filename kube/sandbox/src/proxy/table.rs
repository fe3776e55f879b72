//! Which endpoints stand behind which address and port, as kube-proxy reads it. Pure.

use crate::network::Protocol;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Where the proxy is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct NodeTopology {
    pub node: String,
    pub zone: String,
}

/// `namespace/name` of a Service.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ServiceName {
    pub namespace: String,
    pub name: String,
}

impl fmt::Display for ServiceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// What a Service says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServiceFact {
    /// Its own addresses; none for a headless one.
    pub cluster_ips: Vec<IpAddr>,
    /// Addresses that something outside the cluster leads here.
    pub external_ips: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<ServicePort>,
    /// How long a client stays with its endpoint, if it does.
    pub affinity: Option<Duration>,
    /// Only endpoints on the client's own node.
    pub local_only: bool,
}

/// A port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct ServicePort {
    pub name: String,
    pub port: u16,
    pub protocol: Protocol,
}

/// What an EndpointSlice says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub struct SliceFact {
    pub service: ServiceName,
    /// Names and numbers of the ports that all its endpoints have.
    pub ports: Vec<ServicePort>,
    pub endpoints: Vec<EndpointFact>,
}

/// One endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are Kubernetes'")]
pub struct EndpointFact {
    pub address: IpAddr,
    pub ready: bool,
    pub serving: bool,
    pub terminating: bool,
    pub node: Option<String>,
    pub for_zones: Vec<String>,
    pub for_nodes: Vec<String>,
}

/// Why a Service's address leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// It has no ready endpoint.
    NoEndpoints,
    /// The Service has no such port.
    NoSuchPort,
}

/// What stands behind an address and port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backend {
    /// Whose address it is.
    pub service: ServiceName,
    /// The Service's port.
    pub port: String,
    /// Who may be chosen, sorted.
    pub endpoints: Vec<SocketAddr>,
    /// How long a client stays with its endpoint, if it does.
    pub affinity: Option<Duration>,
    /// The address is the Service's own.
    pub own: bool,
}

/// What a look at the table finds.
#[derive(Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Found<'a> {
    NoService,
    Refused(&'a ServiceName, NoRoute),
    Backend(&'a Backend),
}

/// Where a client knocks.
pub type Frontend = (SocketAddr, Protocol);

/// All Services of a member with their endpoints.
#[derive(Clone, Debug, Default)]
pub struct Table {
    here: NodeTopology,
    services: BTreeMap<ServiceName, ServiceFact>,
    slices: BTreeMap<ServiceName, BTreeMap<String, SliceFact>>,
    /// Which Service a slice belongs to, by the slice's namespace and name.
    belongs: HashMap<(String, String), ServiceName>,
    frontends: HashMap<Frontend, Backend>,
    addresses: HashMap<IpAddr, ServiceName>,
}

impl Table {
    /// An empty table.
    pub fn new(here: NodeTopology) -> Self {
        Self { here, ..Self::default() }
    }

    /// Who stands behind an address.
    pub fn find(&self, dialled: SocketAddr, protocol: Protocol) -> Found<'_> {
        match (self.frontends.get(&(dialled, protocol)), self.addresses.get(&dialled.ip())) {
            (Some(backend), _) if backend.endpoints.is_empty() => {
                Found::Refused(&backend.service, NoRoute::NoEndpoints)
            }
            (Some(backend), _) => Found::Backend(backend),
            (None, Some(service)) => Found::Refused(service, NoRoute::NoSuchPort),
            (None, None) => Found::NoService,
        }
    }

    /// Everything that can be dialled, with what stands behind it.
    pub fn frontends(&self) -> impl Iterator<Item = (&Frontend, &Backend)> {
        self.frontends.iter()
    }

    /// Knows a Service from now on, or no longer. True if that changes where anything goes.
    pub fn put_service(&mut self, name: &ServiceName, fact: Option<ServiceFact>) -> bool {
        if self.services.get(name) == fact.as_ref() {
            return false;
        }
        match fact {
            Some(fact) => self.services.insert(name.clone(), fact),
            None => self.services.remove(name),
        };
        self.rebuild(name)
    }

    /// Knows a slice from now on, or no longer. True if that changes where anything goes.
    pub fn put_slice(&mut self, namespace: &str, name: &str, fact: Option<SliceFact>) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.belongs.get(&key).cloned();
        let mut changed = false;
        if let Some(before) = before.filter(|before| fact.as_ref().is_none_or(|fact| fact.service != *before))
        {
            self.belongs.remove(&key);
            if let Some(slices) = self.slices.get_mut(&before) {
                slices.remove(name);
                if slices.is_empty() {
                    self.slices.remove(&before);
                }
            }
            changed |= self.rebuild(&before);
        }
        if let Some(fact) = fact {
            let service = fact.service.clone();
            self.belongs.insert(key, service.clone());
            let slices = self.slices.entry(service.clone()).or_default();
            if slices.get(name) != Some(&fact) {
                slices.insert(name.to_owned(), fact);
                changed |= self.rebuild(&service);
            }
        }
        changed
    }

    /// Works out anew where a Service's addresses lead.
    fn rebuild(&mut self, name: &ServiceName) -> bool {
        let mut next = HashMap::new();
        let mut addresses = Vec::new();
        if let Some(service) = self.services.get(name) {
            let own = service.cluster_ips.iter().map(|ip| (*ip, true));
            let external = service.external_ips.iter().map(|ip| (*ip, false));
            for (ip, own) in external.chain(own) {
                addresses.push(ip);
                for port in &service.ports {
                    let backend = Backend {
                        service: name.clone(),
                        port: port.name.clone(),
                        endpoints: self.endpoints(name, service, port, ip.is_ipv4()),
                        affinity: service.affinity,
                        own,
                    };
                    next.insert((SocketAddr::new(ip, port.port), port.protocol), backend);
                }
            }
        }
        let old: HashMap<_, _> =
            self.frontends.iter().filter(|(_, backend)| backend.service == *name).map(clone_pair).collect();
        if old == next {
            return false;
        }
        self.frontends.retain(|_, backend| backend.service != *name);
        self.frontends.extend(next);
        self.addresses.retain(|_, service| service != name);
        self.addresses.extend(addresses.into_iter().map(|ip| (ip, name.clone())));
        true
    }

    fn endpoints(
        &self,
        name: &ServiceName,
        service: &ServiceFact,
        port: &ServicePort,
        ipv4: bool,
    ) -> Vec<SocketAddr> {
        let mut all = Vec::new();
        for slice in self.slices.get(name).into_iter().flat_map(BTreeMap::values) {
            let same = |own: &&ServicePort| own.name == port.name && own.protocol == port.protocol;
            let Some(target) = slice.ports.iter().find(same) else { continue };
            let fits = slice.endpoints.iter().filter(|endpoint| endpoint.address.is_ipv4() == ipv4);
            all.extend(fits.map(|endpoint| (endpoint, target.port)));
        }
        if service.local_only {
            all.retain(|(endpoint, _)| endpoint.node.as_deref() == Some(self.here.node.as_str()));
        }
        let usable = usable(&all, &self.here, !service.local_only);
        let mut chosen: Vec<_> =
            usable.iter().map(|(one, port)| SocketAddr::new(one.address, *port)).collect();
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    }
}

fn clone_pair<'a>((key, value): (&'a Frontend, &'a Backend)) -> (Frontend, Backend) {
    (*key, value.clone())
}

type Candidate<'a> = (&'a EndpointFact, u16);

/// The ready ones, the nearest if hints say so; if none is ready, those that still serve while they end.
fn usable<'a>(all: &[Candidate<'a>], here: &NodeTopology, hinted: bool) -> Vec<Candidate<'a>> {
    let ready: Vec<_> = all.iter().copied().filter(|(endpoint, _)| endpoint.ready).collect();
    if ready.is_empty() {
        return all.iter().copied().filter(|(one, _)| one.serving && one.terminating).collect();
    }
    if hinted {
        let same_node = nearest(&ready, |one| &one.for_nodes, &here.node);
        let near = same_node.or_else(|| nearest(&ready, |one| &one.for_zones, &here.zone));
        return near.unwrap_or(ready);
    }
    ready
}

/// Those meant for `here`. Hints count only if every endpoint has them and one of them is meant for us.
fn nearest<'a>(
    ready: &[Candidate<'a>],
    hints: impl Fn(&EndpointFact) -> &Vec<String>,
    here: &str,
) -> Option<Vec<Candidate<'a>>> {
    if here.is_empty() || ready.iter().any(|(endpoint, _)| hints(endpoint).is_empty()) {
        return None;
    }
    let near: Vec<_> =
        ready.iter().copied().filter(|(one, _)| hints(one).iter().any(|hint| hint == here)).collect();
    (!near.is_empty()).then_some(near)
}

#[cfg(test)]
mod tests;
