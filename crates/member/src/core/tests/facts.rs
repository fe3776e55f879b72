//! What is told of the cluster itself.

use atoll_engine::facts::NamespaceState;
use atoll_engine::names::{NodeName, SliceName};
use atoll_engine::network::Nodes;
use atoll_engine::world::Change;

use super::cluster::{Cluster, capabilities, export, namespace, service, slice, web};
use crate::core::event::{Answer, Event, Gone, MisnamedExport, Request, Seen, SeenExport};
use crate::core::object::{ConditionBody, Kind, ObjectName, Version};
use atoll_link::Up;

fn changes(cluster: &mut Cluster) -> Vec<Change> {
    let all = std::mem::take(&mut cluster.reports);
    all.into_iter()
        .filter_map(|report| match report {
            Up::Change(change) => Some(change),
            _ => None,
        })
        .collect()
}

fn exported(revision: u64) -> Event {
    let fact = export();
    let version = Version { uid: fact.uid.clone(), revision, deleting: false, others: None };
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
    assert!(changes(&mut cluster).is_empty(), "no export names it");
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
    let version = Version { uid: export().uid, revision: 60, deleting: false, others: None };
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

fn node(name: &str, addresses: &[&str]) -> Event {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    let node = Nodes { addresses, ..Nodes::default() };
    Event::Seen(Seen::Node(NodeName::parse(name).unwrap(), node))
}

fn nodes(addresses: &[&str]) -> Change {
    let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
    Change::Nodes(Nodes { addresses, ..Nodes::default() })
}

#[test]
fn the_addresses_of_nodes_are_told_once_they_are_listed_and_before_the_cluster_counts_as_heard() {
    let mut cluster = Cluster::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Node) {
        cluster.list(kind);
    }
    cluster.step(Event::Capable(capabilities()));
    cluster.step(Event::ListStarted(Kind::Node));
    cluster.step(node("one", &["192.168.0.1", "fd00::1"]));
    cluster.step(node("two", &["192.168.0.2"]));
    assert_eq!(changes(&mut cluster), []);
    cluster.step(Event::Listed(Kind::Node));
    let all = nodes(&["192.168.0.1", "192.168.0.2", "fd00::1"]);
    assert_eq!(changes(&mut cluster), [all, Change::Heard(capabilities())]);
    cluster.step(node("two", &["192.168.0.2"])); // A heartbeat.
    assert_eq!(changes(&mut cluster), []);
    cluster.step(node("two", &["192.168.0.3"]));
    assert_eq!(changes(&mut cluster), [nodes(&["192.168.0.1", "192.168.0.3", "fd00::1"])]);
    cluster.step(Event::ListStarted(Kind::Node));
    cluster.step(node("one", &["192.168.0.1", "fd00::1"]));
    cluster.step(Event::Listed(Kind::Node));
    assert_eq!(changes(&mut cluster), [nodes(&["192.168.0.1", "fd00::1"])]);
    let object = ObjectName { kind: Kind::Node, namespace: None, name: "one".into() };
    let version = Version { uid: export().uid, revision: 60, deleting: false, others: None };
    cluster.step(Event::Gone(Gone { object, version }));
    assert_eq!(changes(&mut cluster), [nodes(&[])]);
}

#[test]
fn a_member_that_may_not_list_nodes_works_without_them() {
    let mut cluster = Cluster::new();
    for kind in Kind::ALL.into_iter().filter(|kind| *kind != Kind::Node) {
        cluster.list(kind);
    }
    cluster.step(Event::Capable(capabilities()));
    cluster.step(Event::ListStarted(Kind::Node));
    assert_eq!(changes(&mut cluster), []);
    cluster.step(Event::Unlisted(Kind::Node));
    assert_eq!(changes(&mut cluster), [Change::Heard(capabilities())]);
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.names().len(), 3);
    cluster.step(Event::ListStarted(Kind::Node)); // It is tried again and again.
    cluster.fact("a", Change::Export(web(), None));
    cluster.assign();
    cluster.settle();
    assert!(cluster.names().is_empty(), "{:?}", cluster.names());
}

fn misnamed(revision: u64, conditions: Vec<ConditionBody>) -> Seen {
    let version = Version { uid: export().uid, revision, deleting: false, others: None };
    Seen::MisnamedExport(MisnamedExport { namespace: namespace(), name: "a.b".into(), version, conditions })
}

#[test]
fn an_export_that_no_service_can_be_called_like_is_told_so_once() {
    let mut cluster = Cluster::synced();
    cluster.reports.clear();
    cluster.step(Event::Seen(misnamed(50, Vec::new())));
    let (target, request) = cluster.sent.remove(0);
    let Request::MisnamedStatus(at, name, uid, conditions) = request else { panic!("{request:?}") };
    assert_eq!((at, &*name, uid), (namespace(), "a.b", export().uid));
    let said: Vec<_> = conditions.iter().map(|c| (&*c.kind, c.status, c.reason.as_str())).collect();
    assert_eq!(said, [("Ready", Some(false), "Failed"), ("Valid", Some(false), "NoService")]);
    assert!(conditions[1].message.contains("a.b"));
    let seen = || misnamed(51, conditions.clone());
    cluster.step(Event::Wrote(target, Ok(Answer::Written(Box::new(seen())))));
    cluster.step(Event::ListStarted(Kind::Export));
    cluster.step(Event::Seen(seen()));
    cluster.step(Event::Listed(Kind::Export));
    cluster.later(60);
    assert!(cluster.sent.is_empty() && cluster.core.is_idle(), "{:?}", cluster.sent);
    assert!(changes(&mut cluster).is_empty(), "the hub hears nothing of it");
}

#[test]
fn a_member_does_not_fill_the_hubs_memory_with_nodes() {
    use crate::core::facts::NODES_MOST;
    let mut cluster = Cluster::new();
    cluster.step(Event::ListStarted(Kind::Node));
    for number in 0..NODES_MOST + 100 {
        let address = std::net::Ipv6Addr::from(number as u128 + (0xfd << 120)).to_string();
        cluster.step(node(&format!("node-{number}"), &[&address]));
    }
    cluster.step(Event::Listed(Kind::Node));
    let told = changes(&mut cluster).into_iter().find_map(|change| match change {
        Change::Nodes(nodes) => Some(nodes.addresses.len()),
        _ => None,
    });
    assert_eq!(told, Some(NODES_MOST));
}
