//! What the cluster says of itself. Only what concerns exported services, and those that the hub follows, is told.
//!
//! Facts of all Services and slices are kept here in their compact form (an endpoint is 88 bytes and its address), whether exported or
//! not: an export made later finds them at once, with no request and no race between watches. `docs/adr/0004` says why.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use litemap::LiteMap;

use atoll_api::names::prefix;
use atoll_engine::facts::{ExportFact, NamespaceState, ServiceFact, SliceFact};
use atoll_engine::few;
use atoll_engine::names::{Namespace, NodeName, ServiceKey, SliceName};
use atoll_engine::network::Nodes;
use atoll_engine::world::Change;

use super::object::Kind;
use super::sync::Epoch;

/// Twice as many nodes as Kubernetes supports in a cluster.
pub(crate) const NODES_MOST: usize = 10_000;

/// The facts, and the list in which each was last seen.
#[derive(Debug, Default)]
pub struct Facts {
    namespaces: BTreeMap<Namespace, (NamespaceState, Epoch)>,
    services: HashMap<ServiceKey, (ServiceFact, Epoch)>,
    exports: HashMap<ServiceKey, (ExportFact, Epoch)>,
    slices: HashMap<ServiceKey, LiteMap<SliceName, (Arc<SliceFact>, Epoch)>>,
    slice_of: HashMap<(Namespace, SliceName), ServiceKey>,
    taken: BTreeMap<ServiceKey, Epoch>,
    /// Services that the hub wants to know of, exported or not.
    followed: BTreeSet<ServiceKey>,
    nodes: BTreeMap<NodeName, (Nodes, Epoch)>,
    /// What was told of the nodes; none until they have been listed, so that a first list is told once.
    told_nodes: Option<Nodes>,
}

impl Facts {
    /// A namespace is there.
    pub fn namespace(
        &mut self,
        name: Namespace,
        state: NamespaceState,
        epoch: Epoch,
        tell: &mut Vec<Change>,
    ) {
        if self.namespaces.insert(name.clone(), (state, epoch)).map(|(old, _)| old) != Some(state) {
            tell.push(Change::Namespace(name, Some(state)));
        }
    }

    /// A node is there. One too many is passed over: endpoints on its own address stay behind.
    pub fn node(&mut self, name: NodeName, node: Nodes, epoch: Epoch, tell: &mut Vec<Change>) {
        if self.nodes.len() >= NODES_MOST && !self.nodes.contains_key(&name) {
            return;
        }
        let news = self.nodes.get(&name).is_none_or(|(old, _)| *old != node);
        self.nodes.insert(name, (node, epoch));
        if news && self.told_nodes.is_some() {
            self.tell_nodes(tell);
        }
    }

    /// A node is gone.
    pub fn no_node(&mut self, name: &NodeName, tell: &mut Vec<Change>) {
        if self.nodes.remove(name).is_some() && self.told_nodes.is_some() {
            self.tell_nodes(tell);
        }
    }

    fn tell_nodes(&mut self, tell: &mut Vec<Change>) {
        let all = || self.nodes.values().map(|(node, _)| node);
        let nodes = Nodes {
            addresses: all().flat_map(|node| &node.addresses).copied().collect(),
            pods: all().flat_map(|node| &node.pods).copied().collect(),
        };
        if self.told_nodes.as_ref() != Some(&nodes) {
            self.told_nodes = Some(nodes.clone());
            tell.push(Change::Nodes(nodes));
        }
    }

    /// A Service is there; `theirs`: it is not ours.
    pub fn service(
        &mut self,
        key: ServiceKey,
        fact: ServiceFact,
        theirs: bool,
        epoch: Epoch,
        tell: &mut Vec<Change>,
    ) {
        if theirs && key.name.as_str().starts_with(prefix::DERIVED) {
            if self.taken.insert(key.clone(), epoch).is_none() {
                tell.push(Change::Taken(key.clone(), true));
            }
        } else if self.taken.remove(&key).is_some() {
            tell.push(Change::Taken(key.clone(), false));
        }
        if self.concerns(&key) && self.services.get(&key).is_none_or(|(old, _)| *old != fact) {
            tell.push(Change::Service(key.clone(), Some(fact.clone())));
        }
        self.services.insert(key, (fact, epoch));
    }

