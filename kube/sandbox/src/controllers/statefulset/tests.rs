//! StatefulSets in a world without I/O.

use crate::controllers::action::Kind;
use crate::controllers::queue::{Controller, Key};
use crate::controllers::world::{HERE, World};
use serde_json::{Value, json};

fn world(replicas: i64, spec: &Value) -> World {
    let mut world = World::new();
    world.create(
        Kind::StatefulSet,
        json!({"metadata": {"name": "db"}, "spec": {
            "replicas": replicas, "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"image": "db:1"}]}},
        }}),
    );
    world.patch(Kind::StatefulSet, "db", &json!({"spec": spec}));
    world
}

fn roll(world: &mut World, version: u8) {
    let image = json!({"spec": {"template": {"spec": {"containers": [{"image": format!("db:{version}")}]}}}});
    world.patch(Kind::StatefulSet, "db", &image);
}

fn names(world: &World) -> Vec<&str> {
    world.pods().into_iter().map(|pod| pod["metadata"]["name"].as_str().unwrap()).collect()
}

fn images(world: &World) -> Vec<&Value> {
    world.pods().into_iter().map(|pod| &pod["spec"]["containers"][0]["image"]).collect()
}

#[test]
fn pods_come_one_after_the_other_and_know_who_they_are() {
    let mut world = world(3, &json!({}));
    for so_far in [vec!["db-0"], vec!["db-0", "db-1"], vec!["db-0", "db-1", "db-2"]] {
        world.settle();
        assert_eq!(names(&world), so_far);
        world.run(so_far.last().unwrap(), true);
    }
    world.settle();
    let pod = world.get(Kind::Pod, "db-1");
    assert_eq!((&pod["spec"]["hostname"], &pod["spec"]["subdomain"]), (&"db-1".into(), &"db".into()));
    let labels = &pod["metadata"]["labels"];
    assert_eq!(labels["apps.kubernetes.io/pod-index"], "1");
    assert_eq!(labels["statefulset.kubernetes.io/pod-name"], "db-1");
    let status = &world.get(Kind::StatefulSet, "db")["status"];
    assert_eq!(labels["controller-revision-hash"], status["updateRevision"]);
    assert_eq!((&status["readyReplicas"], &status["currentReplicas"]), (&3.into(), &3.into()));
    assert_eq!(world.look_at(&Key::new(Controller::StatefulSet, HERE, "db")), 0);
}

#[test]
fn in_parallel_all_come_at_once() {
    let mut world = world(3, &json!({"podManagementPolicy": "Parallel", "ordinals": {"start": 5}}));
    world.settle();
    assert_eq!(names(&world), ["db-5", "db-6", "db-7"]);
    world.patch(Kind::StatefulSet, "db", &json!({"spec": {"replicas": 1}}));
    world.settle();
    assert_eq!(names(&world), ["db-5"]);
}

#[test]
fn pods_go_and_are_replaced_from_the_last_to_the_first() {
    let mut world = world(3, &json!({}));
    world.live();
    roll(&mut world, 2);
    world.settle();
    assert_eq!(names(&world), ["db-0", "db-1"]);
    world.remove(Kind::Pod, "db-2");
    world.settle();
    assert_eq!(images(&world), ["db:1", "db:1", "db:2"], "it waits for the new one");
    world.live();
    assert_eq!(images(&world), ["db:2", "db:2", "db:2"]);
    let status = &world.get(Kind::StatefulSet, "db")["status"];
    assert_eq!(status["currentRevision"], status["updateRevision"]);
    world.patch(Kind::StatefulSet, "db", &json!({"spec": {"replicas": 1}}));
    world.settle();
    assert_eq!(names(&world), ["db-0", "db-1"], "one at a time");
    world.live();
    assert_eq!(names(&world), ["db-0"]);
}

#[test]
fn below_the_partition_a_pod_keeps_its_template_even_when_it_is_made_anew() {
    let mut world = world(3, &json!({"updateStrategy": {"rollingUpdate": {"partition": 2}}}));
    world.live();
    roll(&mut world, 2);
    world.live();
    assert_eq!(images(&world), ["db:1", "db:1", "db:2"]);
    world.remove(Kind::Pod, "db-0");
    world.live();
    assert_eq!(images(&world), ["db:1", "db:1", "db:2"]);
    let status = &world.get(Kind::StatefulSet, "db")["status"];
    assert_eq!((&status["currentReplicas"], &status["updatedReplicas"]), (&2.into(), &1.into()));
}

#[test]
fn one_that_has_ended_makes_room_for_another() {
    let mut world = world(2, &json!({}));
    world.live();
    world.end("db-0", "Failed");
    world.live();
    assert_eq!(names(&world), ["db-0", "db-1"]);
    assert_eq!(world.get(Kind::Pod, "db-0")["status"]["phase"], "Running");
}

#[test]
fn only_as_much_history_as_asked_for_and_a_way_back() {
    let mut world = world(1, &json!({"revisionHistoryLimit": 1}));
    for version in 1..5 {
        roll(&mut world, version);
        world.live();
    }
    assert_eq!(world.all(Kind::Revision).len(), 2);
    roll(&mut world, 3);
    world.live();
    assert_eq!(images(&world), ["db:3"]);
    assert_eq!(world.all(Kind::Revision).len(), 2, "the old one is used again");
    let numbers = world.all(Kind::Revision).into_iter().map(|one| one["revision"].as_i64().unwrap());
    assert_eq!(numbers.max(), Some(5));
}

#[test]
fn what_is_deleted_by_hand_gets_the_new_template_where_that_is_the_way() {
    let mut world = world(2, &json!({"updateStrategy": {"type": "OnDelete"}}));
    world.live();
    roll(&mut world, 2);
    world.live();
    assert_eq!(images(&world), ["db:1", "db:1"]);
    world.remove(Kind::Pod, "db-1");
    world.live();
    assert_eq!(images(&world), ["db:1", "db:2"]);
}
