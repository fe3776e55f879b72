//! What the balancer of a `MultiClusterService` leads to: ports as the providers' Services have them, and the providers' endpoints
//! behind each, by the same rules of trust and liveness as for every consumer.

use std::collections::BTreeSet;
use std::net::SocketAddr;

use super::mcs::is_known;
use super::sources::Sources;
use super::supply::{self, Source};
use crate::facts::{EndpointConditions, Protocol, ServiceFact, SessionAffinity};
use crate::intent::CrossCluster;
use crate::names::{ClusterId, PortName, ServiceKey};
use crate::network::Family;
use crate::plan::{Backend, Balanced, Slice, SlicesFrom, Unknown};
use crate::world::World;

/// What Kubernetes takes where a Service does not say.
const AFFINITY: u32 = 10_800;

/// Puts together what all providers have.
pub(super) fn balanced(
    world: &World,
    key: &ServiceKey,
    asked: &CrossCluster,
    providers: &BTreeSet<ClusterId>,
    sources: &mut Sources,
) -> Balanced {
    let mut balanced = Balanced::default();
    for id in providers {
        let Some(cluster) = world.clusters.get(id) else { continue };
        let known = is_known(world, key, id, cluster);
        let seen = Source { id, policy: asked.liveness, known, own: false };
        let verdict = supply::judge(world, seen, providers, sources).verdict;
        match supply::from(seen, verdict, None, &Family::BOTH, sources) {
            SlicesFrom::Exactly(slices, _) => {
                let service = world.holding(key, id).and_then(|holding| holding.service.as_deref());
                let Some(service) = service else { continue };
                balanced.affinity = balanced.affinity.or_else(|| affinity(service));
                offer(&mut balanced, asked, service);
                for slice in &*slices {
                    add(&mut balanced, id, service, slice);
                }
            }
            SlicesFrom::KeepWhatIsThere(Unknown::NotHeard) => drop(balanced.awaited.insert(id.clone())),
            SlicesFrom::KeepWhatIsThere(Unknown::LostUnheard(_)) => {
                balanced.unheard.insert(id.clone());
            }
            SlicesFrom::Nothing(_) => {}
        }
    }
    balanced
}

fn affinity(service: &ServiceFact) -> Option<u32> {
    match service.session_affinity {
        SessionAffinity::None => None,
        SessionAffinity::ClientIp => Some(service.client_ip_timeout.unwrap_or(AFFINITY)),
    }
}

/// A balancer carries streams and datagrams.
fn carried(protocol: Protocol) -> bool {
    match protocol {
        Protocol::Tcp | Protocol::Udp => true,
        Protocol::Sctp => false,
    }
}

fn offer(balanced: &mut Balanced, asked: &CrossCluster, service: &ServiceFact) {
    for port in service.ports.iter().filter(|port| carried(port.protocol)) {
        let wanted = |one: &crate::intent::AskedPort| {
            one.port == port.port && one.name.as_ref().is_none_or(|name| *name == port.name)
        };
        if asked.ports.is_empty() || asked.ports.iter().any(wanted) {
            balanced.ports.entry((port.protocol, port.port)).or_insert_with(|| port.name.clone());
        }
    }
}

fn add(balanced: &mut Balanced, cluster: &ClusterId, service: &ServiceFact, slice: &Slice) {
    let number = |name: &PortName, protocol: Protocol| {
        let its = service.ports.iter().find(|port| port.name == *name && port.protocol == protocol)?;
        Some((protocol, its.port))
    };
    for port in &slice.ports {
        // A slice with no number means any port: no client could be sent there.
        let (Some(place), Some(target)) = (number(&port.name, port.protocol), port.port) else { continue };
        if !balanced.ports.contains_key(&place) {
            continue;
        }
        for endpoint in &slice.endpoints {
            let Some(ready) = usable(endpoint.conditions) else { continue };
            for &address in &endpoint.addresses {
                let backend = Backend { cluster: cluster.clone(), zone: endpoint.zone.clone(), ready };
                balanced.backends.entry((place, SocketAddr::new(address, target))).or_insert(backend);
            }
        }
    }
}

/// Whether it takes new clients; none if it takes no clients at all.
fn usable(conditions: EndpointConditions) -> Option<bool> {
    match (conditions.is_ready(), conditions.serving) {
        (true, _) => Some(true),
        (false, Some(true)) => Some(false),
        (false, Some(false) | None) => None,
    }
}
