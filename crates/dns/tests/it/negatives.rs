//! "No such name" and "nothing of that type" are told apart, and both say how long they hold.

use atoll_dns::{
    Absent, Answer, Catalog, Event, Import, Kind, NoData, NxDomain, Query, Refusal, Settings, Snapshot,
};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType::{self, A, AAAA, AXFR, CNAME, IXFR, MX, PTR, SOA, SRV, TXT};

use crate::world::{World, cluster_set_ip, headless, query, shop, slice_of};

const NOTHING_OF_TYPE: Answer<'_> = Answer::Absent(Absent::NoData(NoData::OtherType));
const NAMES_BELOW: Answer<'_> = Answer::Absent(Absent::NoData(NoData::OnlyNamesBelow));

fn missing(why: NxDomain) -> Answer<'static> {
    Answer::Absent(Absent::NxDomain(why))
}

fn decided<'s>(snapshot: &'s Snapshot, name: &str, rtype: RecordType) -> Answer<'s> {
    snapshot.answer(&Query::read(&query(name, rtype, None)).unwrap())
}

#[test]
fn absent_things_are_told_apart() {
    let world = shop();
    for (name, rtype, want) in [
        ("web.shop.svc", TXT, NOTHING_OF_TYPE),
        ("web.shop.svc", MX, NOTHING_OF_TYPE),
        ("web.shop.svc", CNAME, NOTHING_OF_TYPE),
        ("web.shop.svc", RecordType::Unknown(65_280), NOTHING_OF_TYPE),
        ("_http._tcp.web.shop.svc", A, NOTHING_OF_TYPE),
        ("db-0.tokyo.db.shop.svc", AAAA, NOTHING_OF_TYPE),
        ("db-0.tokyo.db.shop.svc", SRV, NOTHING_OF_TYPE),
        ("dns-version", A, NOTHING_OF_TYPE),
        ("_tcp.web.shop.svc", SRV, NAMES_BELOW),
        ("shop.svc", A, NAMES_BELOW),
        ("svc", A, NAMES_BELOW),
        ("ns.dns", A, NAMES_BELOW),
        ("dns", A, NAMES_BELOW),
        ("none.shop.svc", A, missing(NxDomain::NoService)),
        ("web.none.svc", A, missing(NxDomain::NoService)),
        ("none.svc", A, missing(NxDomain::NoNamespace)),
        ("_http._udp.web.shop.svc", SRV, missing(NxDomain::NotOfService)),
        ("_sctp.web.shop.svc", SRV, missing(NxDomain::NotOfService)),
        ("db-1.paris.db.shop.svc", A, missing(NxDomain::NotOfService)),
        ("x.db-0.paris.db.shop.svc", A, missing(NxDomain::NotOfService)),
        ("web.shop.pod", A, missing(NxDomain::NotInSchema)),
        ("web.shop", A, missing(NxDomain::NotInSchema)),
    ] {
        assert_eq!(
            decided(&world.snapshot, &format!("{name}.clusterset.local."), rtype),
            want,
            "{name} {rtype}"
        );
    }
}

#[test]
fn the_name_of_a_cluster_alone_is_never_served() {
    let world = shop();
    for (name, want) in [
        ("paris.db.shop.svc.clusterset.local.", NAMES_BELOW), // names below it exist, so that it can't be missing
        ("paris.web.shop.svc.clusterset.local.", missing(NxDomain::NotOfService)),
        ("berlin.db.shop.svc.clusterset.local.", missing(NxDomain::NotOfService)),
    ] {
        for rtype in [A, AAAA, SRV] {
            assert_eq!(decided(&world.snapshot, name, rtype), want, "{name} {rtype}");
        }
    }
}

#[test]
fn a_negative_answer_carries_the_zones_record_and_how_long_it_holds() {
    let world = shop();
    for (name, code) in [("web", ResponseCode::NoError), ("none", ResponseCode::NXDomain)] {
        let reply = world.ask(&format!("{name}.shop.svc.clusterset.local."), TXT);
        assert_eq!(reply.metadata.response_code, code);
        assert!(reply.metadata.authoritative && reply.answers.is_empty());
        let [record] = &reply.authorities[..] else { panic!("one record: {reply:?}") };
        assert_eq!(
            (record.name.to_ascii().as_str(), record.record_type(), record.ttl),
            ("clusterset.local.", SOA, 5)
        );
        assert!(record.data.to_string().ends_with(" 5"), "the minimum is the time: {}", record.data);
    }
}

#[test]
fn a_headless_service_with_nothing_ready_is_no_name() {
    let world = World::new().import("db.shop", headless()).slice("db-1.shop", slice_of("db", "paris", &[]));
    for name in ["db.shop.svc.clusterset.local.", "_http._tcp.db.shop.svc.clusterset.local."] {
        assert_eq!(decided(&world.snapshot, name, A), missing(NxDomain::NoService));
    }
    let namespace = decided(&world.snapshot, "shop.svc.clusterset.local.", A);
    assert_eq!(namespace, missing(NxDomain::NoNamespace), "and neither is what is above it");
}

#[test]
fn an_import_whose_addresses_are_pending_is_a_name_without_them() {
    let world = World::new().import("web.shop", cluster_set_ip(&[]));
    for rtype in [A, AAAA, SRV] {
        assert_eq!(decided(&world.snapshot, "web.shop.svc.clusterset.local.", rtype), NOTHING_OF_TYPE);
    }
}

#[test]
fn slices_without_an_import_are_no_service() {
    let world = World::new().slice("db-1.shop", slice_of("db", "paris", &["10.11.0.7"]));
    assert_eq!(decided(&world.snapshot, "db.shop.svc.clusterset.local.", A), missing(NxDomain::NoService));
}

#[test]
fn what_is_not_ours_is_refused() {
    let world = shop();
    for (name, rtype, want) in [
        ("web.shop.svc.cluster.local.", A, Refusal::NotOurs),
        ("local.", A, Refusal::NotOurs),
        (".", A, Refusal::NotOurs),
        ("xclusterset.local.", A, Refusal::NotOurs),
        ("7.0.111.10.in-addr.arpa.", PTR, Refusal::NotOurs),
        ("clusterset.local.", AXFR, Refusal::Transfer),
        ("clusterset.local.", IXFR, Refusal::Transfer),
    ] {
        assert_eq!(decided(&world.snapshot, name, rtype), Answer::Refused(want), "{name} {rtype}");
        let reply = world.ask(name, rtype);
        assert_eq!(reply.metadata.response_code, ResponseCode::Refused);
        assert!(!reply.metadata.authoritative && reply.all_sections().count() == 0);
    }
}

#[test]
fn nothing_is_said_before_everything_was_listed() {
    let mut catalog = Catalog::new(Settings::default(), 1);
    let ask = |catalog: &mut Catalog| {
        catalog.publish();
        decided(catalog.snapshot(), "web.shop.svc.clusterset.local.", A).rcode()
    };
    let import: Import = cluster_set_ip(&["10.111.0.7"]);
    catalog.apply(Event::ListStarted(Kind::Imports));
    catalog.apply(Event::Import { namespace: "shop".into(), name: "web".into(), import });
    catalog.apply(Event::Listed(Kind::Imports));
    assert_eq!(ask(&mut catalog), atoll_dns::rcode::SERVER_FAILURE, "the slices are missing");
    catalog.apply(Event::Listed(Kind::Slices));
    assert_eq!(ask(&mut catalog), atoll_dns::rcode::NO_ERROR);
}
