//! What holds for every clusterset: small ones, drawn so that names, ports and times clash often.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::check::check;
use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::memory::Memory;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{ImportPlan, Plan, SlicesFrom, Touched};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use proptest::prelude::*;
use proptest::sample::Index;

use crate::NOW;
use crate::drawn::any_healthy_set;
pub(crate) use crate::drawn::{CLUSTERS, SERVICES, Told, any_set, in_order, shuffled};
use crate::fixture::*;

pub(crate) const LATER: Time = Time::from_secs(2000);

pub(crate) fn engine_of(memory: &Memory, changes: Vec<(ClusterId, Change)>) -> Engine {
    let mut engine = Engine::new(Settings::default(), memory.clone());
    for (cluster, change) in changes {
        let _ = engine.apply(&cluster, change);
    }
    engine
}

/// Plans every service, checks each plan, and gives them with the memory that they leave.
pub(crate) fn settle(engine: &mut Engine, now: Time) -> (BTreeMap<ServiceKey, Arc<Plan>>, Memory) {
    let plans: BTreeMap<_, _> = SERVICES
        .iter()
        .map(|service| {
            let outcome = engine.plan(&key(service), now);
            assert_eq!(check(engine.world(), &outcome.plan), []);
            (key(service), outcome.plan)
        })
        .collect();
    (plans, engine.world().memory.clone())
}

