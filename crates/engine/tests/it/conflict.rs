//! Exports that disagree.

use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::reason::text;
use atoll_engine::time::Time;
use atoll_engine::world::Change;

use crate::fixture::*;
use crate::{NOW, addresses, import, plan, plan_at, slices};

fn reasons(engine: &mut Engine, cluster: &str) -> String {
    let plan = plan(engine);
    let status = plan.clusters[&id(cluster)].export.as_ref().unwrap();
    text::conflict_reason(status.conflicts.as_ref().unwrap())
}

#[test]
fn a_conflict_is_told_to_all_exporters_and_the_older_export_wins() {
    let headless = ServiceFact { headless: true, ..service(&[("http", 80)]) };
    let mut engine = engine(&[
        member("a").exports("http:80", 20).heard(),
        member("b").exports_as(headless, export(10)).heard(),
        member("c").heard(),
    ]);
    assert_eq!(reasons(&mut engine, "a"), "TypeConflict");
    assert_eq!(reasons(&mut engine, "b"), "TypeConflict");
    let plan = plan(&mut engine);
    assert!(plan.clusters[&id("c")].export.is_none());
    assert!(import(&plan, "c").0.spec.headless);
    let conflicts = plan.clusters[&id("a")].export.as_ref().unwrap().conflicts.clone().unwrap();
    assert_eq!(
        text::conflict_message(&conflicts),
        "Conflicting type. Using \"Headless\" from the service export in \"b\", which has precedence. 1/2 clusters disagree: a. To agree, delete the Service there and create it again with clusterIP: None, or delete its ServiceExport."
    );
}

#[test]
fn the_winner_stays_until_its_export_is_deleted() {
    let mut engine = engine(&[member("a").exports("http:80", 20).heard(), member("b").heard()]);
    let port = |engine: &mut Engine| import(&plan(engine), "b").0.spec.ports[0].port;
    assert_eq!(port(&mut engine), 80);
    // A timestamp of 1970 does not help a cluster that comes later.
    for change in [
        Change::Service(key(WEB), Some(service(&[("http", 8080)]))),
        Change::Export(key(WEB), Some(export(0))),
    ] {
        let _ = engine.apply(&id("b"), change);
    }
    assert_eq!(port(&mut engine), 80);
    // Lost is not deleted.
    let _ = engine.apply(&id("a"), Change::Contact(Contact::Lost { since: NOW }));
    assert_eq!(port(&mut engine), 80);
    let _ = engine.apply(&id("a"), Change::Contact(Contact::Alive));
    // Made anew, it is another export, and the younger one.
    let _ = engine.apply(&id("a"), Change::Export(key(WEB), Some(export(21))));
    plan_at(&mut engine, Time::from_secs(2000));
    assert_eq!(port(&mut engine), 8080);
}

#[test]
fn a_liar_does_not_come_before_honest_exports_when_the_winner_goes() {
    let mut engine = engine(&[
        member("a").exports("http:80", 1).heard(),
        member("b").exports("http:81", 2).heard(),
        member("mallory").heard(),
    ]);
    plan(&mut engine);
    for change in [
        Change::Service(key(WEB), Some(service(&[("http", 666)]))),
        Change::Export(key(WEB), Some(export(0))),
    ] {
        let _ = engine.apply(&id("mallory"), change);
    }
    plan(&mut engine);
    let _ = engine.apply(&id("a"), Change::Export(key(WEB), None));
    assert_eq!(import(&plan(&mut engine), "a").0.spec.ports[0].port, 81);
}

#[test]
fn an_export_that_was_listed_keeps_its_age_when_it_is_edited() {
    let mut engine =
        engine(&[member("a").exports("http:80", 2).heard(), member("b").exports("http:81", 1).heard()]);
    let edited = ExportFact { liveness: Some(Liveness::Withdraw), ..export(1) };
    let _ = engine.apply(&id("b"), Change::Export(key(WEB), Some(edited)));
    assert_eq!(import(&plan(&mut engine), "a").0.spec.ports[0].port, 81);
}

#[test]
fn an_invalid_winner_makes_room() {
    let mut engine =
        engine(&[member("a").exports("http:80", 1).heard(), member("b").exports("http:81", 2).heard()]);
    assert_eq!(import(&plan(&mut engine), "b").0.spec.ports[0].port, 80);
    let _ = engine.apply(&id("a"), Change::Service(key(WEB), None));
    assert_eq!(import(&plan(&mut engine), "b").0.spec.ports[0].port, 81);
    assert_eq!(reasons(&mut engine, "b"), "NoConflicts");
}

#[test]
fn a_port_that_lost_its_name_is_not_reachable_in_the_losers_slices() {
    let mut engine = engine(&[
        member("a").exports("tcp:42", 1).serves("web-a", "tcp:42", &["10.1.0.1"]).heard(),
        member("b").exports("tcp:4242 web:42", 2).serves("web-b", "tcp:4242 web:42", &["10.2.0.1"]).heard(),
    ]);
    let plan = plan(&mut engine);
    let names = |source| -> Vec<_> {
        slices(&plan, "a", source)[0].ports.iter().map(|p| (p.name.to_string(), p.port)).collect()
    };
    assert_eq!(names("a"), [("tcp".to_owned(), Some(42))]);
    assert_eq!(names("b"), [("tcp".to_owned(), Some(42))]);
    assert_eq!(addresses(&plan, "b"), ["10.1.0.1", "10.2.0.1"]);
}
