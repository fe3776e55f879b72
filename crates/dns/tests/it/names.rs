//! The names of the schema, and what is at them.

use atoll_dns::{Event, Import, Name, Protocol};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType::{self, A, AAAA, ANY, HINFO, NS, SOA, SRV, TXT};

use crate::world::{World, answers, cluster_set_ip, headless, port, shop, slice_of, sorted, text};

/// `want` in any order.
fn says(world: &World, name: &str, rtype: RecordType, want: &[&str]) {
    let reply = world.ask(&format!("{name}.clusterset.local."), rtype);
    assert_eq!(reply.metadata.response_code, ResponseCode::NoError, "{name} {rtype}");
    assert!(reply.metadata.authoritative && !reply.metadata.truncation);
    assert_eq!(sorted(&reply), want, "{name} {rtype}");
    for record in &reply.answers {
        assert_eq!(record.ttl, 5);
        assert_eq!(record.name.to_ascii(), format!("{name}.clusterset.local."));
    }
}

#[test]
fn a_service_with_addresses_of_its_own_gives_them_in_both_families() {
    let world = shop();
    says(&world, "web.shop.svc", A, &["10.111.0.7"]);
    says(&world, "web.shop.svc", AAAA, &["fd00:20:1::7"]);
}

#[test]
fn its_srv_records_point_to_itself_and_unnamed_ports_have_none() {
    let world = shop();
    let itself = "web.shop.svc.clusterset.local.";
    says(&world, "_http._tcp.web.shop.svc", SRV, &[&format!("0 1 80 {itself}")]);
    says(&world, "_dns._udp.web.shop.svc", SRV, &[&format!("0 1 53 {itself}")]);
    says(&world, "web.shop.svc", SRV, &[&format!("0 1 53 {itself}"), &format!("0 1 80 {itself}")]);
}

#[test]
fn one_port_number_over_two_protocols_is_one_srv_record_at_the_bare_name() {
    let import = Import {
        ports: vec![port("tcp", Protocol::Tcp, 42), port("udp", Protocol::Udp, 42)],
        ..cluster_set_ip(&["10.111.0.9"])
    };
    let world = World::new().import("hello.test", import);
    says(&world, "hello.test.svc", SRV, &["0 1 42 hello.test.svc.clusterset.local."]);
}

#[test]
fn srv_records_bring_the_addresses_along() {
    let world = shop();
    let reply = world.ask("_http._tcp.web.shop.svc.clusterset.local.", SRV);
    let brought: Vec<_> =
        reply.additionals.iter().map(|record| format!("{} {}", record.name, text(&record.data))).collect();
    let name = "web.shop.svc.clusterset.local.";
    assert_eq!(brought, [format!("{name} 10.111.0.7"), format!("{name} fd00:20:1::7")]);
    let reply = world.ask("_http._tcp.db.shop.svc.clusterset.local.", SRV);
    assert_eq!((reply.answers.len(), reply.additionals.len()), (4, 5));
}

#[test]
fn a_headless_service_gives_every_ready_endpoint_of_every_cluster() {
    let world = shop();
    says(&world, "db.shop.svc", A, &["10.11.0.7", "10.11.0.8", "10.12.0.7"]);
    says(&world, "db.shop.svc", AAAA, &["fd00:10:1::7", "fd00:10:1::8"]);
}

#[test]
fn hosts_are_named_by_hostname_or_dashed_address_and_cluster() {
    let world = shop();
    says(&world, "db-0.paris.db.shop.svc", A, &["10.11.0.7"]);
    says(&world, "db-0.paris.db.shop.svc", AAAA, &["fd00:10:1::7"]);
    says(&world, "10-11-0-8.paris.db.shop.svc", A, &["10.11.0.8"]);
    says(&world, "fd00-10-1--8.paris.db.shop.svc", AAAA, &["fd00:10:1::8"]);
}

#[test]
fn hostnames_that_clash_between_clusters_stay_apart() {
    let world = shop();
    says(&world, "db-0.paris.db.shop.svc", A, &["10.11.0.7"]);
    says(&world, "db-0.tokyo.db.shop.svc", A, &["10.12.0.7"]);
}

