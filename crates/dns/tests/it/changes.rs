//! Changes show at once, and touch nothing else.

use atoll_dns::{Event, Import, Kind};
use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType::A;

use crate::world::{World, cluster_set_ip, gone, headless, mk_import, mk_slice, shop, slice_of, sorted};

const DB: &str = "db.shop.svc.clusterset.local.";

#[test]
fn a_changed_slice_changes_the_answer() {
    let mut world = shop();
    world.apply(mk_slice("db-t4.shop", slice_of("db", "tokyo", &["10.12.0.8"])));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.11.0.8", "10.12.0.8"]);
    world.apply(gone(Kind::Slices, "db-t4.shop"));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.11.0.8"]);
    world.apply(gone(Kind::Imports, "db.shop"));
    assert_eq!(world.ask(DB, A).metadata.response_code, ResponseCode::NXDomain);
    world.apply(mk_import("db.shop", headless()));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.11.0.8"], "the slices were not forgotten");
}

#[test]
fn a_slice_that_moves_to_another_service_leaves_the_first() {
    let mut world = shop().import("cache.shop", headless());
    world.apply(mk_slice("db-t4.shop", slice_of("cache", "tokyo", &["10.12.0.7"])));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.11.0.8"]);
    assert_eq!(sorted(&world.ask("cache.shop.svc.clusterset.local.", A)), ["10.12.0.7"]);
}

#[test]
fn a_type_that_changes_changes_everything_of_that_service() {
    let mut world = shop();
    world.apply(mk_import("db.shop", cluster_set_ip(&["10.111.0.8"])));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.111.0.8"]);
    world.apply(mk_import("db.shop", Import { headless: true, ..cluster_set_ip(&[]) }));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.11.0.8", "10.12.0.7"]);
}

#[test]
fn half_a_list_takes_nothing_away() {
    let mut world = shop();
    world.apply(Event::ListStarted(Kind::Slices));
    world.apply(mk_slice("db-p4.shop", slice_of("db", "paris", &["10.11.0.7"])));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.12.0.7"], "what the list says holds at once");
    // It breaks off, and another begins.
    world.apply(Event::ListStarted(Kind::Slices));
    world.apply(mk_slice("db-t4.shop", slice_of("db", "tokyo", &["10.12.0.7"])));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.11.0.7", "10.12.0.7"]);
    world.apply(Event::Listed(Kind::Slices));
    assert_eq!(sorted(&world.ask(DB, A)), ["10.12.0.7"], "what a complete list leaves out has gone");
}

#[test]
fn imports_that_a_complete_list_leaves_out_go() {
    let mut world = shop();
    world.apply(Event::ListStarted(Kind::Imports));
    world.apply(mk_import("db.shop", headless()));
    world.apply(Event::Listed(Kind::Imports));
    let web = world.ask("web.shop.svc.clusterset.local.", A);
    assert_eq!(web.metadata.response_code, ResponseCode::NXDomain);
    assert_eq!(world.ask(DB, A).answers.len(), 3);
}

#[test]
fn what_changes_no_answer_makes_no_snapshot() {
    let mut world = shop();
    let serial = world.snapshot.serial();
    world.catalog.apply(mk_import("db.shop", headless()));
    world.catalog.apply(mk_slice("db-t4.shop", slice_of("db", "tokyo", &["db-0=10.12.0.7"])));
    world.catalog.apply(mk_slice("web-1.shop", slice_of("web", "tokyo", &["10.12.0.9"])));
    assert!(world.catalog.publish().is_none());
    world.apply(mk_slice("db-t4.shop", slice_of("db", "tokyo", &["10.12.0.7"])));
    assert_eq!(world.snapshot.serial(), serial + 1);
}

#[test]
fn a_changed_slice_among_a_thousand_services_touches_one_part_in_256() {
    let mut world = World::new();
    for number in 0..1000 {
        world.catalog.apply(mk_import(&format!("s{number}.shop"), headless()));
        world.catalog.apply(mk_slice(
            &format!("s{number}-1.shop"),
            slice_of(&format!("s{number}"), "paris", &["10.11.0.1"]),
        ));
    }
    let before = world.catalog.publish().unwrap();
    assert_eq!(before.services(), 1000);
    world.catalog.apply(mk_slice("s500-1.shop", slice_of("s500", "paris", &["10.11.0.2"])));
    let after = world.catalog.publish().unwrap();
    assert_eq!(after.parts_apart(&before), 1);
}

#[test]
fn names_that_dns_cannot_carry_are_left_out() {
    let mut world = shop();
    let import = cluster_set_ip(&["10.111.0.9"]);
    let event = Event::Import { namespace: "shop".into(), name: "a.b".into(), import };
    world.apply(event);
    assert_eq!(world.snapshot.services(), 2);
}
