//! What the operator fences in crosses neither by export nor by `MultiClusterService`, and goes where it crossed before.

use atoll_engine::engine::Engine;
use atoll_engine::facts::NamespaceState;
use atoll_engine::fences::{Fenced, Fences, Pattern, Policy};
use atoll_engine::intent::{Clusters, CrossCluster};
use atoll_engine::memory::Memory;
use atoll_engine::plan::{DispatchPlan, ImportPlan, SlicesFrom, WhyAbsent};
use atoll_engine::reason::{CrossNote, Invalid};
use atoll_engine::world::Change;

use proptest::prelude::*;
use proptest::sample::subsequence;

use crate::NOW;
use crate::fixture::*;
use crate::properties::{LATER, SERVICES, any_set, engine_of, in_order, settle};

const DNS: &str = "kube-system/kube-dns";

fn serving(of: &str) -> Engine {
    let mut engine = Engine::default();
    for name in ["paris", "tokyo"] {
        let cluster = id(name);
        let space = key(of).namespace;
        for change in [
            Change::Joined,
            Change::Namespace(space, Some(NamespaceState::Active)),
            Change::Heard(capabilities()),
        ] {
            let _ = engine.apply(&cluster, change);
        }
    }
    let slice = slice("dns:53", &["10.1.0.10"]);
    for change in [
        Change::Service(key(of), Some(service(&[("dns", 53)]))),
        Change::Export(key(of), Some(export(1))),
        Change::Slice(key(of), slice_name("dns-1"), Some(slice.into())),
        Change::Followed(key(of), true),
    ] {
        let _ = engine.apply(&id("paris"), change);
    }
    engine
}

struct Seen {
    valid: Result<(), Invalid>,
    /// What tokyo imports.
    import: Result<usize, Option<WhyAbsent>>,
    /// What tokyo has natively.
    dispatched: usize,
    balanced: usize,
    notes: Vec<CrossNote>,
}

fn plan(engine: &mut Engine, of: &str) -> Seen {
    let outcome = engine.plan(&key(of), NOW);
    assert_eq!(atoll_engine::check::check(engine.world(), &outcome.plan), []);
    let plan = outcome.plan;
    let count = |from: &SlicesFrom| match from {
        SlicesFrom::Exactly(list, _) => list.iter().map(|slice| slice.endpoints.len()).sum(),
        SlicesFrom::KeepWhatIsThere(_) => 1000,
        SlicesFrom::Nothing(_) => 0,
    };
    let tokyo = &plan.clusters[&id("tokyo")];
    Seen {
        valid: plan.clusters[&id("paris")].export.as_ref().unwrap().valid,
        import: match &tokyo.import {
            ImportPlan::Present { slices, .. } => Ok(slices.values().map(count).sum()),
            ImportPlan::Absent(why) => Err(Some(*why)),
            ImportPlan::Untouched(_) => Err(None),
        },
        dispatched: match &tokyo.dispatch {
            DispatchPlan::Present(slices) => slices.values().map(count).sum(),
            DispatchPlan::Absent(_) | DispatchPlan::Untouched(_) => 0,
        },
        balanced: plan.balanced.as_ref().map_or(0, |balanced| balanced.backends.len()),
        notes: plan.crossing.as_ref().map(|crossing| crossing.notes.clone()).unwrap_or_default(),
    }
}

fn share(engine: &mut Engine, of: &str) {
    engine.set_intents([(key(of), CrossCluster { balanced: true, ..CrossCluster::default() })].into());
}

#[test]
fn kube_dns_does_not_cross() {
    let mut engine = serving(DNS);
    share(&mut engine, DNS);
    let seen = plan(&mut engine, DNS);
    assert_eq!(seen.valid, Err(Invalid::Fenced(Fenced::SystemNamespace)));
    assert_eq!(seen.import, Err(Some(WhyAbsent::Fenced(Fenced::SystemNamespace))));
    assert_eq!((seen.dispatched, seen.balanced), (0, 0));
    assert_eq!(seen.notes, [CrossNote::Closed(Fenced::SystemNamespace)]);
    assert!(engine.world().memory.is_empty(), "nothing of it is remembered");

    // By its very name it does.
    engine.set_fences(Fences { allowed: [namespace("kube-system")].into(), ..Fences::default() });
    let seen = plan(&mut engine, DNS);
    assert_eq!((seen.valid, seen.import, seen.dispatched, seen.balanced), (Ok(()), Ok(1), 1, 1));
    assert_eq!(seen.notes, []);
}

fn policy(export_from: &str, import_into: &str) -> Fences {
    let patterns = |text: &str| text.split_whitespace().map(Pattern::new).collect();
    let policy = Policy {
        namespaces: patterns("shop"),
        export_from: patterns(export_from),
        import_into: patterns(import_into),
        ..Policy::default()
    };
    Fences { policies: vec![policy], ..Fences::default() }
}

