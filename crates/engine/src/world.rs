//! All facts, kept so that what concerns one service lies together.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use litemap::LiteMap;

use serde::{Deserialize, Serialize};

use crate::facts::{Capabilities, Contact, ExportFact, NamespaceState, ServiceFact, Settings, SliceFact};
use crate::fences::{Exports, Fences};
use crate::few;
use crate::intent::CrossCluster;
use crate::intent::imports::HubImports;
use crate::memory::Memory;
use crate::names::{ClusterId, Namespace, ServiceKey, SliceName};
use crate::network::territory::Territory;
use crate::network::{Networks, Nodes, Reserved};
use crate::time::Time;

/// Facts and memory: all that a plan is made of.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The members of the clusterset.
    pub clusters: BTreeMap<ClusterId, Cluster>,
    /// What each cluster holds of each service.
    pub services: BTreeMap<ServiceKey, LiteMap<ClusterId, Holding>>,
    /// What is remembered.
    pub memory: Memory,
    /// The `MultiClusterServices` of type `CrossCluster`; none until all of them are known, since one that is not known must not be
    /// taken for one that is not there.
    pub intents: Option<BTreeMap<ServiceKey, Arc<CrossCluster>>>,
    /// What `ServiceImports` of the hub ask for.
    pub imports: HubImports,
    /// What holds for exports that do not say otherwise.
    pub settings: Settings,
    /// Who may export and import what.
    pub fences: Arc<Fences>,
    /// How many exports of each cluster are remembered.
    pub exports: Exports,
    /// Addresses that are no member's.
    pub reserved: Reserved,
    /// Whose every range is; brought up to date before a plan is made.
    pub territory: Arc<Territory>,
    redraw: bool,
}

/// A member of the clusterset.
#[derive(Debug, Clone, Default)]
pub struct Cluster {
    /// What it can do, once all its facts have been listed since the hub started. Until then memory speaks for it.
    pub heard: Option<Capabilities>,
    /// Whether it can be reached.
    pub contact: Contact,
    /// Where it is: the operator's word, and what was pinned.
    pub networks: Arc<Networks>,
    /// Its namespaces.
    pub namespaces: BTreeMap<Namespace, NamespaceState>,
    /// Services that are not ours and have a name which a derived Service could want.
    pub taken: BTreeSet<ServiceKey>,
}

/// What one cluster holds of one service.
#[derive(Debug, Clone, Default)]
pub struct Holding {
    /// The Service.
    pub service: Option<Arc<ServiceFact>>,
    /// The ServiceExport, and how it came to our notice.
    pub export: Option<(Arc<ExportFact>, Sight)>,
    /// The slices of the Service.
    pub slices: LiteMap<SliceName, Arc<SliceFact>>,
    /// Whether the cluster has told all that it has of the service, and goes on telling.
    pub followed: bool,
}

impl Holding {
    fn is_empty(&self) -> bool {
        self.service.is_none() && self.export.is_none() && self.slices.is_empty() && !self.followed
    }
}

/// How an export came to our notice: it says how far its own timestamp can be believed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// In the first list of its cluster: it may have been there for long.
    Listed,
    /// After contact had been lost: it was not there before.
    AfterLoss {
        /// When contact was lost.
        since: Time,
    },
    /// While we watched: it is new.
    Live,
}

/// Something that happened in, or to, one cluster. The hub says which one; the payload never does.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Change {
    /// It has become a member. Nothing is known of it yet.
    Joined,
    /// It is no member any more, and is forgotten.
    Left,
    /// All its facts have been given: from here on they count, and what is absent from them is absent. Said again when it
    /// can do more or less than before.
    Heard(Capabilities),
    /// It can, or can't, be reached.
    Contact(Contact),
    /// Where it is. The hub says so, never the member.
    Networks(Box<Networks>),
    /// What its Node objects say. It widens nothing: the hub may pin it, once.
    Nodes(Nodes),
    /// A namespace, or its absence.
    Namespace(Namespace, Option<NamespaceState>),
    /// A Service, or its absence.
    Service(ServiceKey, Option<ServiceFact>),
    /// A ServiceExport, or its absence.
    Export(ServiceKey, Option<ExportFact>),
    /// A slice of a Service, or its absence.
    Slice(ServiceKey, SliceName, Option<Arc<SliceFact>>),
    /// Whether a Service that is not ours has this name.
    Taken(ServiceKey, bool),
    /// All that it has of this service has been told, and what changes will be; or, if false, that is over.
    Followed(ServiceKey, bool),
}

