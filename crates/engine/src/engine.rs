//! The engine: takes in changes, knows which services they concern, and plans those.

mod copy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::facts::Settings;
use crate::fences::Fences;
use crate::intent::CrossCluster;
use crate::intent::imports::{Asked, HubImports, ImportTo};
use crate::memory::{Memory, MemoryUpdate, ServiceMemory};
use crate::names::{ClusterId, Namespace, ServiceKey};
use crate::network::Reserved;
use crate::plan::{Plan, Touched};
use crate::reason::Invalid;
use crate::services::merge::Merged;
use crate::services::{self, Cache};
use crate::time::Time;
use crate::world::{Change, Reach, World};

pub(crate) use copy::of;

/// Facts, memory, and the services whose plans may be out of date.
#[derive(Debug, Default)]
pub struct Engine {
    world: World,
    dirty: BTreeSet<ServiceKey>,
    /// Exports for which there was no room.
    waiting: BTreeMap<ClusterId, BTreeSet<ServiceKey>>,
    last: BTreeMap<ServiceKey, Last>,
}

#[derive(Debug, Default)]
struct Last {
    cache: Cache,
    plan: Option<Arc<Plan>>,
}

/// Whether a change changed anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Applied {
    /// It said what was known.
    Unchanged,
    /// Something is different; services that it concerns, if any, are dirty.
    Changed,
}

/// A plan and what comes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// What each cluster should hold of the service.
    pub plan: Arc<Plan>,
    /// What differs from the plan before.
    pub touched: Touched,
    /// What the hub has to persist before it hands out the plan. The engine itself remembers it already.
    pub memory: Option<MemoryUpdate>,
}

impl Engine {
    /// An engine that has heard from no cluster. The clusters in `memory` are members until they are said to have left.
    pub fn new(settings: Settings, memory: Memory) -> Self {
        Self { world: World::remembering(settings, memory), ..Self::default() }
    }

    /// Takes in what happened in, or to, a cluster. What comes from a cluster that has not joined changes nothing.
    pub fn apply(&mut self, cluster: &ClusterId, change: Change) -> Applied {
        let leaves = change == Change::Left;
        let before: Vec<ServiceKey> =
            if leaves { self.all_services().cloned().collect() } else { Vec::new() };
        match self.world.apply(cluster, change) {
            Reach::Nobody => return Applied::Unchanged,
            Reach::Service(key) => drop(self.dirty.insert(key)),
            Reach::Namespace(namespace) => self.concerns(&namespace),
            Reach::Exporter(id) => {
                let held = self.world.services.iter().filter(|(_, holdings)| holdings.contains_key(&id));
                let remembered =
                    self.world.memory.iter().filter(|(_, memory)| memory.exports.contains_key(&id));
                let keys = held.map(|(key, _)| key).chain(remembered.map(|(key, _)| key));
                let concerned: Vec<ServiceKey> = keys.chain(self.asked()).cloned().collect();
                self.dirty.extend(concerned);
            }
            Reach::Everybody => {
                let all: Vec<ServiceKey> = self.all_services().cloned().collect();
                self.dirty.extend(before);
                self.dirty.extend(all);
            }
        }
        Applied::Changed
    }

    /// Every service of a namespace is to be planned.
    fn concerns(&mut self, namespace: &Namespace) {
        let from = ServiceKey::before_all_of(namespace);
        let held = self.world.services.range(&from..).map(|(key, _)| key);
        let remembered = self.world.memory.range(&from..).map(|(key, _)| key);
        let held = held.take_while(|key| key.namespace == *namespace);
        let remembered = remembered.take_while(|key| key.namespace == *namespace);
        let asked = self.asked().filter(|key| key.namespace == *namespace);
        let concerned: Vec<ServiceKey> = held.chain(remembered).chain(asked).cloned().collect();
        self.dirty.extend(concerned);
    }

    /// What `ServiceImports` of the hub ask for, all of it; before anything is planned, or what one brought could be taken away.
    pub fn set_imports(&mut self, imports: HubImports) {
        if self.world.imports != imports {
            self.world.imports = imports;
            let all: Vec<ServiceKey> = self.all_services().cloned().collect();
            self.dirty.extend(all);
        }
    }