#[test]
fn a_fence_that_appears_later_withdraws_what_is_no_longer_allowed() {
    let mut engine = serving(WEB);
    share(&mut engine, WEB);
    let seen = plan(&mut engine, WEB);
    assert_eq!((seen.valid, seen.import, seen.dispatched, seen.balanced), (Ok(()), Ok(1), 1, 1));

    engine.set_fences(policy("tokyo", "*"));
    assert!(engine.is_dirty(&key(WEB)));
    let seen = plan(&mut engine, WEB);
    assert_eq!(seen.valid, Err(Invalid::Fenced(Fenced::NotAllowed)));
    assert_eq!(seen.import, Err(Some(WhyAbsent::NotExported)));
    assert_eq!((seen.dispatched, seen.balanced), (0, 0));

    engine.set_fences(policy("*", "paris"));
    let seen = plan(&mut engine, WEB);
    assert_eq!((seen.valid, seen.dispatched, seen.balanced), (Ok(()), 0, 1));
    assert_eq!(seen.import, Err(Some(WhyAbsent::Fenced(Fenced::NotAllowed))));

    engine.set_fences(policy("paris", "tokyo"));
    let seen = plan(&mut engine, WEB);
    assert_eq!((seen.valid, seen.import, seen.dispatched, seen.balanced), (Ok(()), Ok(1), 1, 1));
    assert_eq!(seen.notes, [], "all that may is what `all` means");
}

#[test]
fn a_fence_holds_for_a_cluster_that_is_not_heard() {
    let mut engine = serving(WEB);
    plan(&mut engine, WEB);
    let memory = engine.world().memory.clone();
    let mut restarted = Engine::new(Default::default(), memory);
    for change in [
        Change::Joined,
        Change::Namespace(namespace("shop"), Some(NamespaceState::Active)),
        Change::Heard(capabilities()),
    ] {
        let _ = restarted.apply(&id("tokyo"), change);
    }
    restarted.set_fences(policy("tokyo", "*"));
    let outcome = restarted.plan(&key(WEB), NOW);
    assert_eq!(atoll_engine::check::check(restarted.world(), &outcome.plan), []);
    let import = &outcome.plan.clusters[&id("tokyo")].import;
    assert_eq!(*import, ImportPlan::Absent(WhyAbsent::NotExported));
}

#[test]
fn who_is_named_and_may_not_is_said() {
    let mut engine = serving(WEB);
    engine.set_fences(policy("tokyo", "paris"));
    let named = |name: &str| Clusters::Named([id(name)].into());
    let asked =
        CrossCluster { providers: named("paris"), consumers: named("tokyo"), ..CrossCluster::default() };
    engine.set_intents([(key(WEB), asked)].into());
    let why = Fenced::NotAllowed;
    let note = |name: &str| CrossNote::Fenced { cluster: id(name), why };
    assert_eq!(plan(&mut engine, WEB).notes, [note("paris"), note("tokyo")]);
}

fn any_fences() -> impl Strategy<Value = Fences> {
    let patterns = |of: Vec<&'static str>| {
        let some = subsequence(of.clone(), 0..=of.len());
        some.prop_map(|some| some.into_iter().map(Pattern::new).collect::<Vec<_>>())
    };
    let clusters = || patterns(vec!["a", "b", "eu*", "*-west"]);
    let quota = || proptest::option::of(0..4_u32);
    let policy = (patterns(vec!["shop", "s*", "blog"]), clusters(), clusters(), quota(), quota()).prop_map(
        |(namespaces, export_from, import_into, services, endpoints)| Policy {
            namespaces,
            export_from,
            import_into,
            services,
            endpoints,
        },
    );
    let denied = prop_oneof![5 => Just(Vec::new()), 1 => Just(vec![Pattern::new("sh*")])];
    (proptest::collection::vec(policy, 0..3), denied).prop_map(|(policies, denied)| Fences {
        policies,
        denied,
        ..Fences::default()
    })
}

proptest! {
    #[test]
    fn no_plan_crosses_a_fence_and_planning_twice_changes_nothing(
        set in any_set(),
        fences in any_fences(),
        native in any::<bool>(),
    ) {
        let mut engine = engine_of(&Memory::new(), in_order(&set));
        if native {
            let asked = |service: &&str| (key(service), CrossCluster { balanced: true, ..CrossCluster::default() });
            engine.set_intents(SERVICES.iter().map(asked).collect());
        }
        settle(&mut engine, NOW); // each plan is checked
        engine.set_fences(fences);
        settle(&mut engine, LATER);
        let planned = settle(&mut engine, LATER);
        prop_assert_eq!(settle(&mut engine, LATER), planned);
    }
}