fn memory_of(set: &[Told]) -> Memory {
    settle(&mut engine_of(&Memory::new(), in_order(set)), NOW).1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_events(
        before in any_set(),
        set in any_set(),
        picks in proptest::collection::vec(any::<Index>(), 80),
    ) {
        let memory = memory_of(&before);
        let one = settle(&mut engine_of(&memory, in_order(&set)), LATER);
        let other = settle(&mut engine_of(&memory, shuffled(&set, &picks)), LATER);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn planning_twice_changes_nothing_nor_does_a_restart(before in any_set(), set in any_set()) {
        let mut engine = engine_of(&memory_of(&before), in_order(&set));
        let first = settle(&mut engine, LATER);
        for service in SERVICES {
            let again = engine.plan(&key(service), Time::from_secs(3000));
            prop_assert_eq!(again.memory, None);
            if engine.last_plan(&key(service)).is_some() {
                prop_assert_eq!(again.touched, Touched::Nothing);
            }
            prop_assert_eq!(&again.plan, &first.0[&key(service)]);
        }
        let members: Vec<_> = engine.world().clusters.keys().map(|id| (id.clone(), Change::Joined)).collect();
        let restarted = engine_of(&first.1, members.into_iter().chain(in_order(&set)).collect());
        prop_assert_eq!(settle(&mut { restarted }, Time::from_secs(4000)), first);
    }

    #[test]
    fn a_plan_made_step_by_step_is_the_plan_made_at_once(before in any_set(), mut set in any_set()) {
        let mut engine = engine_of(&Memory::new(), in_order(&before));
        settle(&mut engine, NOW);
        for told in &mut set {
            let heard_before = before.iter().find(|b| b.id == told.id).and_then(|b| b.heard.clone());
            told.heard = told.heard.take().or(heard_before);
        }
        for (cluster, change) in in_order(&set) {
            let _ = engine.apply(&cluster, change);
            for outcome in engine.plan_dirty(LATER) {
                prop_assert_eq!(check(engine.world(), &outcome.plan), []);
            }
        }
        for told in &before {
            if set.iter().all(|other| other.id != told.id) {
                let _ = engine.apply(&told.id, Change::Left);
            }
        }
        engine.plan_dirty(LATER);
        let kept: BTreeMap<_, _> =
            SERVICES.iter().filter_map(|s| Some((key(s), engine.last_plan(&key(s))?.clone()))).collect();
        let stepwise = settle(&mut engine, LATER);
        for (key, plan) in kept {
            prop_assert_eq!(&plan, &stepwise.0[&key]);
        }
        prop_assert_eq!(settle(&mut engine_of(&stepwise.1, in_order(&set)), LATER), stepwise);
    }

    #[test]
    fn removing_a_cluster_equals_never_having_had_it(set in any_set(), which in any::<Index>()) {
        let gone = which.index(set.len());
        let mut rest = set.clone();
        let gone = rest.remove(gone).id;
        // Never planned: nothing is remembered, and nothing remains.
        let mut left = engine_of(&Memory::new(), in_order(&set));
        let _ = left.apply(&gone, Change::Left);
        let never = settle(&mut engine_of(&Memory::new(), in_order(&rest)), NOW);
        prop_assert_eq!(settle(&mut left, NOW), never);
        // Planned: what is remembered is all that remains, and it does not name the cluster.
        let mut left = engine_of(&Memory::new(), in_order(&set));
        settle(&mut left, NOW);
        let _ = left.apply(&gone, Change::Left);
        let (plans, memory) = settle(&mut left, LATER);
        for service in memory.values() {
            prop_assert!(!service.exports.contains_key(&gone) && !service.hashed_in.contains(&gone));
            prop_assert!(service.incumbent.as_ref().is_none_or(|incumbent| incumbent.cluster != gone));
        }
        prop_assert_eq!(settle(&mut engine_of(&memory, in_order(&rest)), LATER), (plans, memory));
    }

    #[test]
    fn a_lost_source_that_is_retained_keeps_its_slices(set in any_healthy_set(), which in any::<Index>()) {
        let mut engine = engine_of(&Memory::new(), in_order(&set));
        let (before, memory) = settle(&mut engine, NOW);
        let lost = set[which.index(set.len())].id.clone();
        let _ = engine.apply(&lost, Change::Contact(Contact::Lost { since: LATER }));
        let (after, remembered) = settle(&mut engine, LATER);
        prop_assert_eq!(memory, remembered);
        for (before, after) in before.values().zip(after.values()) {
            for (before, after) in before.clusters.values().zip(after.clusters.values()) {
                prop_assert_eq!(&before.export, &after.export);
                prop_assert_eq!(held(&before.import), held(&after.import));
            }
        }
    }

    #[test]
    fn a_hub_started_while_a_member_is_down_changes_nothing_that_came_from_it(
        set in any_healthy_set(),
        which in any::<Index>(),
    ) {
        let (before, memory) = settle(&mut engine_of(&Memory::new(), in_order(&set)), NOW);
        let mut rest = set.clone();
        let Told { id: down, facts, .. } = rest.remove(which.index(set.len()));
        let mut told = in_order(&rest);
        told.push((down.clone(), Change::Joined));
        // Where it is, is the hub's own word.
        let networks = facts.into_iter().filter(|fact| matches!(fact, Change::Networks(_)));
        told.extend(networks.map(|fact| (down.clone(), fact)));
        let (after, remembered) = settle(&mut engine_of(&memory, told), LATER);
        for (key, service) in &memory {
            prop_assert_eq!(remembered.get(key), Some(service));
        }
        for (key, before) in &before {
            let after = &after[key];
            for (id, before) in before.clusters.iter().filter(|(id, _)| **id != down) {
                let after = &after.clusters[id];
                match (&before.import, &after.import) {
                    (ImportPlan::Present { import: was, slices: had }, ImportPlan::Present { import: is, slices: has }) => {
                        prop_assert_eq!((&was.spec, &was.families, &was.derived), (&is.spec, &is.families, &is.derived));
                        prop_assert_eq!((&was.clusters, &was.ready, &was.notes), (&is.clusters, &is.ready, &is.notes));
                        prop_assert!(matches!(has[&down], SlicesFrom::KeepWhatIsThere(_)));
                        for (source, had) in had.iter().filter(|(source, _)| **source != down) {
                            prop_assert_eq!(had, &has[source]);
                        }
                        // Who imports it is not known yet: a member keeps what stands there.
                        let mut told = after.export.clone();
                        if let (Some(told), Some(before)) = (&mut told, &before.export)
                            && told.reach != before.reach
                        {
                            prop_assert!(told.reach.as_ref().is_some_and(|reach| reach.awaited));
                            told.reach.clone_from(&before.reach);
                        }
                        prop_assert_eq!(&before.export, &told);
                    }
                    (ImportPlan::Present { .. }, other) => prop_assert!(false, "{:?}", other),
                    (ImportPlan::Absent(_) | ImportPlan::Untouched(_), after) => {
                        let imports = matches!(after, ImportPlan::Present { .. });
                        prop_assert!(!imports);
                    }
                }
            }
        }
    }
}

/// The slices that an importer holds, by source.
fn held(import: &ImportPlan) -> BTreeMap<ClusterId, Arc<[Arc<atoll_engine::plan::Slice>]>> {
    match import {
        ImportPlan::Present { slices, .. } => slices
            .iter()
            .filter_map(|(source, from)| match from {
                SlicesFrom::Exactly(slices, _) => Some((source.clone(), slices.clone())),
                SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => None,
            })
            .collect(),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => BTreeMap::new(),
    }
}
