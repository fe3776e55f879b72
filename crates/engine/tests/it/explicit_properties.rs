//! What holds whatever `ServiceImports` of the hub ask for.

use std::collections::BTreeMap;

use atoll_engine::engine::Engine;
use atoll_engine::facts::Protocol;
use atoll_engine::intent::imports::{Asked, HubImports, ImportPort, ImportTo};
use atoll_engine::memory::Memory;
use atoll_engine::names::{Namespace, PortName, ServiceKey};
use atoll_engine::plan::{ImportPlan, Touched, WhyAbsent};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::NOW;
use crate::fixture::{id, key};
use crate::properties::{CLUSTERS, LATER, SERVICES, any_set, engine_of, in_order, settle, shuffled};

fn any_to() -> impl Strategy<Value = ImportTo> {
    let port = (of(select(vec!["x", "y"])), 1..4_u16).prop_map(|(name, port)| ImportPort {
        name: name.map(|name| PortName::parse(name).unwrap()),
        protocol: Protocol::Tcp,
        port,
    });
    let clusters = subsequence([&CLUSTERS[..], &["stranger"]].concat(), 0..4);
    (clusters, proptest::collection::vec(port, 0..3))
        .prop_map(|(clusters, ports)| ImportTo { clusters: clusters.into_iter().map(id).collect(), ports })
}

/// Where each service's import goes, if there is one, and whether its namespace is explicit.
#[derive(Debug, Clone)]
struct Rules {
    explicit: Vec<Namespace>,
    to: BTreeMap<ServiceKey, ImportTo>,
}

fn any_rules() -> impl Strategy<Value = Rules> {
    let to = proptest::collection::vec(of(any_to()), SERVICES.len());
    (to, any::<bool>()).prop_map(|(to, explicit)| {
        let to: BTreeMap<_, _> =
            SERVICES.iter().zip(to).filter_map(|(service, to)| Some((key(service), to?))).collect();
        let namespaces = SERVICES.iter().map(|service| key(service).namespace);
        Rules { explicit: if explicit { namespaces.collect() } else { Vec::new() }, to }
    })
}

fn tell(engine: &mut Engine, rules: &Rules) {
    engine.set_explicit(rules.explicit.iter().cloned().collect());
    for service in SERVICES {
        engine.ask_import(key(service), rules.to.get(&key(service)).cloned());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_depends_neither_on_the_order_of_facts_nor_on_when_the_hubs_imports_come(
        set in any_set(),
        rules in any_rules(),
        before in any_rules(),
        picks in proptest::collection::vec(any::<Index>(), 80),
    ) {
        let mut one = engine_of(&Memory::new(), in_order(&set));
        tell(&mut one, &rules);
        let one = settle(&mut one, NOW);
        let mut other = Engine::default();
        tell(&mut other, &before);
        tell(&mut other, &rules);
        for (cluster, change) in shuffled(&set, &picks) {
            let _ = other.apply(&cluster, change);
        }
        prop_assert_eq!(one, settle(&mut other, NOW));
    }

    #[test]
    fn planning_twice_changes_nothing_and_no_cluster_imports_unasked(set in any_set(), rules in any_rules()) {
        let mut engine = engine_of(&Memory::new(), in_order(&set));
        tell(&mut engine, &rules);
        let first = settle(&mut engine, NOW);
        for service in SERVICES {
            let key = key(service);
            let again = engine.plan(&key, LATER);
            if engine.last_plan(&key).is_some() {
                prop_assert_eq!(again.touched, Touched::Nothing);
            }
            prop_assert_eq!(&again.plan, &first.0[&key]);
            let explicit = rules.explicit.contains(&key.namespace);
            for (id, part) in &again.plan.clusters {
                let asked = rules.to.get(&key).is_some_and(|to| to.clusters.contains(id));
                let imports = matches!(part.import, ImportPlan::Present { .. });
                prop_assert!(!imports || asked || !explicit, "{} in {}", key, id);
                let not_asked = part.import == ImportPlan::Absent(WhyAbsent::NotAsked);
                prop_assert!(!not_asked || (explicit && !asked));
            }
        }
    }

    /// A restarted hub knows first which templates there are, and then where they go: no cluster loses anything in between.
    #[test]
    fn a_restart_takes_nothing_away_before_placements_are_known(set in any_set(), rules in any_rules()) {
        let mut engine = engine_of(&Memory::new(), in_order(&set));
        tell(&mut engine, &rules);
        let (plans, memory) = settle(&mut engine, NOW);
        let mut restarted = engine_of(&memory, in_order(&set));
        let asked = rules.to.keys().map(|key| (key.clone(), Asked::Unplaced)).collect();
        restarted.set_imports(HubImports { explicit: rules.explicit.iter().cloned().collect(), asked });
        let (between, _) = settle(&mut restarted, LATER);
        for (key, plan) in &plans {
            for (id, part) in &plan.clusters {
                let had = matches!(part.import, ImportPlan::Present { .. });
                let goes = matches!(between[key].clusters.get(id).map(|part| &part.import), Some(ImportPlan::Absent(_)));
                prop_assert!(!(had && goes), "{} in {}", key, id);
            }
        }
        tell(&mut restarted, &rules);
        restarted.imports_are_placed();
        prop_assert_eq!(settle(&mut restarted, LATER).0, plans);
    }
}
