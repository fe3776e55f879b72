//! Drift: a user deletes or edits what is ours.

use atoll_engine::names::SliceName;
use atoll_engine::world::Change;

use super::cluster::{Cluster, IMPORT, SERVICE, SLICE, service, web};
use crate::core::event::{Answer, Event, Failure, Request};
use crate::core::object::Target;

#[test]
fn what_a_user_deletes_is_made_again() {
    for (name, writes) in [(SLICE, 1), (IMPORT, 2)] {
        let mut cluster = Cluster::imported();
        cluster.user_deletes(name);
        cluster.settle();
        assert_eq!(cluster.names().len(), 3, "{name}");
        assert_eq!(cluster.log.len(), writes, "{name}: {:?}", cluster.log);
        assert_eq!(cluster.log[0], format!("create {name}"));
        let [told] = &cluster.told[..] else { panic!("{name}: {:?}", cluster.told) };
        assert!(told.warning && told.reason == "DriftRepaired", "{told:?}");
        assert!(
            told.message.starts_with(
                "It was deleted, and has been created again: it follows the service exported by a."
            ),
            "{told:?}"
        );
        assert_eq!(
            told.about.uid.as_deref(),
            Some(cluster.api[name].version.uid.as_str()),
            "it is about the new one"
        );
    }
}

#[test]
fn our_own_writes_are_no_drift() {
    let mut cluster = Cluster::imported();
    for address in ["10.0.0.2", "10.0.0.3"] {
        cluster.slice_at_source(address);
        cluster.assign();
        cluster.settle();
        cluster.list(crate::core::object::Kind::Slice);
        cluster.settle();
    }
    cluster.fact("a", Change::Export(web(), None));
    cluster.assign();
    cluster.settle();
    assert!(cluster.names().is_empty(), "{:?}", cluster.names());
    let told: Vec<&str> = cluster.told.iter().map(|told| told.reason).collect();
    assert_eq!(told, ["ImportRemoved"], "{:?}", cluster.told);
    assert_eq!(
        cluster.told[0].message,
        "The import was removed with its derived Service: no cluster exports the service any more. It was exported by a. To import it again, create ServiceExport shop/web there again; if it still exists, see its conditions."
    );
}

#[test]
fn an_import_that_ends_is_told_whether_the_watch_or_the_answer_comes_first() {
    for answered in [true, false] {
        let mut cluster = Cluster::imported();
        cluster.fact("a", Change::Export(web(), None));
        cluster.assign();
        let is_import =
            |(_, request): &(_, Request)| matches!(request, Request::Delete(Target::Import(_), _));
        let at = cluster.sent.iter().position(is_import).unwrap();
        let (target, _) = cluster.sent.remove(at);
        cluster.user_deletes(IMPORT);
        // The request may have been carried out although its answer was lost.
        let lost = Err(Failure::Unreachable("timeout".to_owned()));
        cluster.step(Event::Wrote(target, if answered { Ok(Answer::Deleted) } else { lost }));
        cluster.settle();
        let [told] = &cluster.told[..] else { panic!("{:?}", cluster.told) };
        assert!(told.warning && told.reason == "ImportRemoved", "its clients had endpoints: {told:?}");
    }
}

#[test]
fn the_end_of_an_import_without_endpoints_is_no_warning() {
    let mut cluster = Cluster::imported();
    cluster.fact("a", Change::Slice(web(), SliceName::parse("web-1").unwrap(), None));
    cluster.assign();
    cluster.settle();
    cluster.fact("a", Change::Export(web(), None));
    cluster.assign();
    cluster.settle();
    let told: Vec<_> = cluster.told.iter().map(|told| (told.reason, told.warning)).collect();
    assert_eq!(told, [("ImportRemoved", false)]);
}

#[test]
fn a_service_made_again_asks_for_its_old_address() {
    let mut cluster = Cluster::imported();
    cluster.user_deletes(SERVICE);
    let wish = cluster.sent.iter().find_map(|(_, request)| match request {
        Request::Service { ips, onto: None, .. } => Some(ips.clone()),
        _ => None,
    });
    assert_eq!(wish.unwrap(), ["172.16.0.1".parse::<std::net::IpAddr>().unwrap()]);
    cluster.settle();
    assert!(cluster.log.contains(&format!("update {SLICE}")), "it hangs on the new one: {:?}", cluster.log);
    assert!(!cluster.log.contains(&format!("update {IMPORT}")), "the address is the same: {:?}", cluster.log);
}

#[test]
fn an_address_that_another_service_has_by_now_is_not_asked_for_again() {
    let mut cluster = Cluster::imported();
    cluster.user_deletes(SERVICE);
    let mut asked = Vec::new();
    for _ in 0..=crate::core::outcome::WISHES {
        let at =
            cluster.sent.iter().position(|(_, request)| matches!(request, Request::Service { .. })).unwrap();
        let (target, request) = cluster.sent.remove(at);
        if let Request::Service { ips, .. } = &request {
            asked.push(!ips.is_empty());
        }
        cluster.step(Event::Wrote(target, Err(Failure::Invalid("already allocated".to_owned()))));
        cluster.later(1);
    }
    // The server lets go of an address a moment after its Service, so it is asked for some times before that.
    assert_eq!(asked.iter().filter(|asked| **asked).count(), usize::from(crate::core::outcome::WISHES));
    assert_eq!(asked.last(), Some(&false));
}

