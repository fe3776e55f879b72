//! What holds whatever `MultiClusterServices` ask for.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::engine::Engine;
use atoll_engine::facts::{Liveness, Locality};
use atoll_engine::intent::{AskedPort, Clusters, CrossCluster};
use atoll_engine::memory::Memory;
use atoll_engine::names::{PortName, ServiceKey};
use atoll_engine::plan::{DispatchPlan, SlicesFrom, Touched};
use atoll_engine::world::Change;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::NOW;
use crate::fixture::{id, key};
use crate::properties::{CLUSTERS, LATER, SERVICES, Told, any_set, engine_of, in_order, settle, shuffled};

type Intents = BTreeMap<ServiceKey, CrossCluster>;

fn any_clusters() -> impl Strategy<Value = Clusters> {
    let named = subsequence([&CLUSTERS[..], &["stranger"]].concat(), 1..4);
    let named = named.prop_map(|ids| Clusters::Named(ids.into_iter().map(id).collect::<BTreeSet<_>>()));
    prop_oneof![1 => Just(Clusters::All), 2 => named]
}

fn any_asked() -> impl Strategy<Value = CrossCluster> {
    let port = (of(select(vec!["x", "y"])), 1..4_u16)
        .prop_map(|(name, port)| AskedPort { name: name.map(|name| PortName::parse(name).unwrap()), port });
    let ports = proptest::collection::vec(port, 0..3);
    let liveness = of(select(vec![Liveness::Retain, Liveness::Withdraw]));
    let locality = of(select(vec![Locality::LocalFirst, Locality::Anywhere]));
    let frozen = proptest::bool::weighted(0.1);
    (any_clusters(), any_clusters(), ports, liveness, locality, any::<bool>(), any::<bool>(), frozen)
        .prop_map(|(providers, consumers, ports, liveness, locality, hostnames, balanced, frozen)| {
            CrossCluster { providers, consumers, ports, liveness, locality, hostnames, balanced, frozen }
        })
}

fn any_intents() -> impl Strategy<Value = Intents> {
    proptest::collection::vec(proptest::option::weighted(0.8, any_asked()), SERVICES.len()).prop_map(
        |asked| {
            SERVICES.iter().zip(asked).filter_map(|(service, asked)| Some((key(service), asked?))).collect()
        },
    )
}

fn asking(set: &[Told], intents: &Intents) -> Engine {
    let mut engine = engine_of(&Memory::new(), in_order(set));
    engine.set_intents(intents.clone());
    engine
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_depends_neither_on_the_order_of_facts_nor_on_when_intents_come(
        set in any_set(),
        intents in any_intents(),
        before in any_intents(),
        picks in proptest::collection::vec(any::<Index>(), 80),
    ) {
        let one = settle(&mut asking(&set, &intents), NOW);
        let mut other = Engine::default();
        other.set_intents(before);
        other.set_intents(intents);
        for (cluster, change) in shuffled(&set, &picks) {
            let _ = other.apply(&cluster, change);
        }
        prop_assert_eq!(one, settle(&mut other, NOW));
    }

    #[test]
    fn planning_twice_changes_nothing(set in any_set(), intents in any_intents()) {
        let mut engine = asking(&set, &intents);
        let (first, _) = settle(&mut engine, NOW);
        for service in SERVICES {
            let again = engine.plan(&key(service), LATER);
            if engine.last_plan(&key(service)).is_some() {
                prop_assert_eq!(again.touched, Touched::Nothing);
            }
            prop_assert_eq!(&again.plan, &first[&key(service)]);
        }
    }

    #[test]
    fn every_change_marks_whom_it_concerns(set in any_set(), intents in any_intents()) {
        let mut engine = Engine::default();
        engine.set_intents(intents.clone());
        for (cluster, change) in in_order(&set) {
            let _ = engine.apply(&cluster, change);
            engine.plan_dirty(NOW);
        }
        let kept: BTreeMap<_, _> =
            SERVICES.iter().filter_map(|s| Some((key(s), engine.last_plan(&key(s))?.clone()))).collect();
        let (fresh, _) = settle(&mut engine, NOW);
        for (key, plan) in kept {
            prop_assert_eq!(&plan, &fresh[&key]);
        }
    }

    #[test]
    fn removing_a_provider_equals_never_having_had_it(
        set in any_set(),
        intents in any_intents(),
        which in any::<Index>(),
    ) {
        let mut rest = set.clone();
        let gone = rest.remove(which.index(set.len())).id;
        let mut left = asking(&set, &intents);
        let _ = left.apply(&gone, Change::Left);
        let never = settle(&mut asking(&rest, &intents), NOW);
        prop_assert_eq!(settle(&mut left, NOW), never);
    }

    #[test]
    fn without_an_intent_nothing_is_dispatched_and_in_the_dark_nothing_is_taken_away(
        set in any_set(),
        intents in any_intents(),
    ) {
        let (dark, _) = settle(&mut engine_of(&Memory::new(), in_order(&set)), NOW);
        for plan in dark.values() {
            for cluster in plan.clusters.values() {
                prop_assert!(matches!(cluster.dispatch, DispatchPlan::Untouched(_)));
            }
        }
        let mut engine = asking(&set, &intents);
        settle(&mut engine, NOW);
        engine.set_intents(Intents::new());
        let (after, memory) = settle(&mut engine, LATER);
        for plan in after.values() {
            prop_assert!(plan.crossing.is_none());
            for cluster in plan.clusters.values() {
                prop_assert!(matches!(cluster.dispatch, DispatchPlan::Absent(_)) && !cluster.follow);
            }
        }
        // Nor does an intent change anything for exports.
        let mut never = engine_of(&Memory::new(), in_order(&set));
        never.set_intents(Intents::new());
        let (without, remembered) = settle(&mut never, NOW);
        for (key, plan) in &without {
            for (id, cluster) in &plan.clusters {
                let other = &after[key].clusters[id];
                prop_assert_eq!((&cluster.import, &cluster.export), (&other.import, &other.export));
            }
        }
        prop_assert_eq!(memory.keys().collect::<Vec<_>>(), remembered.keys().collect::<Vec<_>>());
    }

    #[test]
    fn no_address_reaches_a_consumer_twice(set in any_set(), intents in any_intents()) {
        let (plans, _) = settle(&mut asking(&set, &intents), NOW);
        for plan in plans.values() {
            for (id, cluster) in &plan.clusters {
                let DispatchPlan::Present(from) = &cluster.dispatch else { continue };
                prop_assert!(from.get(id).is_none(), "a cluster's own endpoints are there already");
                for from in from.values() {
                    let SlicesFrom::Exactly(list, _) = from else { continue };
                    let originals: BTreeSet<_> = list.iter().map(|slice| &slice.original).collect();
                    prop_assert_eq!(originals.len(), list.len());
                }
            }
        }
    }
}
