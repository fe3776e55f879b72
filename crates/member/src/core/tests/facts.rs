//! What is told of the cluster itself.

use atoll_engine::facts::NamespaceState;
use atoll_engine::names::SliceName;
use atoll_engine::world::Change;

use super::cluster::{Cluster, export, namespace, service, slice, web};
use crate::core::event::{Event, Gone, Seen, SeenExport};
use crate::core::object::{Kind, ObjectName, Version};
use crate::report::Report;

fn changes(cluster: &mut Cluster) -> Vec<Change> {
    let all = std::mem::take(&mut cluster.reports);
    all.into_iter()
        .filter_map(|report| match report {
            Report::Change(change) => Some(change),
            _ => None,
        })
        .collect()
}

fn exported(revision: u64) -> Event {
    let fact = export();
    let version = Version { uid: fact.uid.clone(), revision, deleting: false };
    Event::Seen(Seen::Export(SeenExport { key: web(), version, fact, conditions: Vec::new() }))
}

fn name() -> SliceName {
    SliceName::parse("web-1").unwrap()
}

#[test]
fn a_service_and_its_slices_become_facts_when_an_export_appears() {
    let mut cluster = Cluster::synced();
    cluster.reports.clear();
    cluster.step(Event::Seen(Seen::Service(web(), service(false))));
    cluster.step(Event::Seen(Seen::Slice(namespace(), name(), web(), slice("10.0.0.1"))));
    assert!(changes(&mut cluster).is_empty(), "nobody exports it");
    cluster.step(exported(50));
    assert_eq!(
        changes(&mut cluster),
        [
            Change::Service(web(), Some(service(false))),
            Change::Slice(web(), name(), Some(slice("10.0.0.1").into())),
            Change::Export(web(), Some(export())),
        ]
    );
    cluster.step(exported(51)); // Only its status has changed.
    assert!(changes(&mut cluster).is_empty());
    let object = ObjectName { kind: Kind::Export, namespace: Some(namespace()), name: "web".into() };
    let version = Version { uid: export().uid, revision: 60, deleting: false };
    cluster.step(Event::Gone(Gone { object, version }));
    assert_eq!(
        changes(&mut cluster),
        [Change::Export(web(), None), Change::Service(web(), None), Change::Slice(web(), name(), None)]
    );
}

#[test]
fn facts_go_with_a_complete_list_and_not_with_a_broken_one() {
    let mut cluster = Cluster::synced();
    cluster.step(Event::Seen(Seen::Slice(namespace(), name(), web(), slice("10.0.0.1"))));
    cluster.step(exported(50));
    cluster.reports.clear();
    cluster.step(Event::ListStarted(Kind::Slice));
    cluster.step(Event::ListStarted(Kind::Slice));
    assert!(changes(&mut cluster).is_empty());
    cluster.step(Event::Listed(Kind::Slice));
    assert_eq!(changes(&mut cluster), [Change::Slice(web(), name(), None)]);
}

#[test]
fn a_list_that_says_the_same_takes_nothing_back() {
    let mut cluster = Cluster::synced();
    let all = || {
        [
            (Kind::Namespace, Event::Seen(Seen::Namespace(namespace(), NamespaceState::Active))),
            (Kind::Service, Event::Seen(Seen::Service(web(), service(false)))),
            (Kind::Slice, Event::Seen(Seen::Slice(namespace(), name(), web(), slice("10.0.0.1")))),
            (Kind::Export, exported(50)),
        ]
    };
    for (_, event) in all() {
        cluster.step(event);
    }
    cluster.reports.clear();
    for (kind, event) in all() {
        cluster.step(Event::ListStarted(kind));
        cluster.step(event);
        cluster.step(Event::Listed(kind));
        assert_eq!(changes(&mut cluster), [], "{kind:?}");
    }
}

#[test]
fn a_list_older_than_the_answer_to_a_write_takes_nothing_back() {
    let mut cluster = Cluster::synced();
    cluster.step(exported(50));
    cluster.step(Event::ListStarted(Kind::Export));
    cluster.step(exported(60)); // The answer to a write of its status overtakes the list.
    cluster.reports.clear();
    cluster.step(exported(55));
    cluster.step(Event::Listed(Kind::Export));
    assert_eq!(changes(&mut cluster), []);
    cluster.step(Event::ListStarted(Kind::Export));
    cluster.step(exported(55));
    cluster.step(Event::Listed(Kind::Export));
    assert_eq!(changes(&mut cluster), []);
}