#[test]
fn what_a_user_edits_is_replaced() {
    let mut cluster = Cluster::imported();
    cluster.user_edits(SERVICE, true, |stored| {
        let Request::Service { body, .. } = &mut stored.said else { panic!() };
        body.extras = true; // A selector, say.
    });
    cluster.settle();
    assert_eq!(cluster.log, [format!("update {SERVICE}")]);
    let [told] = &cluster.told[..] else { panic!("{:?}", cluster.told) };
    assert_eq!((told.reason, &*told.about.kind), ("DriftRepaired", "Service"));
    assert_eq!(
        told.message,
        "It was changed, and the change was undone: it follows the service exported by a. Change the Service or its ServiceExport in those clusters instead."
    );
    cluster.user_edits(IMPORT, true, |stored| {
        let Request::Import(body, _) = &mut stored.said else { panic!() };
        body.ports.clear();
    });
    cluster.settle();
    cluster.user_edits(IMPORT, true, |stored| stored.status.as_mut().unwrap().clusters.clear());
    cluster.settle();
    assert_eq!(cluster.log[1..], [format!("update {IMPORT}"), format!("status {IMPORT}")]);
}

#[test]
fn a_change_of_type_makes_the_service_anew_and_the_import_pending_meanwhile() {
    let mut cluster = Cluster::imported();
    cluster.fact("a", Change::Service(web(), Some(service(true))));
    cluster.assign();
    assert!(cluster.sent.iter().any(|(_, request)| request.deletes()), "{:?}", cluster.sent);
    let at = cluster.sent.iter().position(|(_, request)| request.deletes()).unwrap();
    let (target, request) = cluster.sent.remove(at);
    cluster.answer(target, &request);
    let pending = cluster.sent.iter().any(|(_, request)| {
        matches!(request, Request::ImportStatus(_, body, _) if body.conditions[0].status == Some(false))
    });
    assert!(pending, "{:?}", cluster.sent);
    cluster.settle();
    let status = cluster.api[IMPORT].status.as_ref().unwrap();
    assert_eq!(status.conditions[0].status, Some(true));
    let Request::Import(body, _) = &cluster.api[IMPORT].said else { panic!() };
    assert!(body.headless && body.ips.is_empty());
    let Request::Slice(body, _) = &cluster.api[SLICE].said else { panic!() };
    assert!(body.attached.headless);
    assert_eq!(body.attached.owner.as_ref(), Some(&cluster.api[SERVICE].version.uid));
}

#[test]
fn the_time_of_a_condition_moves_only_with_its_status() {
    let mut cluster = Cluster::imported();
    let before = cluster.api[IMPORT].status.clone().unwrap().conditions[0].since;
    cluster.now.wall = atoll_engine::time::Time(before.0 + 60_000);
    cluster.user_edits(IMPORT, true, |stored| stored.status.as_mut().unwrap().clusters.clear());
    cluster.settle();
    assert_eq!(cluster.api[IMPORT].status.clone().unwrap().conditions[0].since, before);
}

#[test]
fn a_service_that_gets_another_name_stays_until_its_slices_hang_on_the_new_one() {
    let mut cluster = Cluster::imported();
    let plain = atoll_engine::names::ServiceKey::parse("shop", "derived-web").unwrap();
    cluster.fact("b", Change::Taken(plain, true));
    cluster.assign();
    cluster.settle();
    let place = |what: &str| cluster.log.iter().position(|write| write.starts_with(what));
    let (made, moved) = (place("create services "), place(&format!("update {SLICE}")));
    assert!(made.is_some() && made < moved, "{:?}", cluster.log);
    assert!(moved < place(&format!("delete {SERVICE}")), "{:?}", cluster.log);
    assert_eq!(cluster.names().len(), 3);
}

#[test]
fn a_service_deleted_twice_asks_for_its_address_twice() {
    let mut cluster = Cluster::imported();
    for _ in 0..2 {
        cluster.user_deletes(SERVICE);
        for round in 0..=crate::core::outcome::WISHES {
            let service = |(_, request): &(_, Request)| matches!(request, Request::Service { .. });
            let at = cluster.sent.iter().position(service).unwrap();
            let (target, request) = cluster.sent.remove(at);
            let Request::Service { ips, .. } = &request else { panic!() };
            assert_eq!(ips.is_empty(), round == crate::core::outcome::WISHES);
            if ips.is_empty() {
                cluster.answer(target, &request);
            } else {
                cluster.step(Event::Wrote(target, Err(Failure::Invalid("already allocated".to_owned()))));
                cluster.later(1);
            }
        }
        cluster.settle();
        assert!(cluster.api.contains_key(SERVICE));
    }
}

#[test]
fn what_others_hang_on_an_object_is_sent_along() {
    use crate::core::object::Others;
    let others =
        std::sync::Arc::new(Others { finalizers: vec!["theirs/one".to_owned()], ..Others::default() });
    let mut cluster = Cluster::imported();
    for name in [SERVICE, IMPORT, SLICE] {
        cluster.user_edits(name, true, |stored| {
            stored.version.others = Some(std::sync::Arc::clone(&others));
            match &mut stored.said {
                Request::Service { body, .. } => body.extras = true,
                Request::Import(body, _) => body.ports.clear(),
                Request::Slice(body, _) => body.attached.headless = true,
                other => panic!("{other:?}"),
            }
        });
        cluster.settle();
        assert_eq!(cluster.log.pop(), Some(format!("update {name}")));
        assert_eq!(cluster.api[name].version.others.as_ref(), Some(&others), "{name}");
    }
}
