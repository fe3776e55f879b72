//! What is written, in which order, how often.

use atoll_engine::names::Uid;

use super::cluster::{Cluster, IMPORT, SERVICE, SLICE};
use crate::core::event::{Event, Failure, Request};
use crate::core::object::Target;

#[test]
fn a_service_comes_before_its_slices_and_an_import_costs_four_writes() {
    let mut cluster = Cluster::synced();
    cluster.assign();
    assert_eq!(cluster.sent.len(), 1, "{:?}", cluster.sent);
    assert!(matches!(&cluster.sent[0].1, Request::Service { onto: None, ips, .. } if ips.is_empty()));
    cluster.settle();
    let mut log = cluster.log.clone();
    assert_eq!(log.remove(0), format!("create {SERVICE}"));
    log.sort();
    assert_eq!(log, [format!("create {SLICE}"), format!("create {IMPORT}"), format!("status {IMPORT}")]);
    let status = cluster.api[IMPORT].status.as_ref().unwrap();
    assert_eq!(status.conditions[0].status, Some(true));
    assert_eq!(status.slices, Some(true));
}

#[test]
fn planning_twice_changes_nothing() {
    let mut cluster = Cluster::imported();
    for _ in 0..2 {
        cluster.assign();
        cluster.settle();
    }
    for kind in crate::core::object::Kind::ALL {
        cluster.list(kind);
    }
    cluster.settle();
    assert!(cluster.log.is_empty(), "{:?}", cluster.log);
    assert!(cluster.core.is_idle());
}

#[test]
fn a_member_started_anew_writes_nothing_when_all_is_there() {
    let before = Cluster::imported();
    let mut cluster = Cluster::restarted(&before);
    cluster.sync();
    cluster.assign();
    cluster.settle();
    assert!(cluster.log.is_empty(), "{:?}", cluster.log);
}

#[test]
fn a_slice_change_costs_one_write_and_no_status() {
    let mut cluster = Cluster::imported();
    cluster.slice_at_source("10.0.0.2");
    cluster.assign();
    cluster.settle();
    assert_eq!(cluster.log, [format!("update {SLICE}")]);
}

#[test]
fn the_latest_plan_wins_while_a_write_is_in_flight() {
    let mut cluster = Cluster::imported();
    for address in ["10.0.0.2", "10.0.0.3", "10.0.0.4"] {
        cluster.slice_at_source(address);
        cluster.assign();
        assert_eq!(cluster.sent.len(), 1, "one write per object at a time");
    }
    cluster.settle();
    assert_eq!(cluster.log, [format!("update {SLICE}"), format!("update {SLICE}")]);
    let Request::Slice(body, _) = &cluster.api[SLICE].said else { panic!() };
    assert_eq!(body.slice.endpoints[0].addresses[0].to_string(), "10.0.0.4");
}

#[test]
fn a_conflict_is_read_and_then_written_upon() {
    let mut cluster = Cluster::imported();
    cluster.user_edits(SLICE, false, |_| {});
    cluster.slice_at_source("10.0.0.2");
    cluster.assign();
    let (target, request) = cluster.sent.remove(0);
    cluster.answer(target, &request);
    assert!(cluster.log.is_empty(), "refused");
    assert_eq!(cluster.sent.len(), 0, "nothing is written blindly");
    cluster.settle();
    assert_eq!(cluster.log, [format!("update {SLICE}")]);
}

#[test]
fn without_a_permit_nothing_is_sent() {
    let mut cluster = Cluster::synced();
    cluster.step(Event::Permitted(false));
    cluster.assign();
    assert!(cluster.sent.is_empty());
    cluster.step(Event::Permitted(true));
    assert_eq!(cluster.sent.len(), 1);
    let (target, _) = cluster.sent.remove(0);
    cluster.step(Event::Wrote(target, Err(Failure::NotPermitted)));
    assert!(cluster.sent.is_empty(), "until it is granted again");
    cluster.step(Event::Permitted(true));
    cluster.settle();
    assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
}

