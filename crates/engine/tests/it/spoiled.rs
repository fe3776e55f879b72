//! A clean plan is spoiled in one place; the checker names that place.

use std::sync::Arc;

use atoll_engine::check::{Broken, check};
use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::names::ClusterId;
use atoll_engine::network::{AddressRefused, Family};
use atoll_engine::plan::{
    Import, ImportPlan, ImportSpec, Plan, Slice, SlicesFrom, WhyAbsent, WhyNothing, WhyUntouched,
};
use atoll_engine::reason::{Kept, Withdrawn};
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, plan};

/// `a` and `b` export, `lost` did and is lost, `dark` has not been heard from, `none` has no namespace.
fn world() -> (Engine, Plan) {
    let at = |name: &str, n: i64| {
        let address = format!("10.{n}.0.1");
        let distribution = Some(TrafficDistribution::PreferSameZone);
        let fact = ServiceFact { traffic_distribution: distribution, ..service(&[("x", 1), ("y", 2)]) };
        member(name).exports_as(fact, export(n)).serves("web-1", "x:1 y:2", &[&address]).heard()
    };
    let lost = Change::Contact(Contact::Lost { since: NOW });
    let nowhere = member("none").with(Change::Namespace(namespace("shop"), None)).heard();
    let mut engine = engine(&[at("a", 1), at("b", 2), at("lost", 3).with(lost), member("dark"), nowhere]);
    let plan = Plan::clone(&plan(&mut engine));
    (engine, plan)
}

fn imported<'a>(
    plan: &'a mut Plan,
    at: &str,
) -> (&'a mut Import, &'a mut litemap::LiteMap<ClusterId, SlicesFrom>) {
    match &mut Arc::make_mut(plan.clusters.get_mut(&id(at)).unwrap()).import {
        ImportPlan::Present { import, slices } => (Arc::make_mut(import), Arc::make_mut(slices)),
        other => panic!("{other:?}"),
    }
}

fn spec(plan: &mut Plan) -> &mut ImportSpec {
    Arc::make_mut(&mut imported(plan, "a").0.spec)
}

/// Spoils the slice that `a` holds from a source.
fn slice_from(plan: &mut Plan, source: &str, spoil: impl FnOnce(&mut Slice)) {
    let from = imported(plan, "a").1.get_mut(&id(source)).unwrap();
    let SlicesFrom::Exactly(list, _) = from else { panic!("{from:?}") };
    let mut slices = list.to_vec();
    spoil(Arc::make_mut(&mut slices[0]));
    *list = slices.into();
}

