//! What goes, and what must not.

use atoll_engine::engine::Engine;
use atoll_engine::names::SliceName;
use atoll_engine::world::Change;

use super::cluster::{Cluster, IMPORT, SERVICE, SLICE, export, id, web};
use crate::core::event::{Event, Request};
use crate::core::object::Kind;
use atoll_link::Up;

fn withdrawn(cluster: &mut Cluster) {
    cluster.fact("a", Change::Export(web(), None));
    cluster.assign();
}

#[test]
fn what_is_not_exported_any_more_goes_with_preconditions() {
    let mut cluster = Cluster::imported();
    withdrawn(&mut cluster);
    for (target, request) in &cluster.sent {
        let held = &cluster.api[&target.to_string()].version;
        assert!(matches!(request, Request::Delete(_, version) if version == held), "{request:?}");
    }
    cluster.settle();
    assert!(cluster.names().is_empty());
    cluster.log.sort();
    assert_eq!(
        cluster.log,
        [format!("delete {SLICE}"), format!("delete {IMPORT}"), format!("delete {SERVICE}")]
    );
}

#[test]
fn nothing_is_deleted_before_every_kind_has_been_listed() {
    let before = Cluster::imported();
    for missing in Kind::ALL {
        let mut cluster = Cluster::restarted(&before);
        for kind in Kind::ALL.into_iter().filter(|kind| *kind != missing) {
            cluster.list(kind);
        }
        withdrawn(&mut cluster);
        assert!(cluster.sent.is_empty(), "without {missing:?}: {:?}", cluster.sent);
        cluster.list(missing);
        cluster.settle();
        assert!(cluster.names().is_empty(), "{missing:?}: {:?}", cluster.names());
    }
}

#[test]
fn broken_relist_deletes_nothing() {
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Node) {
        let mut cluster = Cluster::imported();
        cluster.step(Event::ListStarted(kind));
        withdrawn(&mut cluster);
        cluster.step(Event::ListStarted(kind)); // It broke off.
        cluster.settle();
        assert_eq!(cluster.names().len(), 3, "{kind:?}: {:?}", cluster.log);
        cluster.list(kind);
        cluster.settle();
        assert!(cluster.names().is_empty(), "{kind:?}: {:?}", cluster.names());
    }
}

/// A hub that has heard from `b` and `c` only, and from `c` these changes.
fn not_told_by_a(changes: impl IntoIterator<Item = Change>) -> Engine {
    let mut engine = Engine::default();
    for member in ["a", "b", "c"] {
        let _ = engine.apply(&id(member), Change::Joined);
    }
    let shop =
        Change::Namespace(super::cluster::namespace(), Some(atoll_engine::facts::NamespaceState::Active));
    let _ = engine.apply(&id("b"), shop);
    for change in changes {
        let _ = engine.apply(&id("c"), change);
    }
    for member in ["b", "c"] {
        let _ = engine.apply(&id(member), Change::Heard(super::cluster::capabilities()));
    }
    engine
}

#[test]
fn slices_of_a_source_that_was_not_heard_stay_as_they_are() {
    let before = Cluster::imported();
    let mut cluster = Cluster::restarted(&before);
    cluster.engine = not_told_by_a([
        Change::Service(web(), Some(super::cluster::service(false))),
        Change::Export(web(), Some(export())),
        Change::Slice(
            web(),
            SliceName::parse("web-9").unwrap(),
            Some(super::cluster::slice("10.9.0.1").into()),
        ),
    ]);
    cluster.sync();
    cluster.assign();
    cluster.settle();
    assert!(cluster.api.contains_key(SLICE), "{:?}", cluster.log);
    assert!(cluster.api.contains_key("endpointslices shop/imported-c-web-9"));
    assert!(!cluster.log.iter().any(|write| write.ends_with(SLICE)), "{:?}", cluster.log);
}

#[test]
fn slices_with_unknown_contents_outlive_their_service_when_it_is_made_anew() {
    let before = Cluster::imported();
    let mut cluster = Cluster::restarted(&before);
    cluster.engine = not_told_by_a([
        Change::Service(web(), Some(super::cluster::service(true))),
        Change::Export(web(), Some(export())),
    ]);
    cluster.sync();
    cluster.assign();
    cluster.settle();
    let place = |what: &str| cluster.log.iter().position(|write| *write == what);
    let (free, gone) = (place(&format!("attach {SLICE}")), place(&format!("delete {SERVICE}")));
    assert!(free.is_some() && free < gone, "it hangs on nothing when the Service goes: {:?}", cluster.log);
    assert!(gone < place(&format!("create {SERVICE}")), "{:?}", cluster.log);
    assert_eq!(cluster.log.iter().filter(|write| **write == format!("attach {SLICE}")).count(), 2);
}

#[test]
fn what_is_held_for_no_reason_is_told_after_all_was_heard() {
    let before = Cluster::imported();
    let mut cluster = Cluster::restarted(&before);
    cluster.sync();
    let place = |found: fn(&Up) -> bool| cluster.reports.iter().position(found);
    let heard = place(|report| matches!(report, Up::Change(Change::Heard(_))));
    let holds = place(|report| matches!(report, Up::Holds(_)));
    assert!(heard.is_some() && heard < holds, "{:?}", cluster.reports);
    assert_eq!(cluster.reports.iter().filter(|report| matches!(report, Up::Holds(_))).count(), 1);
}