    /// The namespaces whose services are imported only where a ServiceImport of the hub goes.
    pub fn set_explicit(&mut self, explicit: BTreeSet<Namespace>) {
        let before = std::mem::replace(&mut self.world.imports.explicit, explicit);
        let changed: Vec<Namespace> =
            before.symmetric_difference(&self.world.imports.explicit).cloned().collect();
        changed.iter().for_each(|namespace| self.concerns(namespace));
    }

    /// Where a ServiceImport of the hub goes, or that there is none which goes anywhere.
    pub fn ask_import(&mut self, key: ServiceKey, to: Option<ImportTo>) {
        let asked = &mut self.world.imports.asked;
        let to = to.map(|to| Asked::To(Arc::new(to)));
        let changed = asked.get(&key) != to.as_ref();
        match to {
            Some(to) => drop(asked.insert(key.clone(), to)),
            None => drop(asked.remove(&key)),
        }
        if changed {
            self.dirty.insert(key);
        }
    }

    /// It has been said of every ServiceImport of the hub where it goes: one of which nothing was said goes nowhere.
    pub fn imports_are_placed(&mut self) {
        let asked = &mut self.world.imports.asked;
        let nowhere: Vec<ServiceKey> = asked
            .iter()
            .filter(|(_, asked)| **asked == Asked::Unplaced)
            .map(|(key, _)| key.clone())
            .collect();
        nowhere.into_iter().for_each(|key| self.ask_import(key, None));
    }

    /// Who may export and import what; before anything is planned, or what is fenced in would cross. What is no longer allowed goes.
    pub fn set_fences(&mut self, fences: Fences) {
        if *self.world.fences != fences {
            self.world.fences = Arc::new(fences);
            let all: Vec<ServiceKey> = self.all_services().cloned().collect();
            self.dirty.extend(all);
        }
    }

    /// The addresses that are no member's.
    pub fn set_reserved(&mut self, reserved: Reserved) {
        if self.world.reserve(reserved) {
            let all: Vec<ServiceKey> = self.all_services().cloned().collect();
            self.dirty.extend(all);
        }
    }

    /// Changes what holds for exports that do not say otherwise.
    pub fn set_settings(&mut self, settings: Settings) {
        if std::mem::replace(&mut self.world.settings, settings) != settings {
            let all: Vec<ServiceKey> = self.all_services().cloned().collect();
            self.dirty.extend(all);
        }
    }

    /// All the `MultiClusterServices` there are. Until this has been said, nothing that one may have brought is taken away.
    pub fn set_intents(&mut self, intents: BTreeMap<ServiceKey, CrossCluster>) {
        let gone: Vec<ServiceKey> = self.asked().filter(|key| !intents.contains_key(*key)).cloned().collect();
        if self.world.intents.is_none() {
            self.world.intents = Some(BTreeMap::new());
            let all: Vec<ServiceKey> = self.all_services().cloned().collect();
            self.dirty.extend(all);
        }
        for key in gone {
            self.intend(key, None);
        }
        for (key, asked) in intents {
            self.intend(key, Some(asked));
        }
    }

    /// What one `MultiClusterService` asks for, or that there is none of this name any more.
    pub fn intend(&mut self, key: ServiceKey, asked: Option<CrossCluster>) {
        let Some(intents) = &mut self.world.intents else { return };
        let changed = match asked {
            Some(asked) if intents.get(&key).is_some_and(|before| **before == asked) => false,
            Some(asked) => {
                intents.insert(key.clone(), Arc::new(asked));
                true
            }
            None => intents.remove(&key).is_some(),
        };
        if changed {
            self.dirty.insert(key);
        }
    }

    /// Plans the first dirty service, if any. For a caller with other things to do in between.
    pub fn plan_next(&mut self, now: Time) -> Option<Outcome> {
        let key = self.dirty.first()?.clone();
        Some(self.plan(&key, now))
    }

    /// Plans all dirty services.
    pub fn plan_dirty(&mut self, now: Time) -> Vec<Outcome> {
        std::iter::from_fn(|| self.plan_next(now)).collect()
    }