/// Whose plan a change may alter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Reach {
    Nobody,
    Service(ServiceKey),
    Namespace(Namespace),
    Exporter(ClusterId),
    Everybody,
}

impl World {
    /// A world that only remembers: each cluster in memory is a member not heard from.
    pub fn remembering(settings: Settings, memory: Memory) -> Self {
        let (mut clusters, mut exports) = (BTreeMap::new(), Exports::default());
        for (key, service) in &memory {
            service.exports.keys().for_each(|id| exports.add(id, &key.namespace));
            for id in service.exports.keys().chain(&service.hashed_in) {
                clusters.entry(id.clone()).or_insert_with(Cluster::default);
            }
        }
        Self { clusters, memory, settings, exports, ..Self::default() }
    }

    /// A copy with the services of some namespaces. What is not about services is whole, but for the namespaces themselves.
    pub(crate) fn copy(&self, namespaces: &BTreeSet<Namespace>) -> Self {
        use crate::engine::of;
        let cluster = |cluster: &Cluster| Cluster {
            heard: cluster.heard.clone(),
            contact: cluster.contact,
            networks: Arc::clone(&cluster.networks),
            namespaces: namespaces
                .iter()
                .filter_map(|name| Some((name.clone(), *cluster.namespaces.get(name)?)))
                .collect(),
            taken: cluster.taken.iter().filter(|key| namespaces.contains(&key.namespace)).cloned().collect(),
        };
        fn some<V: Clone>(
            map: &BTreeMap<ServiceKey, V>,
            namespaces: &BTreeSet<Namespace>,
        ) -> BTreeMap<ServiceKey, V> {
            of(map, namespaces).map(|(key, value)| (key.clone(), value.clone())).collect()
        }
        Self {
            clusters: self.clusters.iter().map(|(id, one)| (id.clone(), cluster(one))).collect(),
            services: some(&self.services, namespaces),
            memory: some(&self.memory, namespaces),
            intents: self.intents.as_ref().map(|intents| some(intents, namespaces)),
            imports: HubImports {
                explicit: self.imports.explicit.intersection(namespaces).cloned().collect(),
                asked: some(&self.imports.asked, namespaces),
            },
            settings: self.settings,
            fences: Arc::clone(&self.fences),
            exports: self.exports.clone(),
            reserved: self.reserved.clone(),
            territory: Arc::clone(&self.territory),
            redraw: self.redraw,
        }
    }

    /// The members not heard from since the hub started.
    pub fn unheard(&self) -> impl Iterator<Item = &ClusterId> {
        self.clusters.iter().filter(|(_, cluster)| cluster.heard.is_none()).map(|(id, _)| id)
    }

    /// What a cluster holds of a service.
    pub fn holding(&self, key: &ServiceKey, cluster: &ClusterId) -> Option<&Holding> {
        self.services.get(key)?.get(cluster)
    }

    /// Brings the table of ranges up to date. One that says the same stays the same: slices are recognised by it.
    pub(crate) fn draw(&mut self) {
        if std::mem::take(&mut self.redraw) {
            let members = self.clusters.iter().map(|(id, cluster)| (id, &*cluster.networks));
            let drawn = Territory::new(members, &self.reserved);
            if drawn != *self.territory {
                self.territory = Arc::new(drawn);
            }
        }
    }

    /// Addresses that are no member's from here on; says whether that is new.
    pub(crate) fn reserve(&mut self, reserved: Reserved) -> bool {
        let changed = self.reserved != reserved;
        self.reserved = reserved;
        self.redraw |= changed;
        changed
    }

