//! All services at one moment. Cheap to clone; a changed service leaves all others shared with the snapshot before.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::name::Name;
use crate::service::Service;

/// A change copies one shard and this many pointers.
const SHARDS: usize = 256;

/// What holds for all answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The zone that is ours.
    pub zone: Name,
    /// How many seconds an answer may be kept, a negative one too.
    pub ttl: u32,
    /// The version that `dns-version` tells: of the specification that the zone's names follow.
    pub schema: &'static str,
}

impl Settings {
    /// A cluster's own zone, `cluster.local` for most: the same names without a cluster's id in them.
    pub fn cluster(zone: Name, ttl: u32) -> Self {
        Self { zone, ttl, schema: "1.1.0" }
    }
}

impl Default for Settings {
    /// `clusterset.local`, 5 seconds.
    fn default() -> Self {
        let zone = Name::parse("clusterset.local").unwrap_or_default();
        Self { zone, ttl: 5, schema: "1.0.0" }
    }
}

/// All services at one moment.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub(crate) settings: Arc<Settings>,
    /// How many labels the zone has.
    pub(crate) zone_labels: usize,
    shards: Arc<[Arc<Shard>]>,
    /// How many services with a name are in each namespace.
    namespaces: Arc<BTreeMap<Name, usize>>,
    pub(crate) serial: u32,
    /// Everything was listed at least once.
    pub(crate) complete: bool,
}

/// Some of the services, by `<service>.<namespace>`, in order.
type Shard = Vec<(Name, Arc<Service>)>;

impl Snapshot {
    /// One without services, from which nothing is answered yet.
    pub(crate) fn empty(settings: Settings, serial: u32) -> Self {
        let labels = |mut bytes: &[u8]| {
            let mut count = 0;
            while let Some((&length, rest)) = bytes.split_first() {
                bytes = rest.get(usize::from(length)..).unwrap_or_default();
                count += 1;
            }
            count
        };
        let none = Arc::new(Shard::new());
        Self {
            zone_labels: labels(settings.zone.wire()),
            settings: Arc::new(settings),
            shards: (0..SHARDS).map(|_| Arc::clone(&none)).collect(),
            namespaces: Arc::default(),
            serial,
            complete: false,
        }
    }

    /// How many services have a name.
    pub fn services(&self) -> usize {
        self.namespaces.values().sum()
    }

    /// The number of the zone's last change.
    pub fn serial(&self) -> u32 {
        self.serial
    }

    /// Was everything listed at least once? Nothing is answered before.
    pub fn complete(&self) -> bool {
        self.complete
    }

    /// The zone that is ours.
    pub fn zone(&self) -> &Name {
        &self.settings.zone
    }

    /// The service at `<service>.<namespace>` in wire form.
    pub(crate) fn service(&self, key: &[u8]) -> Option<&Arc<Service>> {
        let shard = &self.shards[shard_of(key)];
        let place = shard.binary_search_by(|(name, _)| name.wire().cmp(key)).ok()?;
        shard.get(place).map(|(_, service)| service)
    }

    /// Has any service of the namespace a name?
    pub(crate) fn has_namespace(&self, namespace: &[u8]) -> bool {
        // Asked seldom, and there are few.
        self.namespaces.keys().any(|name| name.wire() == namespace)
    }

    /// Puts, replaces or takes away one service.
    pub(crate) fn set(&mut self, key: &Name, namespace: &Name, service: Option<Service>) {
        let number = shard_of(key.wire());
        let shards = Arc::make_mut(&mut self.shards);
        let shard = Arc::make_mut(&mut shards[number]);
        let before = shard.binary_search_by(|(name, _)| name.cmp(key));
        match (before, service) {
            (Ok(place), Some(service)) => shard[place].1 = Arc::new(service),
            (Ok(place), None) => {
                shard.remove(place);
                let namespaces = Arc::make_mut(&mut self.namespaces);
                if let Some(count) = namespaces.get_mut(namespace) {
                    *count -= 1;
                    if *count == 0 {
                        namespaces.remove(namespace);
                    }
                }
            }
            (Err(place), Some(service)) => {
                shard.insert(place, (key.clone(), Arc::new(service)));
                *Arc::make_mut(&mut self.namespaces).entry(namespace.clone()).or_default() += 1;
            }
            (Err(_), None) => {}
        }
    }

    /// How many of the parts that a snapshot is made of are not shared with `other`.
    pub fn parts_apart(&self, other: &Self) -> usize {
        self.shards.iter().zip(other.shards.iter()).filter(|(one, two)| !Arc::ptr_eq(one, two)).count()
    }
}

/// FNV-1a: the names are the cluster's own, and a full shard costs a few comparisons more.
fn shard_of(key: &[u8]) -> usize {
    let hash =
        key.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    (hash ^ (hash >> 16)) as usize % SHARDS
}