#[test]
fn a_spoiled_plan_is_found_out() {
    type Spoil = fn(&mut Plan);
    let name = || slice_name("imported-b-web-1");
    let cases: Vec<(Spoil, Broken)> = vec![
        (|p| drop(p.clusters.remove(&id("a"))), Broken::MemberMissing),
        (|p| drop(p.clusters.insert(id("mallory"), p.clusters[&id("none")].clone())), Broken::Stranger),
        (
            |p| {
                Arc::make_mut(p.clusters.get_mut(&id("dark")).unwrap()).import =
                    ImportPlan::Absent(WhyAbsent::NotExported);
            },
            Broken::UnheardTouched,
        ),
        (
            |p| {
                Arc::make_mut(p.clusters.get_mut(&id("a")).unwrap()).import =
                    ImportPlan::Absent(WhyAbsent::NotExported);
            },
            Broken::ImportMissing,
        ),
        (|p| drop(p.clusters.insert(id("none"), p.clusters[&id("lost")].clone())), Broken::NoNamespace),
        (
            |p| imported(p, "a").0.clusters = [id("a"), id("lost")].into(),
            Broken::WrongClusters([id("b")].into()),
        ),
        (|p| spec(p).ports[1].name = spec(p).ports[0].name.clone(), {
            Broken::DuplicatePortName(ports("x:1")[0].name.clone())
        }),
        (|p| spec(p).ports[1].port = 1, Broken::DuplicatePort(1)),
        (|p| spec(p).ports[1].name = ports(":1")[0].name.clone(), Broken::UnnamedPort),
        (|p| spec(p).headless = true, Broken::NotTheWinners),
        (
            |p| drop(spec(p).labels.insert("k8s.io/x".into(), "".into())),
            Broken::ReservedKey("k8s.io/x".into()),
        ),
        (|p| imported(p, "a").0.families.clear(), Broken::WrongFamilies(vec![])),
        (
            |p| imported(p, "a").0.derived.as_mut().unwrap().families.push(Family::V6),
            Broken::UnsupportedFamily(Family::V6),
        ),
        (
            |p| {
                Arc::make_mut(p.clusters.get_mut(&id("b")).unwrap()).export.as_mut().unwrap().conflicts =
                    None;
            },
            Broken::ConflictNotOnAll,
        ),
        (|p| Arc::make_mut(p.clusters.get_mut(&id("b")).unwrap()).export = None, Broken::StatusMissing),
        (|p| drop(imported(p, "a").1.remove(&id("dark"))), Broken::UnheardWithdrawn { source: id("dark") }),
        (
            |p| {
                let nothing = SlicesFrom::Exactly([].into(), Kept::Alive);
                drop(imported(p, "a").1.insert(id("dark"), nothing));
            },
            Broken::UnheardWithdrawn { source: id("dark") },
        ),
        (
            |p| drop(imported(p, "a").1.remove(&id("lost"))),
            Broken::RetainedWithdrawn { source: id("lost"), slice: None },
        ),
        (
            |p| {
                let nothing = SlicesFrom::Nothing(WhyNothing::Withdrawn(Withdrawn::LeaseEnded { at: NOW }));
                drop(imported(p, "a").1.insert(id("lost"), nothing));
            },
            Broken::RetainedWithdrawn { source: id("lost"), slice: None },
        ),
        (
            |p| {
                let nothing = SlicesFrom::Exactly([].into(), Kept::PolicyRetains { since: NOW });
                drop(imported(p, "a").1.insert(id("lost"), nothing));
            },
            Broken::RetainedWithdrawn { source: id("lost"), slice: Some(slice_name("web-1")) },
        ),
        (
            |p| drop(imported(p, "a").1.insert(id("b"), SlicesFrom::Exactly([].into(), Kept::Alive))),
            Broken::SliceMissing { source: id("b"), slice: slice_name("web-1") },
        ),
        (
            |p| drop(imported(p, "a").1.insert(id("none"), SlicesFrom::Exactly([].into(), Kept::Alive))),
            Broken::NotAnExporter { source: id("none") },
        ),
        (|p| slice_from(p, "b", |s| s.source = id("a")), Broken::WrongSource { slice: name() }),
        (
            |p| slice_from(p, "b", |s| s.name = slice_name("imported-a-web-1")),
            Broken::DuplicateSlice { slice: slice_name("imported-a-web-1") },
        ),
        (|p| slice_from(p, "b", |s| s.family = Family::V6), Broken::MixedFamilies { slice: name() }),
        (
            |p| slice_from(p, "b", |s| s.endpoints[0].node = Some("node-1".try_into().unwrap())),
            Broken::ForeignNode { slice: name() },
        ),
        (
            |p| slice_from(p, "a", |s| s.endpoints[0].node = None),
            Broken::NodeLost { slice: slice_name("imported-a-web-1") },
        ),
        (
            |p| slice_from(p, "b", |s| s.ports[0].name = "z".try_into().unwrap()),
            Broken::WrongSlicePort { slice: name(), port: "z".try_into().unwrap() },
        ),
        (
            |p| slice_from(p, "b", |s| s.endpoints[0].addresses[0] = "10.9.9.9".parse().unwrap()),
            Broken::Invented { slice: name(), address: "10.9.9.9".parse().unwrap() },
        ),
        (
            |p| slice_from(p, "b", |s| s.endpoints[0].addresses[0] = "127.0.0.1".parse().unwrap()),
            Broken::Forbidden {
                slice: name(),
                address: "127.0.0.1".parse().unwrap(),
                why: AddressRefused::Loopback,
            },
        ),
        (
            |p| slice_from(p, "b", |s| s.endpoints[0].for_zones = Box::default()),
            Broken::WrongHint { slice: name() },
        ),
        (|p| imported(p, "a").0.stale.clear(), Broken::WrongStaleMark { source: id("lost") }),
    ];
    let (engine, clean) = world();
    assert_eq!(check(engine.world(), &clean), []);
    for (spoil, want) in cases {
        let mut plan = clean.clone();
        spoil(&mut plan);
        let found: Vec<_> = check(engine.world(), &plan).into_iter().map(|v| v.broken).collect();
        assert!(found.contains(&want), "wanted {want:?}, found {found:?}");
    }
}

#[test]
fn rules_about_namespaces_names_and_unknown_services_hold_too() {
    let (mut engine, clean) = world();
    let _ = engine.apply(&id("a"), Change::Taken(key("shop/derived-web"), true));
    let found = check(engine.world(), &clean);
    assert_eq!(found[0].broken, Broken::NameTaken("derived-web".try_into().unwrap()));

    let (mut engine, clean) = world();
    let terminating = Change::Namespace(namespace("shop"), Some(NamespaceState::Terminating));
    let _ = engine.apply(&id("a"), terminating);
    assert_eq!(check(engine.world(), &clean)[0].broken, Broken::NamespaceTerminating);

    let mut engine = Engine::default();
    tell(&mut engine, &[member("dark"), member("a").heard()]);
    let mut dark = Plan::clone(&engine.plan(&key(WEB), NOW).plan);
    Arc::make_mut(dark.clusters.get_mut(&id("a")).unwrap()).import =
        ImportPlan::Absent(WhyAbsent::NotExported);
    assert_eq!(check(engine.world(), &dark)[0].broken, Broken::DeletedInTheDark);
    let (_, full) = world();
    let (mut engine_of_all, clean) = world();
    engine_of_all.set_explicit([namespace("shop")].into());
    assert_eq!(check(engine_of_all.world(), &clean)[0].broken, Broken::ImportedUnasked);
    let mut unasked = clean.clone();
    Arc::make_mut(unasked.clusters.get_mut(&id("a")).unwrap()).import =
        ImportPlan::Absent(WhyAbsent::NotAsked);
    engine_of_all.set_explicit([].into());
    assert_eq!(check(engine_of_all.world(), &unasked)[0].broken, Broken::ImportMissing);
    Arc::make_mut(unasked.clusters.get_mut(&id("a")).unwrap()).import =
        ImportPlan::Untouched(WhyUntouched::PlacementUnknown);
    assert_eq!(check(engine_of_all.world(), &unasked)[0].broken, Broken::ImportMissing);
    dark.clusters.insert(id("a"), full.clusters[&id("a")].clone());
    assert_eq!(check(engine.world(), &dark)[0].broken, Broken::ImportOfNothing);
}