    /// A slice is there, and is a fact.
    pub fn slice(
        &mut self,
        at: (Namespace, SliceName),
        of: ServiceKey,
        fact: Arc<SliceFact>,
        epoch: Epoch,
        tell: &mut Vec<Change>,
    ) {
        if self.slice_of.get(&at).is_some_and(|before| *before != of) {
            self.no_slice(&at, tell);
        }
        let name = at.1.clone();
        let slices = self.slices.entry(of.clone()).or_insert_with(few::for_one);
        let same = slices.get(&name).is_some_and(|(old, _)| *old == fact);
        if !same && (self.exports.contains_key(&of) || self.followed.contains(&of)) {
            tell.push(Change::Slice(of.clone(), name.clone(), Some(fact.clone())));
        }
        slices.insert(name, (fact, epoch));
        self.slice_of.insert(at, of);
    }

    /// A ServiceExport is there. What is known of its service is told first.
    pub fn export(&mut self, key: ServiceKey, fact: ExportFact, epoch: Epoch, tell: &mut Vec<Change>) {
        let before = self.exports.insert(key.clone(), (fact.clone(), epoch)).map(|(old, _)| old);
        if before.is_none() && !self.followed.contains(&key) {
            self.tell_all(&key, tell);
        }
        if before.as_ref() != Some(&fact) {
            tell.push(Change::Export(key, Some(fact)));
        }
    }

    /// Whether the hub is told of the service.
    fn concerns(&self, key: &ServiceKey) -> bool {
        self.exports.contains_key(key) || self.followed.contains(key)
    }

    /// Tells what is known of a service.
    fn tell_all(&self, key: &ServiceKey, tell: &mut Vec<Change>) {
        if let Some((service, _)) = self.services.get(key) {
            tell.push(Change::Service(key.clone(), Some(service.clone())));
        }
        for (name, (slice, _)) in self.slices.get(key).into_iter().flatten() {
            tell.push(Change::Slice(key.clone(), name.clone(), Some(slice.clone())));
        }
    }

    /// Takes back what was told of a service.
    fn tell_nothing(&self, key: &ServiceKey, tell: &mut Vec<Change>) {
        if self.services.contains_key(key) {
            tell.push(Change::Service(key.clone(), None));
        }
        for name in self.slices.get(key).into_iter().flat_map(LiteMap::keys) {
            tell.push(Change::Slice(key.clone(), name.clone(), None));
        }
    }

    /// The hub wants to know of a service, or not any more. What is known is told before it is said that all is.
    pub fn follow(&mut self, key: &ServiceKey, follow: bool, tell: &mut Vec<Change>) {
        if follow == self.followed.contains(key) {
            return;
        }
        let exported = self.exports.contains_key(key);
        if follow {
            if !exported {
                self.tell_all(key, tell);
            }
            self.followed.insert(key.clone());
            tell.push(Change::Followed(key.clone(), true));
        } else {
            self.followed.remove(key);
            tell.push(Change::Followed(key.clone(), false));
            if !exported {
                self.tell_nothing(key, tell);
            }
        }
    }

    /// A ServiceExport that is known was seen again.
    pub fn still_exported(&mut self, key: &ServiceKey, epoch: Epoch) {
        if let Some((_, seen)) = self.exports.get_mut(key) {
            *seen = epoch;
        }
    }

    /// A namespace is gone.
    pub fn no_namespace(&mut self, name: &Namespace, tell: &mut Vec<Change>) {
        if self.namespaces.remove(name).is_some() {
            tell.push(Change::Namespace(name.clone(), None));
        }
    }

    /// A Service is gone.
    pub fn no_service(&mut self, key: &ServiceKey, tell: &mut Vec<Change>) {
        if self.taken.remove(key).is_some() {
            tell.push(Change::Taken(key.clone(), false));
        }
        if self.services.remove(key).is_some() && self.concerns(key) {
            tell.push(Change::Service(key.clone(), None));
        }
    }

