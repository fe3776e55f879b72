//! A slice of one cluster as others hold it: what may cross the border, under the names that the import uses.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::ports::{PortFate, PortFates};
use crate::facts::{EndpointFact, SliceFact, SlicePort, TrafficDistribution};
use crate::names::{ClusterId, PortName, SliceName};
use crate::network::territory::Border;
use crate::plan::{Endpoint, Slice};
use crate::reason::{PortDropped, SliceNote};

/// Where a slice comes from, and by which rules it goes.
#[derive(Debug, Clone, Copy)]
pub struct Way<'a> {
    /// Its cluster.
    pub source: &'a ClusterId,
    /// Its name there.
    pub original: &'a SliceName,
    /// Its name in the importers.
    pub name: &'a SliceName,
    /// What of it goes.
    pub rules: Rules<'a>,
    /// What its cluster may announce.
    pub border: Border<'a>,
    /// Whether it stays in its own cluster: node names mean something only there.
    pub own: bool,
}

/// What of a source's slices goes, and how; the same for all of them.
#[derive(Debug, Clone, Copy)]
pub struct Rules<'a> {
    /// What becomes of the ports.
    pub ports: PortRule<'a>,
    /// How the service wants its traffic spread.
    pub distribution: Option<TrafficDistribution>,
    /// Whether hostnames go along.
    pub hostnames: bool,
}

