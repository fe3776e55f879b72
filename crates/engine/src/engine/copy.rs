//! A copy of the engine, to try something on: what it plans is what the engine itself would plan.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Engine, Last};
use crate::names::{Namespace, ServiceKey};
use crate::plan::Plan;
use crate::services::Cache;

impl Engine {
    /// A copy. With `namespaces`, of their services alone, and of those that wait for room anywhere: enough for what happens to objects of
    /// these namespaces, since a change of one service reaches others only through the room that it leaves them.
    ///
    /// Facts are shared with the original, so this costs some pointers per service.
    #[must_use]
    pub fn copy(&self, namespaces: Option<&BTreeSet<Namespace>>) -> Self {
        let Some(namespaces) = namespaces else {
            let last = self.last.iter().map(|(key, last)| (key.clone(), last.copy())).collect();
            let (world, dirty, waiting) = (self.world.clone(), self.dirty.clone(), self.waiting.clone());
            return Self { world, dirty, waiting, last };
        };
        let mut wanted = namespaces.clone();
        wanted.extend(self.waiting.values().flatten().map(|key| key.namespace.clone()));
        let last = of(&self.last, &wanted).map(|(key, last)| (key.clone(), last.copy())).collect();
        Self {
            world: self.world.copy(&wanted),
            dirty: self.dirty.iter().filter(|key| wanted.contains(&key.namespace)).cloned().collect(),
            waiting: self.waiting.clone(),
            last,
        }
    }

    /// How many services it knows.
    pub fn size(&self) -> usize {
        self.last.len().max(self.world.services.len())
    }

    /// The last plans of all services.
    pub fn plans(&self) -> impl Iterator<Item = (&ServiceKey, &Arc<Plan>)> {
        self.last.iter().filter_map(|(key, last)| Some((key, last.plan.as_ref()?)))
    }
}

impl Last {
    /// What is kept to save work stays behind: it changes no outcome.
    fn copy(&self) -> Self {
        Self { cache: Cache::default(), plan: self.plan.clone() }
    }
}

/// The entries of some namespaces.
pub(crate) fn of<'a, V>(
    map: &'a BTreeMap<ServiceKey, V>,
    namespaces: &'a BTreeSet<Namespace>,
) -> impl Iterator<Item = (&'a ServiceKey, &'a V)> {
    namespaces.iter().flat_map(|namespace| {
        let from = ServiceKey::before_all_of(namespace);
        map.range(from..).take_while(move |(key, _)| key.namespace == *namespace)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Applied;
    use crate::facts::{NamespaceState, Settings};
    use crate::fixture::{WEB, capabilities, export, id, key, namespace, service, slice, slice_name};
    use crate::memory::Memory;
    use crate::time::Time;
    use crate::world::Change;

    const NOW: Time = Time::from_secs(1000);

    /// Two members, and a service in each of two namespaces.
    fn engine() -> Engine {
        let mut engine = Engine::new(Settings::default(), Memory::new());
        for member in ["paris", "tokyo"] {
            let changes = [
                Change::Joined,
                Change::Namespace(namespace("shop"), Some(NamespaceState::Active)),
                Change::Namespace(namespace("bank"), Some(NamespaceState::Active)),
            ];
            for change in changes {
                assert_eq!(engine.apply(&id(member), change), Applied::Changed);
            }
        }
        for web in [WEB, "bank/teller"] {
            let slice = Arc::new(slice("http:80", &["10.1.0.1"]));
            for change in [
                Change::Service(key(web), Some(service(&[("http", 80)]))),
                Change::Slice(key(web), slice_name("s"), Some(slice)),
                Change::Export(key(web), Some(export(1))),
            ] {
                assert_eq!(engine.apply(&id("paris"), change), Applied::Changed);
            }
        }
        for member in ["paris", "tokyo"] {
            assert_eq!(engine.apply(&id(member), Change::Heard(capabilities())), Applied::Changed);
        }
        let _ = engine.plan_dirty(NOW);
        engine
    }

    #[test]
    fn what_happens_to_a_copy_does_not_happen_to_the_original() {
        let original = engine();
        for namespaces in [None, Some(BTreeSet::from([namespace("shop")]))] {
            let mut copy = original.copy(namespaces.as_ref());
            assert_eq!(copy.dirty().count(), 0);
            assert_eq!(copy.last_plan(&key(WEB)), original.last_plan(&key(WEB)));
            assert_eq!(copy.last_plan(&key("bank/teller")).is_some(), namespaces.is_none());
            assert_eq!(copy.apply(&id("paris"), Change::Export(key(WEB), None)), Applied::Changed);
            assert_eq!(copy.plan_dirty(NOW).len(), 1);
            assert_ne!(copy.last_plan(&key(WEB)), original.last_plan(&key(WEB)));
            assert!(
                original.world().holding(&key(WEB), &id("paris")).is_some_and(|held| held.export.is_some())
            );
        }
    }

    #[test]
    fn a_copy_plans_what_the_original_would() {
        let mut original = engine();
        let mut copy = original.copy(Some(&BTreeSet::from([namespace("shop")])));
        for engine in [&mut original, &mut copy] {
            let gone = Change::Namespace(namespace("shop"), None);
            assert_eq!(engine.apply(&id("tokyo"), gone), Applied::Changed);
        }
        let theirs: Vec<_> = copy.plan_dirty(NOW).into_iter().map(|outcome| outcome.plan).collect();
        let ours: Vec<_> = original.plan_dirty(NOW).into_iter().map(|outcome| outcome.plan).collect();
        assert_eq!(theirs, ours);
    }
}
