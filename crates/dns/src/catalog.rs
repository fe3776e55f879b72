//! Facts in, snapshots out. Half a list is never taken for the whole.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Import, Slice};
use crate::name::Name;
use crate::service::Service;
use crate::snapshot::{Settings, Snapshot};

/// Something that was seen in the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A list of a kind begins: what is not in it has gone, but not before it is complete.
    ListStarted(Kind),
    /// The list is complete.
    Listed(Kind),
    /// A ServiceImport as it is now.
    Import {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What it says.
        import: Import,
    },
    /// An EndpointSlice as it is now.
    Slice {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// What it says.
        slice: Slice,
    },
    /// It is gone.
    Gone {
        /// Of what kind it was.
        kind: Kind,
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
    },
    /// The id of the cluster that we are in, if it has one.
    Local(Option<Name>),
}

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// `ServiceImports`.
    Imports,
    /// `EndpointSlices`.
    Slices,
}

/// Namespace and name.
type Key = (String, String);

#[derive(Debug, Default)]
struct Facts {
    import: Option<Import>,
    slices: BTreeMap<String, Slice>,
}

#[derive(Debug, Default)]
struct Listing {
    /// What the list under way has brought so far.
    seen: Option<BTreeSet<Key>>,
    once_complete: bool,
}

/// What is known of the cluster's imports, and the snapshot made of it.
#[derive(Debug)]
pub struct Catalog {
    services: BTreeMap<Key, Facts>,
    /// The service that each slice was last seen with.
    slice_services: BTreeMap<Key, String>,
    imports_listing: Listing,
    slices_listing: Listing,
    local: Option<Name>,
    dirty: BTreeSet<Key>,
    snapshot: Snapshot,
}

impl Catalog {
    /// An empty one. `serial` is the zone's first: larger than that of an earlier run, best the time in seconds.
    pub fn new(settings: Settings, serial: u32) -> Self {
        Self {
            services: BTreeMap::new(),
            slice_services: BTreeMap::new(),
            imports_listing: Listing::default(),
            slices_listing: Listing::default(),
            local: None,
            dirty: BTreeSet::new(),
            snapshot: Snapshot::empty(settings, serial),
        }
    }

    /// Takes in what was seen. What it means shows after [`Catalog::publish`].
    pub fn apply(&mut self, event: Event) {
        match event {
            Event::ListStarted(kind) => self.listing(kind).seen = Some(BTreeSet::new()),
            Event::Listed(kind) => self.listed(kind),
            Event::Import { namespace, name, import } => {
                let key = (namespace, name);
                self.note(Kind::Imports, &key);
                let facts = self.services.entry(key.clone()).or_default();
                if facts.import.as_ref() != Some(&import) {
                    facts.import = Some(import);
                    self.dirty.insert(key);
                }
            }
            Event::Slice { namespace, name, slice } => {
                let key = (namespace, name);
                self.note(Kind::Slices, &key);
                self.put_slice(key, slice);
            }
            Event::Gone { kind, namespace, name } => self.remove(kind, (namespace, name)),
            Event::Local(local) => {
                if self.local != local {
                    self.local = local;
                    let concerned = self.services.iter().filter(|(_, facts)| {
                        facts.import.as_ref().is_some_and(|import| import.headless && import.local_first)
                    });
                    self.dirty.extend(concerned.map(|(key, _)| key.clone()));
                }
            }
        }
    }

    /// The snapshot after all that was applied; none if no answer has changed.
    pub fn publish(&mut self) -> Option<Snapshot> {
        let complete = self.imports_listing.once_complete && self.slices_listing.once_complete;
        let mut changed = complete != self.snapshot.complete;
        self.snapshot.complete = complete;
        for key in std::mem::take(&mut self.dirty) {
            changed |= self.renew(&key);
            if self.services.get(&key).is_some_and(|facts| facts.import.is_none() && facts.slices.is_empty())
            {
                self.services.remove(&key);
            }
        }
        if !changed {
            return None;
        }
        self.snapshot.serial = self.snapshot.serial.wrapping_add(1);
        Some(self.snapshot.clone())
    }

    /// The last snapshot.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Makes the records of one service anew. Did they change?
    fn renew(&mut self, key: &Key) -> bool {
        // Names that DNS can't carry: an object may have dots in its name, a Service can't.
        let (Ok(namespace), Ok(name)) = (Name::label(&key.0), Name::label(&key.1)) else { return false };
        let Some(short) = Name::join(&[&name, &namespace]) else { return false };
        let service = self.services.get(key).and_then(|facts| {
            let import = facts.import.as_ref()?;
            let svc = Name::label("svc").ok()?;
            let full = Name::join(&[&short, &svc, &self.snapshot.settings.zone])?;
            Service::new(full, import, facts.slices.values(), self.local.as_ref())
        });
        if self.snapshot.service(short.wire()).map(|known| &**known) == service.as_ref() {
            return false;
        }
        self.snapshot.set(&short, &namespace, service);
        true
    }

    fn listing(&mut self, kind: Kind) -> &mut Listing {
        match kind {
            Kind::Imports => &mut self.imports_listing,
            Kind::Slices => &mut self.slices_listing,
        }
    }

    fn note(&mut self, kind: Kind, key: &Key) {
        if let Some(seen) = &mut self.listing(kind).seen {
            seen.insert(key.clone());
        }
    }

    fn listed(&mut self, kind: Kind) {
        let listing = self.listing(kind);
        listing.once_complete = true;
        let Some(seen) = listing.seen.take() else { return };
        let known: Vec<Key> = match kind {
            Kind::Imports => {
                let imports = self.services.iter().filter(|(_, facts)| facts.import.is_some());
                imports.map(|(key, _)| key.clone()).collect()
            }
            Kind::Slices => self.slice_services.keys().cloned().collect(),
        };
        for key in known.into_iter().filter(|key| !seen.contains(key)) {
            self.remove(kind, key);
        }
    }

    fn put_slice(&mut self, key: Key, slice: Slice) {
        let service = (key.0.clone(), slice.service.clone());
        if self.slice_services.get(&key).is_some_and(|before| *before != slice.service) {
            self.remove(Kind::Slices, key.clone());
        }
        let facts = self.services.entry(service.clone()).or_default();
        if facts.slices.get(&key.1) != Some(&slice) {
            facts.slices.insert(key.1.clone(), slice);
            self.slice_services.insert(key, service.1.clone());
            self.dirty.insert(service);
        }
    }

    fn remove(&mut self, kind: Kind, key: Key) {
        let service = match kind {
            Kind::Imports => key,
            Kind::Slices => {
                let Some(service) = self.slice_services.remove(&key) else { return };
                let (namespace, slice) = key;
                let service = (namespace, service);
                if let Some(facts) = self.services.get_mut(&service) {
                    facts.slices.remove(&slice);
                }
                self.dirty.insert(service);
                return;
            }
        };
        if let Some(facts) = self.services.get_mut(&service) {
            facts.import = None;
            self.dirty.insert(service);
        }
    }
}