    /// Plans a service, dirty or not; also one never heard of, for a member that holds something of it.
    pub fn plan(&mut self, key: &ServiceKey, now: Time) -> Outcome {
        self.dirty.remove(key);
        self.world.draw();
        let mut last = self.last.remove(key).unwrap_or_default();
        let (plan, memory) = services::plan(&self.world, key, &mut last.cache, now);
        let touched = last.plan.as_ref().map_or(Touched::Everything, |before| plan.touched_since(before));
        let plan = match (&touched, last.plan.take()) {
            (Touched::Nothing, Some(before)) if before.balanced == plan.balanced => before,
            (Touched::Nothing | Touched::Slices(_) | Touched::Everything, _) => Arc::new(plan),
        };
        if touched == Touched::Everything {
            self.note_waiting(&plan);
        }
        let update = self.remember(key, memory);
        let asked = self.world.intents.as_ref().is_some_and(|intents| intents.contains_key(key));
        if asked || self.world.memory.contains_key(key) || self.world.services.contains_key(key) {
            last.plan = Some(Arc::clone(&plan));
            self.last.insert(key.clone(), last);
        }
        Outcome { plan, touched, memory: update }
    }

    /// What the engine knows.
    pub fn world(&self) -> &World {
        &self.world
    }

    /// The last plan of a service.
    pub fn last_plan(&self, key: &ServiceKey) -> Option<&Arc<Plan>> {
        self.last.get(key)?.plan.as_ref()
    }

    /// What the exports of a service came to in its last plan.
    pub fn merged(&self, key: &ServiceKey) -> Option<&Merged> {
        self.last.get(key)?.cache.merged()
    }

    /// Whether a service waits for a plan.
    pub fn is_dirty(&self, key: &ServiceKey) -> bool {
        self.dirty.contains(key)
    }

    /// The services that wait for a plan.
    pub fn dirty(&self) -> impl Iterator<Item = &ServiceKey> {
        self.dirty.iter()
    }

    fn all_services(&self) -> impl Iterator<Item = &ServiceKey> {
        self.world.services.keys().chain(self.world.memory.keys()).chain(self.asked())
    }

    /// The services that a `MultiClusterService` speaks for.
    fn asked(&self) -> impl Iterator<Item = &ServiceKey> {
        self.world.intents.iter().flat_map(BTreeMap::keys)
    }

    fn remember(&mut self, key: &ServiceKey, new: Option<ServiceMemory>) -> Option<MemoryUpdate> {
        match new {
            Some(new) if self.world.memory.get(key) == Some(&new) => None,
            Some(new) => {
                self.recount(key, Some(&new));
                self.world.memory.insert(key.clone(), new.clone());
                Some(MemoryUpdate::Put(key.clone(), new))
            }
            None => {
                self.recount(key, None);
                self.world.memory.remove(key).map(|_| MemoryUpdate::Forget(key.clone()))
            }
        }
    }

    /// Counts what is remembered; where room was made, some of those that wait for it are planned again.
    fn recount(&mut self, key: &ServiceKey, new: Option<&ServiceMemory>) {
        const AT_ONCE: usize = 16; // one that comes and goes must not cost a plan of all that wait
        let there = |memory: Option<&ServiceMemory>, id: &ClusterId| {
            memory.is_some_and(|memory| memory.exports.contains_key(id))
        };
        let World { memory, exports, .. } = &mut self.world;
        let before = memory.get(key);
        for id in before.into_iter().flat_map(|memory| memory.exports.keys()).filter(|id| !there(new, id)) {
            exports.remove(id, &key.namespace);
            let waiting = self.waiting.get(id).into_iter().flatten();
            self.dirty.extend(waiting.take(AT_ONCE).cloned());
        }
        for id in new.into_iter().flat_map(|memory| memory.exports.keys()).filter(|id| !there(before, id)) {
            exports.add(id, &key.namespace);
        }
    }

    fn note_waiting(&mut self, plan: &Plan) {
        for (id, part) in &plan.clusters {
            let waits = match part.export.as_ref().map(|export| export.valid) {
                Some(Err(Invalid::TooMuch(why))) => why.limit.is_quota(),
                Some(Err(_) | Ok(())) | None => false,
            };
            if waits {
                self.waiting.entry(id.clone()).or_default().insert(plan.service.clone());
            } else if let Some(waiting) = self.waiting.get_mut(id) {
                waiting.remove(&plan.service);
                if waiting.is_empty() {
                    self.waiting.remove(id);
                }
            }
        }
    }
}
