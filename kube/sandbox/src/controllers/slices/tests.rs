//! Slices in a world without I/O.

use super::fill::FULL;
use crate::controllers::action::Kind;
use crate::controllers::world::World;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn world(pods: usize) -> World {
    let mut world = World::new();
    world.create(Kind::Service, json!({"metadata": {"name": "web"}, "spec": {
        "clusterIP": "10.96.0.9", "selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}));
    for number in 0..pods {
        pod(&mut world, number, 8080);
    }
    world.settle();
    world
}

fn pod(world: &mut World, number: usize, port: u16) {
    let name = format!("pod-{number}");
    let container = json!({"ports": [{"name": "http", "containerPort": port}]});
    world.create(
        Kind::Pod,
        json!({"metadata": {"name": name, "labels": {"app": "web"}}, "spec": {"containers": [container]}}),
    );
    world.run(&name, true);
}

/// Ready endpoints by pod.
fn ready(world: &World) -> BTreeMap<String, Vec<bool>> {
    let mut found: BTreeMap<String, Vec<bool>> = BTreeMap::new();
    for slice in world.all(Kind::Slice) {
        let endpoints = slice["endpoints"].as_array().unwrap();
        assert!(endpoints.len() <= FULL);
        for endpoint in endpoints {
            let name = endpoint["targetRef"]["name"].as_str().unwrap().to_owned();
            found.entry(name).or_default().push(endpoint["conditions"]["ready"] == true);
        }
    }
    found
}

fn sizes(world: &World) -> Vec<usize> {
    let mut sizes: Vec<usize> =
        world.all(Kind::Slice).iter().map(|slice| slice["endpoints"].as_array().unwrap().len()).collect();
    sizes.sort_unstable();
    sizes
}

#[test]
fn a_full_slice_is_followed_by_another() {
    let mut world = world(250);
    assert_eq!(sizes(&world), [50, 100, 100]);
    // One that changes costs one write.
    world.run("pod-7", false);
    assert_eq!(world.settle(), 1);
    // One more goes where there is room.
    pod(&mut world, 300, 8080);
    assert_eq!(world.settle(), 1);
    assert_eq!(sizes(&world), [51, 100, 100]);
}

#[test]
fn pods_with_other_numbers_for_a_port_are_in_other_slices() {
    let mut world = world(1);
    pod(&mut world, 5, 9090);
    world.settle();
    let mut ports: Vec<&Value> =
        world.all(Kind::Slice).iter().map(|slice| &slice["ports"][0]["port"]).collect();
    ports.sort_by_key(|port| port.as_i64());
    assert_eq!(ports, [8080, 9090]);
}

#[test]
fn a_pod_that_ends_or_has_no_node_is_no_endpoint() {
    let mut world = world(3);
    world.end("pod-0", "Succeeded");
    world.patch(Kind::Pod, "pod-1", &json!({"spec": {"nodeName": "elsewhere"}}));
    world.settle();
    assert_eq!(ready(&world).into_keys().collect::<Vec<_>>(), ["pod-2"]);
}

#[test]
fn labels_of_the_service_are_those_of_its_slices() {
    let mut world = world(2);
    world.patch(Kind::Service, "web", &json!({"metadata": {"labels": {"team": "front"}}}));
    assert_eq!(world.settle(), 1);
    assert_eq!(world.all(Kind::Slice)[0]["metadata"]["labels"]["team"], "front");
}

#[test]
fn a_slice_of_an_earlier_service_of_this_name_is_not_used() {
    let mut world = world(1);
    let old = world.all(Kind::Slice)[0]["metadata"]["name"].clone();
    let service = world.get(Kind::Service, "web").clone();
    world.remove(Kind::Service, "web");
    world.create(Kind::Service, json!({"metadata": {"name": "web"}, "spec": service["spec"]}));
    world.settle();
    let slices = world.all(Kind::Slice);
    assert_eq!(slices.len(), 1);
    assert_ne!(slices[0]["metadata"]["name"], old);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn every_pod_with_an_address_is_in_one_slice(
        steps in proptest::collection::vec((0..12_usize, 0..4_u8, any::<bool>()), 1..60),
    ) {
        let mut world = world(0);
        for (number, what, settle) in steps {
            let name = format!("pod-{number}");
            let there = !world.get(Kind::Pod, &name).is_null();
            match what {
                0 if !there => pod(&mut world, number, if number % 3 == 0 { 9090 } else { 8080 }),
                1 if there => world.run(&name, false),
                2 if there => world.run(&name, true),
                3 if there => world.remove(Kind::Pod, &name),
                _ => {}
            }
            if settle {
                world.settle();
            }
        }
        world.settle();
        let want: BTreeMap<String, Vec<bool>> = world.pods().iter().map(|pod| {
            let ready = pod["status"]["conditions"][0]["status"] == "True";
            (pod["metadata"]["name"].as_str().unwrap().to_owned(), vec![ready])
        }).collect();
        prop_assert_eq!(ready(&world), want);
        prop_assert!(!world.all(Kind::Slice).is_empty(), "a Service without endpoints has a slice too");
        let key = crate::controllers::queue::Key::new(crate::controllers::queue::Controller::Slices, "shop", "web");
        prop_assert_eq!(world.look_at(&key), 0);
    }
}