#[test]
fn a_server_that_asks_for_patience_gets_it() {
    let mut cluster = Cluster::synced();
    cluster.assign();
    let (target, _) = cluster.sent.remove(0);
    cluster.step(Event::Wrote(target, Err(Failure::Later(Some(std::time::Duration::from_secs(7))))));
    cluster.later(6);
    assert!(cluster.sent.is_empty());
    cluster.later(1);
    assert_eq!(cluster.sent.len(), 1);
}

#[test]
fn a_terminating_namespace_is_left_in_peace() {
    let mut cluster = Cluster::synced();
    cluster.assign();
    let (target, _) = cluster.sent.remove(0);
    cluster.step(Event::Wrote(target, Err(Failure::NamespaceTerminating)));
    cluster.settle();
    cluster.assign();
    assert!(cluster.sent.is_empty() && cluster.problems().is_empty() && cluster.core.is_idle());
}

#[test]
fn a_namespace_that_comes_back_is_looked_at_whatever_the_plan_says() {
    use atoll_engine::facts::NamespaceState;
    for failure in [Failure::NamespaceTerminating, Failure::NotFound] {
        let mut cluster = Cluster::synced();
        cluster.assign();
        let (target, _) = cluster.sent.remove(0);
        cluster.step(Event::Wrote(target, Err(failure)));
        let shop = super::cluster::namespace();
        for state in [NamespaceState::Terminating, NamespaceState::Active] {
            cluster.step(Event::Seen(crate::core::event::Seen::Namespace(shop.clone(), state)));
        }
        cluster.settle();
        assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
    }
}

#[test]
fn an_object_that_a_server_changes_is_not_written_for_ever() {
    let mut cluster = Cluster::synced();
    cluster.assign();
    let (target, request) = cluster.sent.remove(0);
    let Request::Service { mut body, ips, onto } = request else { panic!() };
    body.traffic_distribution = Some(atoll_engine::facts::TrafficDistribution::PreferClose);
    cluster.answer(target, &Request::Service { body, ips, onto });
    cluster.settle();
    let services = cluster.log.iter().filter(|write| write.ends_with(SERVICE)).count();
    assert_eq!(services, 1, "{:?}", cluster.log);
}

#[test]
fn an_answer_that_is_older_than_a_deletion_is_no_news() {
    let mut cluster = Cluster::imported();
    cluster.slice_at_source("10.0.0.2");
    cluster.assign();
    let (target, request) = cluster.sent.remove(0);
    // The write is done, then the slice is deleted; the watch is faster than the answer.
    let Request::Slice(..) = &request else { panic!() };
    let answer_for = cluster.core_answer(&target, &request);
    cluster.user_deletes(SLICE);
    cluster.step(Event::Wrote(target, answer_for));
    cluster.settle();
    assert!(cluster.api.contains_key(SLICE), "it was made again: {:?}", cluster.log);
    assert_ne!(cluster.api[SLICE].version.uid, Uid::parse("uid-0").unwrap());
}

#[test]
fn an_event_that_is_older_than_an_answer_is_no_news() {
    let mut cluster = Cluster::imported();
    let old = cluster.seen(SLICE);
    cluster.slice_at_source("10.0.0.2");
    cluster.assign();
    cluster.settle();
    cluster.step(Event::Seen(old)); // The watch lags behind.
    assert!(cluster.sent.is_empty() && cluster.reads.is_empty(), "{:?}", cluster.sent);
    assert_eq!(cluster.log, [format!("update {SLICE}")]);
}

/// Another member's name makes the plain name of a slice ambiguous: it gets another one.
fn rename_slice(cluster: &mut Cluster) {
    let _ = cluster.engine.apply(&super::cluster::id("a-web"), atoll_engine::world::Change::Joined);
    cluster.assign();
}