/// What becomes of a slice's ports.
#[derive(Debug, Clone, Copy)]
pub enum PortRule<'a> {
    /// They go under the names of a merged service; none if the source has no part in it.
    Merged(Option<&'a PortFates>),
    /// They go as they are.
    All,
    /// Those of these names go as they are.
    Only(&'a BTreeSet<PortName>),
}

/// Makes the slice to be held out of the slice that was seen. One with no endpoints is held, too.
pub fn render(fact: &SliceFact, way: Way<'_>) -> Slice {
    let mut notes = Vec::new();
    let ports = fact.ports.iter().filter_map(|port| carry_port(port, way.rules.ports, &mut notes)).collect();
    let mut endpoints = Vec::with_capacity(fact.endpoints.len());
    for endpoint in &fact.endpoints {
        let mut addresses: Vec<IpAddr> = Vec::with_capacity(endpoint.addresses.len());
        for &address in &endpoint.addresses {
            match way.border.judge(address, fact.family) {
                Ok(()) => addresses.push(address),
                Err(why) => notes.push(SliceNote::AddressRefused { address, why }),
            }
        }
        if !addresses.is_empty() {
            endpoints.push(carry_endpoint(endpoint, addresses, way));
        }
    }
    let (name, original, source) = (way.name.clone(), way.original.clone(), way.source.clone());
    Slice { name, original, source, family: fact.family, ports, endpoints, notes }
}

fn carry_port(port: &SlicePort, rule: PortRule<'_>, notes: &mut Vec<SliceNote>) -> Option<SlicePort> {
    let fate = match rule {
        PortRule::All => return Some(port.clone()),
        PortRule::Only(names) if names.contains(&port.name) => return Some(port.clone()),
        PortRule::Only(_) => Err(PortDropped::NotAsked),
        PortRule::Merged(fates) => {
            fates.and_then(|fates| fates.get(&port.name)).ok_or(PortDropped::NotOfTheService)
        }
    };
    let why = match fate {
        Ok(PortFate::Serves(name)) => {
            if *name != port.name {
                notes.push(SliceNote::PortRenamed { from: port.name.clone(), to: name.clone() });
            }
            return Some(SlicePort { name: name.clone(), ..port.clone() });
        }
        Ok(PortFate::Dropped { winner }) => PortDropped::NameClash { winner: winner.clone() },
        Err(why) => why,
    };
    notes.push(SliceNote::PortDropped { name: port.name.clone(), why });
    None
}

fn carry_endpoint(endpoint: &EndpointFact, addresses: Vec<IpAddr>, way: Way<'_>) -> Endpoint {
    let node = endpoint.node.clone().filter(|_| way.own);
    // kube-proxy looks at zones only if every ready endpoint has a hint: all get one, or none does.
    let for_zones = match (way.rules.distribution, &endpoint.zone) {
        (None, _) => Box::default(),
        (Some(_), Some(zone)) => [zone.clone()].into(),
        (Some(_), None) => endpoint.for_zones.clone(),
    };
    let for_nodes = match way.rules.distribution {
        Some(TrafficDistribution::PreferSameNode) => node.iter().cloned().collect(),
        Some(TrafficDistribution::PreferClose | TrafficDistribution::PreferSameZone) | None => Box::default(),
    };
    Endpoint {
        addresses: addresses.into(),
        conditions: endpoint.conditions,
        hostname: endpoint.hostname.clone().filter(|_| way.rules.hostnames),
        node,
        zone: endpoint.zone.clone(),
        for_zones,
        for_nodes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::EndpointConditions;
    use crate::fixture::{endpoint, id, ports, slice};
    use crate::names::Zone;
    use crate::network::AddressRefused;
    use crate::services::ports as merging;

    fn rendered(fact: &SliceFact, own: bool, distribution: Option<TrafficDistribution>) -> Slice {
        let offer = |text| crate::memory::Offer { ports: ports(text), ..Default::default() };
        let exports = [(id("a"), offer("web:80").into()), (id("b"), offer("http:80 web:81 more:9").into())];
        let merged = merging::merge(&exports);
        let (source, original) = (id("b"), SliceName::parse("web-1").unwrap());
        render(
            fact,
            Way {
                source: &source,
                original: &original,
                name: &SliceName::parse("imported-b-web-1").unwrap(),
                rules: Rules {
                    ports: PortRule::Merged(merged.fates.get(&source)),
                    distribution,
                    hostnames: true,
                },
                border: crate::network::territory::Territory::default().border(&id("b")),
                own,
            },
        )
    }

    #[test]
    fn ports_go_under_the_imports_names_or_stay_behind() {
        let slice = rendered(&slice("http:8080 web:8081 more:9 stray:7", &["10.0.0.1"]), false, None);
        let names: Vec<_> = slice.ports.iter().map(|p| (p.name.as_str(), p.port)).collect();
        assert_eq!(names, [("web", Some(8080)), ("more", Some(9))]);
        let name = |text| PortName::parse(text).unwrap();
        assert_eq!(
            slice.notes,
            [
                SliceNote::PortRenamed { from: name("http"), to: name("web") },
                SliceNote::PortDropped { name: name("web"), why: PortDropped::NameClash { winner: id("a") } },
                SliceNote::PortDropped { name: name("stray"), why: PortDropped::NotOfTheService },
            ]
        );
    }

    #[test]
    fn node_names_stay_at_home_and_zones_travel() {
        use TrafficDistribution::{PreferSameNode, PreferSameZone};
        let fact = slice("more:9", &["10.0.0.1"]);
        for (own, distribution, node, zones, nodes) in [
            (true, None, true, 0, 0),
            (false, None, false, 0, 0),
            (true, Some(PreferSameZone), true, 1, 0),
            (false, Some(PreferSameZone), false, 1, 0),
            (true, Some(PreferSameNode), true, 1, 1),
            (false, Some(PreferSameNode), false, 1, 0),
        ] {
            let slice = rendered(&fact, own, distribution);
            let got = &slice.endpoints[0];
            assert_eq!(got.zone, fact.endpoints[0].zone);
            let shape = (got.node.is_some(), got.for_zones.len(), got.for_nodes.len());
            assert_eq!(shape, (node, zones, nodes), "{own} {distribution:?}");
        }
    }

    #[test]
    fn hints_of_the_source_stand_in_for_a_zone_that_it_does_not_give() {
        let mut fact = slice("more:9", &["10.0.0.1"]);
        fact.endpoints[0].zone = None;
        fact.endpoints[0].for_zones = [Zone::parse("z").unwrap()].into();
        assert!(rendered(&fact, false, None).endpoints[0].for_zones.is_empty());
        let hinted = rendered(&fact, false, Some(TrafficDistribution::PreferClose));
        assert_eq!(&*hinted.endpoints[0].for_zones, [Zone::parse("z").unwrap()]);
    }

    #[test]
    fn conditions_are_copied_as_they_are() {
        for ready in [None, Some(true), Some(false)] {
            let conditions = EndpointConditions { ready, serving: None, terminating: Some(true) };
            let fact =
                SliceFact { endpoints: vec![endpoint("10.0.0.1", conditions)], ..slice("more:9", &[]) };
            assert_eq!(rendered(&fact, false, None).endpoints[0].conditions, conditions);
        }
    }

    #[test]
    fn a_refused_address_leaves_its_reason_and_an_empty_slice_is_a_slice() {
        let slice = rendered(&slice("more:9", &["127.0.0.1"]), false, None);
        assert!(slice.endpoints.is_empty());
        let address = "127.0.0.1".parse().unwrap();
        assert_eq!(slice.notes, [SliceNote::AddressRefused { address, why: AddressRefused::Loopback }]);
    }
}
