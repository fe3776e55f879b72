//! What a member says too much of is refused by itself, and all other members go on.

use std::sync::Arc;

use atoll_engine::engine::Engine;
use atoll_engine::facts::{ExportFact, Pairs};
use atoll_engine::fences::{Fences, Pattern, Policy};
use atoll_engine::limits::{EXPORTS, Exceeded, Limit, SLICES};
use atoll_engine::plan::{ImportPlan, SlicesFrom};
use atoll_engine::reason::Invalid;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, plan_at};

fn valid(engine: &Engine, cluster: &str, service: &str) -> Result<(), Invalid> {
    let plan = engine.last_plan(&key(service)).unwrap();
    plan.clusters[&id(cluster)].export.as_ref().unwrap().valid
}

/// What tokyo holds of a cluster's `web`.
fn held(engine: &Engine, source: &str) -> Option<Vec<String>> {
    let plan = engine.last_plan(&key(WEB)).unwrap();
    let ImportPlan::Present { slices, .. } = &plan.clusters[&id("tokyo")].import else { return None };
    let SlicesFrom::Exactly(list, _) = slices.get(&id(source))? else { return None };
    let endpoints = list.iter().flat_map(|slice| &slice.endpoints);
    Some(endpoints.flat_map(|endpoint| endpoint.addresses.iter().map(ToString::to_string)).collect())
}

fn fat(bytes: usize) -> ExportFact {
    let annotations: Pairs = [("example.com/notes".into(), "x".repeat(bytes).into())].into();
    ExportFact { annotations, ..export(0) }
}

#[test]
fn one_fat_export_does_not_freeze_the_service() {
    let paris = member("paris").exports("http:80", 1).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let mallory = member("mallory").exports_as(service(&[("http", 80)]), fat(1_200_000));
    let mallory = mallory.serves("web-1", "http:80", &["10.6.6.6"]).heard();
    let mut engine = engine(&[paris, mallory, member("tokyo").heard()]);
    let outcome = plan_at(&mut engine, NOW);
    assert_eq!(valid(&engine, "paris", WEB), Ok(()));
    let Err(Invalid::TooMuch(Exceeded { limit: Limit::Bytes, most, found })) = valid(&engine, "mallory", WEB)
    else {
        panic!("{:?}", valid(&engine, "mallory", WEB))
    };
    assert!(most == 8192 && found >= 1_200_000);
    assert_eq!(held(&engine, "paris"), Some(vec!["10.1.0.1".to_owned()]));
    assert_eq!(held(&engine, "mallory"), None);
    let remembered = format!("{:?}", outcome.memory);
    assert!(remembered.len() < 10_000 && !remembered.contains("mallory"), "nothing of it is remembered");
    // The others' endpoints move on, with nothing to be written down first.
    let moved = slice("http:80", &["10.1.0.2"]);
    let _ = engine.apply(&id("paris"), Change::Slice(key(WEB), slice_name("web-1"), Some(moved.into())));
    assert_eq!(plan_at(&mut engine, NOW).memory, None);
    assert_eq!(held(&engine, "paris"), Some(vec!["10.1.0.2".to_owned()]));
    // Within the limit it is an export like any other.
    let _ = engine.apply(&id("mallory"), Change::Export(key(WEB), Some(fat(8000))));
    plan_at(&mut engine, NOW);
    assert_eq!(valid(&engine, "mallory", WEB), Ok(()));
}

#[test]
fn an_export_that_grows_fat_loses_its_own_place_only() {
    let web = || service(&[("http", 80)]);
    let mallory =
        member("mallory").exports_as(web(), fat(100)).serves("web-1", "http:80", &["10.6.6.6"]).heard();
    let paris = member("paris").exports("http:80", 5).serves("web-1", "http:80", &["10.1.0.1"]).heard();
    let mut engine = engine(&[paris, mallory, member("tokyo").heard()]);
    plan_at(&mut engine, NOW);
    assert_eq!(held(&engine, "mallory").map(|held| held.len()), Some(1));
    let _ = engine.apply(&id("mallory"), Change::Export(key(WEB), Some(fat(9000))));
    plan_at(&mut engine, NOW);
    assert_eq!((held(&engine, "mallory"), held(&engine, "paris").map(|held| held.len())), (None, Some(1)));
    let winner = engine.world().memory[&key(WEB)].incumbent.clone().unwrap().cluster;
    assert_eq!(winner, id("paris"), "nor does it win conflicts any more");
}

