//! Where members are: the operator's word, what was pinned at join, and, for a member that joined without that, what its nodes say when it is
//! first heard. That is learnt once; what the nodes say later changes nothing.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_engine::names::ClusterId;
use atoll_engine::network::{Networks, Nodes, Ranges};
use atoll_engine::world::World;
use ipnet::IpNet;

/// What is known of each member.
#[derive(Debug, Default)]
pub(super) struct Pins(BTreeMap<ClusterId, Pinned>);

#[derive(Debug, Default)]
struct Pinned {
    /// What the `Cluster` says.
    networks: Networks,
    /// What the nodes said first, until something is learnt of it.
    nodes: Option<Nodes>,
    /// What was learnt of it, which is on its way to the `Cluster`.
    learnt: Option<Ranges>,
}

impl Pins {
    /// What its `Cluster` says now; with what was learnt, all that counts.
    pub(super) fn declare(&mut self, id: &ClusterId, networks: Networks) -> Networks {
        let pinned = self.0.entry(id.clone()).or_default();
        pinned.networks = networks;
        pinned.whole()
    }

    /// All that counts.
    pub(super) fn whole(&self, id: &ClusterId) -> Option<Networks> {
        self.0.get(id).map(Pinned::whole)
    }

    /// What its nodes say. Only the first word is kept.
    pub(super) fn said(&mut self, id: &ClusterId, nodes: Nodes) {
        let pinned = self.0.entry(id.clone()).or_default();
        if pinned.learnt.is_none() {
            pinned.nodes.get_or_insert(nodes);
        }
    }

    /// It has told everything for the first time: what has to be pinned, if nothing is yet.
    pub(super) fn heard(&mut self, id: &ClusterId, world: &World) -> Option<Ranges> {
        let pinned = self.0.get_mut(id)?;
        let nodes = pinned.nodes.take()?;
        if pinned.networks.binding || pinned.networks.learnt != Ranges::default() || pinned.learnt.is_some() {
            return None;
        }
        let learnt = learn(&nodes, &pinned.networks, announced(world, id));
        pinned.learnt = Some(learnt.clone());
        Some(learnt).filter(|learnt| *learnt != Ranges::default())
    }

    pub(super) fn forget(&mut self, id: &ClusterId) {
        self.0.remove(id);
    }
}

impl Pinned {
    fn whole(&self) -> Networks {
        let mut networks = self.networks.clone();
        if let Some(learnt) = self.learnt.as_ref().filter(|_| !networks.binding)
            && networks.learnt == Ranges::default()
        {
            networks.learnt = learnt.clone();
        }
        networks
    }
}

/// All addresses that it announces.
fn announced<'a>(world: &'a World, id: &'a ClusterId) -> impl Iterator<Item = IpAddr> + 'a {
    let held = world.services.values().filter_map(move |holdings| holdings.get(id));
    let endpoints = held.flat_map(|holding| holding.slices.values()).flat_map(|slice| &slice.endpoints);
    endpoints.flat_map(|endpoint| endpoint.addresses.iter().copied())
}

/// What of the nodes' words can be true: pod networks only where they have all that the member serves from, so that pinning them takes
/// nothing away.
fn learn(nodes: &Nodes, known: &Networks, mut announced: impl Iterator<Item = IpAddr>) -> Ranges {
    let addresses: Vec<IpNet> = nodes.addresses.iter().copied().map(IpNet::from).collect();
    let pods: Vec<IpNet> = nodes.pods.iter().copied().collect();
    let believed = [&pods, &addresses, &known.declared.nodes, &known.endpoints];
    let inside =
        |address: IpAddr| believed.iter().any(|ranges| ranges.iter().any(|range| range.contains(&address)));
    let fits = known.declared.pods.is_empty() && announced.all(|address| inside(address.to_canonical()));
    Ranges { pods: if fits { pods } else { Vec::new() }, nodes: addresses, ..Ranges::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_networks_are_learnt_where_nothing_that_is_served_lies_outside() {
        let nodes = Nodes {
            addresses: ["192.168.0.4".parse().unwrap()].into(),
            pods: ["10.1.0.0/24".parse().unwrap()].into(),
        };
        let learn = |served: &[&str], known: &Networks| {
            learn(&nodes, known, served.iter().map(|address| address.parse().unwrap())).pods.len()
        };
        let open = Networks::default();
        assert_eq!(learn(&["10.1.0.7", "192.168.0.4"], &open), 1);
        assert_eq!(
            learn(&["10.1.0.7", "10.9.0.7"], &open),
            0,
            "its network plugin does not follow its nodes"
        );
        let pods = Ranges { pods: vec!["10.1.0.0/16".parse().unwrap()], ..Ranges::default() };
        let declared = Networks { declared: pods, ..Networks::default() };
        assert_eq!(learn(&["10.1.0.7"], &declared), 0, "the operator has said which they are");
    }
}
