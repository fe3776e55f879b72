//! What is not ours is left alone, and said.

use atoll_engine::names::{ServiceKey, SliceName};
use atoll_engine::world::Change;

use super::cluster::{Cluster, IMPORT, SERVICE, SLICE, namespace, service, web};
use crate::core::event::{Event, Gone, Seen};
use crate::core::object::{Kind, ObjectName, Version};
use crate::report::{Problem, Report};

fn gone(kind: Kind, name: &str) -> Event {
    let uid = atoll_engine::names::Uid::parse("theirs").unwrap();
    Event::Gone(Gone {
        object: ObjectName { kind, namespace: Some(namespace()), name: name.into() },
        version: Version { uid, revision: 99, deleting: false },
    })
}

#[test]
fn somebody_elses_import_stops_us_until_it_goes() {
    let mut cluster = Cluster::synced();
    cluster.step(Event::Seen(Seen::Import(web())));
    cluster.assign();
    cluster.settle();
    assert!(cluster.names().is_empty() && cluster.log.is_empty());
    assert!(matches!(cluster.problems()[..], [Problem::Foreign { .. }]), "{:?}", cluster.problems());
    cluster.step(gone(Kind::Import, "web"));
    cluster.settle();
    assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
}

#[test]
fn somebody_elses_slice_keeps_its_name() {
    let mut cluster = Cluster::synced();
    let name = SliceName::parse("imported-a-web-1").unwrap();
    cluster.step(Event::Seen(Seen::OtherSlice(namespace(), name)));
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names(), [IMPORT, SERVICE]);
    assert!(
        cluster
            .problems()
            .iter()
            .any(|p| matches!(p, Problem::Foreign { object, .. } if object.kind == Kind::Slice))
    );
}

#[test]
fn a_users_service_with_the_derived_name_is_told_to_the_engine() {
    let mut cluster = Cluster::synced();
    let key = ServiceKey::parse("shop", "derived-web").unwrap();
    cluster.step(Event::Seen(Seen::Service(key.clone(), service(false))));
    let told = Report::Change(Change::Taken(key.clone(), true));
    assert!(cluster.reports.contains(&told), "{:?}", cluster.reports);
    cluster.fact("b", Change::Taken(key.clone(), true));
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names().len(), 3);
    assert!(!cluster.api.contains_key(SERVICE), "another name is used");
    cluster.step(gone(Kind::Service, "derived-web"));
    assert!(cluster.reports.contains(&Report::Change(Change::Taken(key, false))));
}

#[test]
fn what_loses_our_label_is_not_ours_any_more() {
    let mut cluster = Cluster::imported();
    let name = SliceName::parse("imported-a-web-1").unwrap();
    cluster.step(Event::Seen(Seen::OtherSlice(namespace(), name)));
    cluster.fact("a", Change::Export(web(), None));
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names(), [SLICE], "{:?}", cluster.log);
}