#[test]
fn headless_srv_records_have_a_target_per_host_and_the_ports_of_the_slices() {
    let world = shop();
    let hosts = ["10-11-0-8.paris", "db-0.paris", "db-0.tokyo", "fd00-10-1--8.paris"];
    let want = |port: u16| hosts.map(|host| format!("0 1 {port} {host}.db.shop.svc.clusterset.local."));
    let http = want(8080);
    says(&world, "_http._tcp.db.shop.svc", SRV, &http.each_ref().map(String::as_str));
    let both = [want(8080), want(9100)].concat();
    says(&world, "db.shop.svc", SRV, &both.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn the_zone_says_what_it_is() {
    let world = shop();
    says(&world, "dns-version", TXT, &["1.0.0"]);
    let apex = |rtype| answers(&world.ask("clusterset.local.", rtype));
    assert_eq!(apex(NS), ["ns.dns.clusterset.local."]);
    let soa = apex(SOA);
    let serial = world.snapshot.serial();
    let want = format!("ns.dns.clusterset.local. hostmaster.clusterset.local. {serial} 7200 1800 86400 5");
    assert_eq!(soa, [want]);
}

#[test]
fn whoever_wants_everything_gets_one_small_record() {
    let reply = shop().ask("db.shop.svc.clusterset.local.", ANY);
    let types: Vec<_> = reply.answers.iter().map(hickory_proto::rr::Record::record_type).collect();
    assert_eq!(types, [HINFO]);
}

#[test]
fn letters_keep_the_case_they_were_asked_in() {
    let reply = shop().ask("WeB.Shop.sVc.ClusterSet.LOCAL.", A);
    assert_eq!(answers(&reply), ["10.111.0.7"]);
    for name in [&reply.answers[0].name, reply.queries[0].name()] {
        assert_eq!(name.to_ascii(), "WeB.Shop.sVc.ClusterSet.LOCAL.");
    }
    let reply = shop().ask("NONE.Shop.sVc.ClusterSet.LOCAL.", A);
    assert_eq!(reply.authorities[0].name.to_ascii(), "ClusterSet.LOCAL.");
}

#[test]
fn answers_turn() {
    let world = shop();
    let turn = |turn| answers(&world.ask_turn("db.shop.svc.clusterset.local.", A, turn));
    let (first, second) = (turn(0), turn(1));
    assert_ne!(first, second);
    assert_eq!(first, turn(3), "three addresses, three turns");
    assert_eq!(second[0], first[1]);
}

#[test]
fn local_endpoints_come_first_in_every_turn_where_the_service_asks_for_it() {
    let near_first = Import { local_first: true, ..headless() };
    let mut world = shop().import("db.shop", near_first);
    world.apply(Event::Local(Some(Name::label("tokyo").unwrap())));
    for turn in 0..6 {
        let reply = world.ask_turn("db.shop.svc.clusterset.local.", A, turn);
        assert_eq!(answers(&reply)[0], "10.12.0.7");
        let srv = answers(&world.ask_turn("_http._tcp.db.shop.svc.clusterset.local.", SRV, turn));
        assert_eq!(srv[0], "0 1 8080 db-0.tokyo.db.shop.svc.clusterset.local.");
        assert!(srv[1..].iter().all(|record| record.starts_with("10 1 8080 ")), "{srv:?}");
    }
    let mut world = shop();
    world.apply(Event::Local(Some(Name::label("tokyo").unwrap())));
    let firsts: std::collections::BTreeSet<_> = (0..3)
        .map(|turn| answers(&world.ask_turn("db.shop.svc.clusterset.local.", A, turn))[0].clone())
        .collect();
    assert_eq!(firsts.len(), 3, "without the wish all have their turn");
}

#[test]
fn an_import_without_ports_still_has_its_addresses() {
    let import = Import { ports: Vec::new(), ..cluster_set_ip(&["10.111.0.9"]) };
    let world = World::new().import("quiet.shop", import);
    says(&world, "quiet.shop.svc", A, &["10.111.0.9"]);
    says(&world, "quiet.shop.svc", SRV, &[]);
}

#[test]
fn one_address_in_two_slices_is_answered_once() {
    let world = World::new()
        .import("db.shop", headless())
        .slice("a.shop", slice_of("db", "paris", &["10.11.0.7"]))
        .slice("b.shop", slice_of("db", "paris", &["10.11.0.7"]));
    says(&world, "db.shop.svc", A, &["10.11.0.7"]);
}

#[test]
fn slices_of_a_service_with_addresses_of_its_own_show_nowhere() {
    let world = shop().slice("web-1.shop", slice_of("web", "paris", &["pod=10.11.0.9"]));
    says(&world, "web.shop.svc", A, &["10.111.0.7"]);
    let reply = world.ask("pod.paris.web.shop.svc.clusterset.local.", A);
    assert_eq!(reply.metadata.response_code, ResponseCode::NXDomain);
}