    /// Takes in a change; says how far it reaches. What comes from a stranger changes nothing.
    pub(crate) fn apply(&mut self, id: &ClusterId, change: Change) -> Reach {
        if change == Change::Joined {
            return match self.clusters.contains_key(id) {
                true => Reach::Nobody,
                false => {
                    self.clusters.insert(id.clone(), Cluster::default());
                    Reach::Everybody
                }
            };
        }
        let Some(cluster) = self.clusters.get_mut(id) else { return Reach::Nobody };
        let when = |changed, reach| if changed { reach } else { Reach::Nobody };
        match change {
            Change::Joined => Reach::Nobody,
            Change::Left => {
                self.redraw |= *cluster.networks != Networks::default();
                self.clusters.remove(id);
                self.services.retain(|_, holdings| {
                    holdings.remove(id);
                    !holdings.is_empty()
                });
                Reach::Everybody
            }
            Change::Heard(capabilities) => {
                let changed = cluster.heard.as_ref() != Some(&capabilities);
                cluster.heard = Some(capabilities);
                when(changed, Reach::Everybody)
            }
            Change::Contact(contact) => {
                when(std::mem::replace(&mut cluster.contact, contact) != contact, Reach::Exporter(id.clone()))
            }
            Change::Networks(networks) => {
                let changed = *cluster.networks != *networks;
                if changed {
                    cluster.networks = Arc::from(networks);
                    self.redraw = true;
                }
                when(changed, Reach::Everybody) // what is one's is not the others'
            }
            Change::Nodes(_) => Reach::Nobody,
            Change::Namespace(name, state) => {
                let old = match state {
                    Some(state) => cluster.namespaces.insert(name.clone(), state),
                    None => cluster.namespaces.remove(&name),
                };
                when(old != state, Reach::Namespace(name))
            }
            Change::Taken(key, taken) => {
                let changed =
                    if taken { cluster.taken.insert(key.clone()) } else { cluster.taken.remove(&key) };
                when(changed, Reach::Namespace(key.namespace))
            }
            Change::Followed(key, followed) => {
                let holding = self.holding_mut(id, &key);
                let changed = std::mem::replace(&mut holding.followed, followed) != followed;
                self.tidy(id, &key);
                when(changed, Reach::Service(key))
            }
            Change::Service(key, fact) => {
                let holding = self.holding_mut(id, &key);
                let changed = replace(&mut holding.service, fact.map(Arc::new));
                self.tidy(id, &key);
                when(changed, Reach::Service(key))
            }
            Change::Export(key, fact) => {
                let sight = match (cluster.heard.is_some(), cluster.contact) {
                    (false, _) => Sight::Listed,
                    (true, Contact::Lost { since }) => Sight::AfterLoss { since },
                    (true, Contact::Alive) => Sight::Live,
                };
                let holding = self.holding_mut(id, &key);
                let changed = holding.export.as_ref().map(|(old, _)| &**old) != fact.as_ref();
                if changed {
                    holding.export = fact.map(|new| {
                        let known = holding.export.as_ref().filter(|(old, _)| old.uid == new.uid);
                        let sight = known.map_or(sight, |(_, sight)| *sight);
                        (Arc::new(new), sight)
                    });
                }
                self.tidy(id, &key);
                when(changed, Reach::Service(key))
            }
            Change::Slice(key, name, fact) => {
                let holding = self.holding_mut(id, &key);
                let mut slot = holding.slices.remove(&name);
                let changed = replace(&mut slot, fact);
                if let Some(slice) = slot {
                    holding.slices.insert(name, slice);
                }
                self.tidy(id, &key);
                when(changed, Reach::Service(key))
            }
        }
    }

    fn holding_mut(&mut self, id: &ClusterId, key: &ServiceKey) -> &mut Holding {
        let holdings = self.services.entry(key.clone()).or_insert_with(few::for_one);
        holdings.entry(id.clone()).or_insert_with(|| Holding { slices: few::for_one(), ..Holding::default() })
    }

    fn tidy(&mut self, id: &ClusterId, key: &ServiceKey) {
        let Some(holdings) = self.services.get_mut(key) else { return };
        if holdings.get(id).is_some_and(Holding::is_empty) {
            holdings.remove(id);
        }
        if holdings.is_empty() {
            self.services.remove(key);
        }
    }
}

/// Puts a fact in its place, and keeps the old allocation when nothing changed: plans recognise it by its address.
fn replace<T: PartialEq>(slot: &mut Option<Arc<T>>, fact: Option<Arc<T>>) -> bool {
    let changed = slot.as_deref() != fact.as_deref();
    if changed {
        *slot = fact;
    }
    changed
}