    /// A slice is gone, or is no fact any more.
    pub fn no_slice(&mut self, at: &(Namespace, SliceName), tell: &mut Vec<Change>) {
        let Some(of) = self.slice_of.remove(at) else { return };
        if let Some(slices) = self.slices.get_mut(&of) {
            slices.remove(&at.1);
            if slices.is_empty() {
                self.slices.remove(&of);
            }
        }
        if self.concerns(&of) {
            tell.push(Change::Slice(of, at.1.clone(), None));
        }
    }

    /// A ServiceExport is gone; what was told of its service is taken back.
    pub fn no_export(&mut self, key: &ServiceKey, tell: &mut Vec<Change>) {
        if self.exports.remove(key).is_none() {
            return;
        }
        tell.push(Change::Export(key.clone(), None));
        if !self.followed.contains(key) {
            self.tell_nothing(key, tell);
        }
    }

    /// A Service is gone, and with it its slices: its cluster deletes them.
    pub(crate) fn whole_service(&mut self, key: &ServiceKey, tell: &mut Vec<Change>) {
        self.no_service(key, tell);
        let slices: Vec<SliceName> =
            self.slices.get(key).into_iter().flat_map(LiteMap::keys).cloned().collect();
        for name in slices {
            self.no_slice(&(key.namespace.clone(), name), tell);
        }
    }

    /// A namespace is gone, with everything in it.
    pub(crate) fn everything_in(&mut self, namespace: &Namespace, tell: &mut Vec<Change>) {
        let within = |key: &&ServiceKey| key.namespace == *namespace;
        let exports: BTreeSet<ServiceKey> = self.exports.keys().filter(within).cloned().collect();
        let services: BTreeSet<ServiceKey> =
            self.services.keys().chain(self.slices.keys()).filter(within).cloned().collect();
        exports.iter().for_each(|key| self.no_export(key, tell));
        services.iter().for_each(|key| self.whole_service(key, tell));
        self.no_namespace(namespace, tell);
    }

    /// Whether the hub was told of the service.
    pub(crate) fn is_told(&self, key: &ServiceKey) -> bool {
        self.concerns(key)
    }

    /// The export of a service.
    pub(crate) fn exported(&self, key: &ServiceKey) -> Option<&ExportFact> {
        self.exports.get(key).map(|(fact, _)| fact)
    }

    /// The Service.
    pub(crate) fn served(&self, key: &ServiceKey) -> Option<&ServiceFact> {
        self.services.get(key).map(|(fact, _)| fact)
    }

    /// A list is complete: what was last seen in an older one is gone.
    pub fn sweep(&mut self, kind: Kind, epoch: Epoch, tell: &mut Vec<Change>) {
        match kind {
            Kind::Namespace => {
                for name in old(&self.namespaces, |(_, seen)| *seen < epoch) {
                    self.no_namespace(&name, tell);
                }
            }
            Kind::Service => {
                let gone = self.services.iter().filter(|(_, (_, seen))| *seen < epoch);
                for key in gone.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>() {
                    self.no_service(&key, tell);
                }
            }
            Kind::Export => {
                let gone = self.exports.iter().filter(|(_, (_, seen))| *seen < epoch);
                for key in gone.map(|(key, _)| key.clone()).collect::<BTreeSet<_>>() {
                    self.no_export(&key, tell);
                }
            }
            Kind::Slice => {
                let mut gone = BTreeSet::new();
                for (key, slices) in &self.slices {
                    let old = slices.iter().filter(|(_, (_, seen))| *seen < epoch);
                    gone.extend(old.map(|(name, _)| (key.namespace.clone(), name.clone())));
                }
                for at in gone {
                    self.no_slice(&at, tell);
                }
            }
            Kind::Node => {
                self.nodes.retain(|_, (_, seen)| *seen >= epoch);
                self.tell_nodes(tell);
            }
            Kind::Import | Kind::Property => {}
        }
    }
}

fn old<K: Clone + Ord, V>(map: &BTreeMap<K, V>, is_old: impl Fn(&V) -> bool) -> Vec<K> {
    map.iter().filter(|(_, value)| is_old(value)).map(|(key, _)| key.clone()).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn an_endpoint_is_small() {
        assert!(size_of::<atoll_engine::facts::EndpointFact>() <= 96);
    }
}