#[test]
fn a_renamed_slice_goes_when_its_successor_is_there() {
    let mut cluster = Cluster::imported();
    rename_slice(&mut cluster);
    let slices = |cluster: &Cluster| {
        let of_slices = cluster.sent.iter().filter(|(target, _)| matches!(target, Target::Slice(..)));
        of_slices.map(|(_, request)| request.deletes()).collect::<Vec<_>>()
    };
    assert_eq!(slices(&cluster), [false], "{:?}", cluster.sent);
    let at = cluster.sent.iter().position(|(target, _)| matches!(target, Target::Slice(..))).unwrap();
    let (target, request) = cluster.sent.remove(at);
    cluster.step(Event::Wrote(target.clone(), Err(Failure::Unreachable("no".to_owned()))));
    assert_eq!(slices(&cluster), [false; 0], "it is tried again first");
    cluster.now.instant = cluster.core.next_wake().unwrap();
    cluster.step(Event::Tick);
    assert_eq!(slices(&cluster), [false]);
    cluster.sent.clear();
    cluster.answer(target, &request);
    assert_eq!(slices(&cluster), [true], "{:?}", cluster.sent);
    cluster.settle();
    let slices = cluster.names_of(crate::core::object::Kind::Slice);
    assert!(slices.len() == 1 && slices[0] != SLICE, "{slices:?}");
}

#[test]
fn a_slice_does_not_stay_for_a_successor_that_is_refused() {
    let mut cluster = Cluster::imported();
    rename_slice(&mut cluster);
    let at = cluster.sent.iter().position(|(target, _)| matches!(target, Target::Slice(..))).unwrap();
    let (target, _) = cluster.sent.remove(at);
    cluster.step(Event::Wrote(target, Err(Failure::Invalid("no".to_owned()))));
    let deletes = cluster.sent.iter().filter(|(_, request)| request.deletes()).count();
    assert_eq!(deletes, 1, "its endpoints may be long gone: {:?}", cluster.sent);
}

#[test]
fn what_a_service_without_rest_does_later_keeps_no_slice() {
    let mut cluster = Cluster::imported();
    rename_slice(&mut cluster);
    let at = cluster.sent.iter().position(|(target, _)| matches!(target, Target::Slice(..))).unwrap();
    let (target, request) = cluster.sent.remove(at);
    cluster.answer(target, &request);
    cluster.slice_at_source("10.0.0.7");
    cluster.assign();
    assert!(cluster.sent.iter().any(|(_, request)| request.deletes()), "{:?}", cluster.sent);
}

#[test]
fn an_import_says_why_its_derived_service_is_refused() {
    let forbidden = || Failure::Forbidden("exceeded quota: services=10".to_owned());
    for failure in [forbidden(), Failure::Invalid("policy \"exceeded quota\" says no".to_owned())] {
        let mut cluster = Cluster::synced();
        cluster.assign();
        let (target, _) = cluster.sent.remove(0);
        cluster.step(Event::Wrote(target, Err(failure)));
        for _ in 0..2 {
            let (target, request) = cluster.sent.remove(0);
            cluster.answer(target, &request);
        }
        assert_eq!(cluster.log, [format!("create {IMPORT}"), format!("status {IMPORT}")]);
        let Request::Import(body, _) = &cluster.api[IMPORT].said else { panic!() };
        assert!(body.ips.is_empty());
        let ready = cluster.api[IMPORT].status.as_ref().unwrap().conditions[0].clone();
        assert!(ready.status == Some(false) && ready.message.contains("exceeded quota"), "{ready:?}");
        assert!(cluster.sent.is_empty(), "{:?}", cluster.sent);
        cluster.settle(); // Half a minute later it is taken.
        assert_eq!(cluster.names(), [SLICE, IMPORT, SERVICE]);
        let Request::Import(body, _) = &cluster.api[IMPORT].said else { panic!() };
        assert!(!body.ips.is_empty());
        assert_eq!(cluster.api[IMPORT].status.as_ref().unwrap().conditions[0].status, Some(true));
    }
}

#[test]
fn a_slice_does_not_stay_for_a_successor_that_is_given_up() {
    for failure in [Failure::NotFound, Failure::NamespaceTerminating] {
        let mut cluster = Cluster::imported();
        rename_slice(&mut cluster);
        let at = cluster.sent.iter().position(|(target, _)| matches!(target, Target::Slice(..))).unwrap();
        let (target, _) = cluster.sent.remove(at);
        cluster.step(Event::Wrote(target, Err(failure)));
        assert!(cluster.sent.iter().any(|(_, request)| request.deletes()), "{:?}", cluster.sent);
    }
}
