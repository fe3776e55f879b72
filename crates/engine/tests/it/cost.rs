//! A change costs what it concerns.

use std::sync::Arc;

use atoll_engine::engine::{Applied, Engine};
use atoll_engine::plan::{ImportPlan, SlicesFrom, Touched};
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, import, plan, plan_at, slices};

fn clusterset(importers: usize) -> Engine {
    let paris = member("paris")
        .exports("http:80", 1)
        .serves("web-1", "http:80", &["10.1.0.1"])
        .serves("web-2", "http:80", &["10.1.0.2"])
        .heard();
    let others = (0..importers).map(|n| member(&format!("c{n}")).heard());
    engine(&std::iter::once(paris).chain(others).collect::<Vec<_>>())
}

fn changed() -> Change {
    Change::Slice(key(WEB), slice_name("web-1"), Some(slice("http:80", &["10.1.0.9"]).into()))
}

#[test]
fn a_changed_slice_touches_that_slice_and_nothing_else() {
    let mut engine = clusterset(3);
    assert_eq!(plan_at(&mut engine, NOW).touched, Touched::Everything);
    assert_eq!(engine.apply(&id("paris"), changed()), Applied::Changed);
    assert_eq!(
        plan_at(&mut engine, NOW).touched,
        Touched::Slices([(id("paris"), slice_name("web-1"))].into())
    );
    assert_eq!(engine.apply(&id("paris"), changed()), Applied::Unchanged);
    assert_eq!(plan_at(&mut engine, NOW).touched, Touched::Nothing);
}

#[test]
fn importers_share_slices_and_what_did_not_change_keeps_its_address() {
    let mut engine = clusterset(200);
    let before = plan(&mut engine);
    let _ = engine.apply(&id("paris"), changed());
    let after = plan(&mut engine);
    let list = |plan: &atoll_engine::plan::Plan, importer: &str| match &import(plan, importer).1[&id("paris")]
    {
        SlicesFrom::Exactly(list, _) => Arc::clone(list),
        other => panic!("{other:?}"),
    };
    assert!(Arc::ptr_eq(&list(&after, "c0"), &list(&after, "c199")));
    assert!(std::ptr::eq(import(&after, "c0").0, import(&after, "c199").0));
    assert!(!std::ptr::eq(import(&after, "c0").0, import(&after, "paris").0));
    let (was, is) = (slices(&before, "c0", "paris"), slices(&after, "c0", "paris"));
    assert!(!Arc::ptr_eq(&was[0], &is[0]) && Arc::ptr_eq(&was[1], &is[1]));
    assert!(Arc::ptr_eq(&import(&before, "c7").0.spec, &import(&after, "c7").0.spec));
}

#[test]
fn only_services_that_a_change_concerns_are_dirty() {
    let mut engine = clusterset(1);
    let other = "shop/other";
    for change in [
        Change::Service(key(other), Some(service(&[("http", 80)]))),
        Change::Export(key(other), Some(export(1))),
        Change::Service(key("elsewhere/web"), Some(service(&[("http", 80)]))),
        Change::Export(key("elsewhere/web"), Some(export(1))),
    ] {
        let _ = engine.apply(&id("c0"), change);
    }
    let dirty = |engine: &Engine| engine.dirty().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(engine.plan_dirty(NOW).len(), 3);
    assert_eq!(dirty(&engine), [""; 0]);
    let _ = engine.apply(&id("paris"), changed());
    assert_eq!(dirty(&engine), [WEB]);
    engine.plan_dirty(NOW);
    let _ = engine.apply(&id("c0"), Change::Namespace(namespace("elsewhere"), None));
    assert_eq!(dirty(&engine), [""; 0]);
    let _ = engine.apply(&id("c0"), Change::Namespace(namespace("shop"), None));
    assert_eq!(dirty(&engine), [other, WEB]);
    engine.plan_dirty(NOW);
    let lost = atoll_engine::facts::Contact::Lost { since: NOW };
    let _ = engine.apply(&id("paris"), Change::Contact(lost));
    assert_eq!(dirty(&engine), [WEB]);
}

#[test]
fn a_service_that_is_gone_leaves_nothing_behind() {
    let mut engine = clusterset(1);
    plan(&mut engine);
    for change in [
        Change::Export(key(WEB), None),
        Change::Service(key(WEB), None),
        Change::Slice(key(WEB), slice_name("web-1"), None),
        Change::Slice(key(WEB), slice_name("web-2"), None),
    ] {
        let _ = engine.apply(&id("paris"), change);
    }
    let outcomes = engine.plan_dirty(NOW);
    assert!(matches!(outcomes[0].plan.clusters[&id("c0")].import, ImportPlan::Absent(_)));
    assert!(engine.world().services.is_empty() && engine.world().memory.is_empty());
    assert!(engine.last_plan(&key(WEB)).is_none());
}