#[test]
fn a_flood_of_slices_is_refused_and_does_not_write_a_condition_with_each() {
    let mut mallory = member("mallory").exports("http:80", 1);
    for n in 0..=SLICES {
        mallory = mallory.serves(&format!("web-{n}"), "http:80", &["10.6.6.6"]);
    }
    let mut engine = engine(&[mallory.heard(), member("tokyo").heard()]);
    plan_at(&mut engine, NOW);
    let want = Exceeded { limit: Limit::Slices, most: SLICES, found: SLICES + 1 };
    assert_eq!(valid(&engine, "mallory", WEB), Err(Invalid::TooMuch(want)));
    let more = slice("http:80", &["10.6.6.7"]);
    let _ = engine.apply(&id("mallory"), Change::Slice(key(WEB), slice_name("web-more"), Some(more.into())));
    assert_eq!(plan_at(&mut engine, NOW).touched, atoll_engine::plan::Touched::Nothing);
}

/// An engine in which a cluster exports so many services of a namespace, with a policy that lets it have two.
fn quota(services: usize) -> Engine {
    let mut engine = engine(&[member("paris").heard(), member("tokyo").heard()]);
    let policy = Policy {
        namespaces: vec![Pattern::new("shop")],
        export_from: vec![Pattern::new("*")],
        import_into: vec![Pattern::new("*")],
        services: Some(2),
        endpoints: Some(3),
    };
    engine.set_fences(Fences { policies: vec![policy], ..Fences::default() });
    for n in 0..services {
        let key = key(&format!("shop/web-{n}"));
        let _ = engine.apply(&id("paris"), Change::Service(key.clone(), Some(service(&[("http", 80)]))));
        let _ = engine.apply(&id("paris"), Change::Export(key, Some(export(1))));
    }
    engine.plan_dirty(NOW);
    engine
}

#[test]
fn a_quota_refuses_what_comes_last_and_lets_it_in_when_there_is_room() {
    let mut engine = quota(3);
    let over = Exceeded { limit: Limit::PolicyServices, most: 2, found: 3 };
    assert_eq!(
        (valid(&engine, "paris", "shop/web-0"), valid(&engine, "paris", "shop/web-1")),
        (Ok(()), Ok(()))
    );
    assert_eq!(valid(&engine, "paris", "shop/web-2"), Err(Invalid::TooMuch(over)));
    assert!(!engine.world().memory.contains_key(&key("shop/web-2")), "what is refused is not remembered");
    let _ = engine.apply(&id("paris"), Change::Export(key("shop/web-0"), None));
    engine.plan_dirty(NOW);
    assert_eq!(valid(&engine, "paris", "shop/web-2"), Ok(()));
}

#[test]
fn a_quota_on_endpoints_counts_those_of_one_service() {
    let mut engine = quota(1);
    let serve = |addresses: &[&str]| {
        let slice = Arc::new(slice("http:80", addresses));
        Change::Slice(key("shop/web-0"), slice_name("web-1"), Some(slice))
    };
    let _ = engine.apply(&id("paris"), serve(&["10.1.0.1", "10.1.0.2", "10.1.0.3"]));
    engine.plan_dirty(NOW);
    assert_eq!(valid(&engine, "paris", "shop/web-0"), Ok(()));
    let _ = engine.apply(&id("paris"), serve(&["10.1.0.1", "10.1.0.2", "10.1.0.3", "10.1.0.4"]));
    engine.plan_dirty(NOW);
    let over = Exceeded { limit: Limit::PolicyEndpoints, most: 3, found: 4 };
    assert_eq!(valid(&engine, "paris", "shop/web-0"), Err(Invalid::TooMuch(over)));
}

#[test]
fn a_member_does_not_fill_the_hubs_memory_with_exports() {
    let mut engine = engine(&[member("mallory").heard()]);
    for n in 0..=EXPORTS {
        let _ = engine.apply(&id("mallory"), Change::Export(key(&format!("shop/e{n}")), Some(export(1))));
    }
    engine.plan_dirty(NOW);
    assert_eq!(engine.world().memory.len(), EXPORTS as usize);
}
