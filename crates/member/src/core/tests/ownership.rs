//! What is not ours is left alone, and said.

use atoll_engine::names::{ServiceKey, SliceName};
use atoll_engine::world::Change;

use super::cluster::{Cluster, IMPORT, SERVICE, SLICE, namespace, service, web};
use crate::core::event::{Event, Failure, Gone, Request, Seen};
use crate::core::object::{Kind, ObjectName, Version};
use atoll_link::{Problem, Up};

fn gone(kind: Kind, name: &str) -> Event {
    let uid = atoll_engine::names::Uid::parse("theirs").unwrap();
    Event::Gone(Gone {
        object: ObjectName { kind, namespace: Some(namespace()), name: name.into() },
        version: Version { uid, revision: 99, deleting: false, others: None },
    })
}

#[test]
fn an_import_of_another_owner_stops_us_until_it_goes() {
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
fn a_slice_of_another_owner_keeps_its_name() {
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
    let told = Up::Change(Change::Taken(key.clone(), true));
    assert!(cluster.reports.contains(&told), "{:?}", cluster.reports);
    cluster.fact("b", Change::Taken(key.clone(), true));
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names().len(), 3);
    assert!(!cluster.api.contains_key(SERVICE), "another name is used");
    cluster.step(gone(Kind::Service, "derived-web"));
    assert!(cluster.reports.contains(&Up::Change(Change::Taken(key, false))));
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

#[test]
fn an_import_that_lost_our_label_does_not_freeze_what_still_has_it() {
    let mut cluster = Cluster::imported();
    cluster.api.remove(IMPORT);
    cluster.step(Event::Seen(Seen::Import(web())));
    cluster.settle();
    cluster.log.clear();
    cluster.slice_at_source("10.0.0.99");
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.log, [format!("update {SLICE}")]);
    let of_import =
        |p: &&Problem| matches!(p, Problem::Foreign { object, .. } if object.kind == Kind::Import);
    assert!(cluster.problems().iter().any(of_import), "{:?}", cluster.problems());
}

fn other() -> ServiceKey {
    ServiceKey::parse("shop", "other").unwrap()
}

#[test]
fn an_object_whose_label_names_another_service_is_repaired() {
    let mut cluster = Cluster::imported();
    cluster.user_edits(SERVICE, true, |stored| {
        let Request::Service { body, .. } = &mut stored.said else { panic!() };
        body.of = other();
    });
    cluster.user_edits(SLICE, true, |stored| {
        let Request::Slice(body, _) = &mut stored.said else { panic!() };
        body.of = other();
    });
    cluster.settle();
    let mut log = cluster.log.clone();
    log.sort();
    assert_eq!(log, [format!("update {SLICE}"), format!("update {SERVICE}")]);
    assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
}

#[test]
fn a_member_started_anew_repairs_labels_too() {
    let mut before = Cluster::imported();
    before.user_edits(SERVICE, false, |stored| {
        let Request::Service { body, .. } = &mut stored.said else { panic!() };
        body.of = other();
    });
    let mut cluster = Cluster::restarted(&before);
    cluster.sync();
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
    assert!(cluster.log.contains(&format!("update {SERVICE}")), "{:?}", cluster.log);
}

#[test]
fn a_name_that_another_service_of_ours_has_does_not_become_a_storm() {
    let mut cluster = Cluster::synced();
    cluster.assign();
    let mut requests = 0;
    let start = cluster.now.instant;
    while cluster.now.instant < start + std::time::Duration::from_secs(10) {
        if let Some(target) = cluster.reads.pop() {
            // What is read is a derived Service of ours with a name that no plan has.
            let seen = Seen::OwnService(crate::core::event::OwnService {
                name: ServiceKey::parse("shop", "derived-other").unwrap(),
                of: other(),
                version: Version {
                    uid: atoll_engine::names::Uid::parse("theirs").unwrap(),
                    revision: 99,
                    deleting: false,
                    others: None,
                },
                body: None,
                headless: false,
                families: Vec::new(),
                ips: Vec::new(),
            });
            cluster.step(Event::Read(target, Ok(Some(seen))));
        } else if !cluster.sent.is_empty() {
            requests += 1;
            assert!(requests < 20, "in {:?}", cluster.now.instant - start);
            let (target, _) = cluster.sent.remove(0);
            cluster.step(Event::Wrote(target, Err(Failure::AlreadyExists)));
        } else {
            cluster.now.instant = cluster.core.next_wake().unwrap();
            cluster.step(Event::Tick);
        }
    }
    assert!(requests > 5, "it is tried again");
}
