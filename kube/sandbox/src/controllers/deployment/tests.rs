//! Rollouts in a world without I/O, in whatever order things happen.

use crate::controllers::action::Kind;
use crate::controllers::queue::{Controller, Key};
use crate::controllers::world::{HERE, World};
use proptest::prelude::*;
use serde_json::{Value, json};

fn key() -> Key {
    Key::new(Controller::Deployment, HERE, "web")
}

fn world(replicas: i64, surge: &Value, unavailable: &Value) -> World {
    let mut world = World::new();
    world.create(Kind::Deployment, json!({"metadata": {"name": "web"}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"image": "web:1"}]}},
        "progressDeadlineSeconds": 600,
    }}));
    world.live();
    world
}

fn roll(world: &mut World, version: u8) {
    let image =
        json!({"spec": {"template": {"spec": {"containers": [{"image": format!("web:{version}")}]}}}});
    world.patch(Kind::Deployment, "web", &image);
}

fn sizes(world: &World) -> i64 {
    world.all(Kind::ReplicaSet).iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).sum()
}

fn ready(world: &World) -> usize {
    world.pods().iter().filter(|pod| pod["status"]["conditions"][0]["status"] == "True").count()
}

fn names(pods: &[&Value]) -> Vec<String> {
    pods.iter().map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Something that happens.
#[derive(Clone, Debug)]
enum Happens {
    Roll(u8),
    Look(usize),
    Ready(usize),
    Gone(usize),
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        1 => (1..5_u8).prop_map(Happens::Roll),
        6 => any::<usize>().prop_map(Happens::Look),
        4 => any::<usize>().prop_map(Happens::Ready),
        2 => any::<usize>().prop_map(Happens::Gone),
    ]
}

fn happen(world: &mut World, event: &Happens) {
    match event {
        Happens::Roll(version) => roll(world, *version),
        Happens::Look(at) => {
            let keys: Vec<Key> = world.dirty.iter().cloned().collect();
            if !keys.is_empty() {
                world.look_at(&keys[at % keys.len()]);
            }
        }
        Happens::Ready(at) => {
            let waiting: Vec<&Value> =
                world.pods().into_iter().filter(|pod| pod["status"]["phase"].is_null()).collect();
            if let Some(pod) = names(&waiting).get(at.checked_rem(waiting.len()).unwrap_or(0)) {
                world.run(pod, true);
            }
        }
        Happens::Gone(at) => {
            let going = |pod: &&Value| pod["metadata"]["deletionTimestamp"].is_string();
            let going: Vec<&Value> = world.all(Kind::Pod).into_iter().filter(going).collect();
            if let Some(pod) = names(&going).get(at.checked_rem(going.len()).unwrap_or(0)) {
                world.remove(Kind::Pod, pod);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_rollout_never_leaves_its_bounds(
        replicas in 1..8_i64, surge in 0..4_i64, unavailable in 0..4_i64,
        events in proptest::collection::vec(happens(), 1..150),
    ) {
        let unavailable = if surge == 0 { unavailable.max(1) } else { unavailable };
        let mut world = world(replicas, &json!(surge), &json!(unavailable));
        for event in &events {
            happen(&mut world, event);
            prop_assert!(sizes(&world) <= replicas + surge, "{} pods are wanted after {event:?}", sizes(&world));
            let least = usize::try_from(replicas - unavailable).unwrap_or(0);
            prop_assert!(ready(&world) >= least, "{} pods are ready after {event:?}", ready(&world));
        }
        world.live();
        prop_assert_eq!(i64::try_from(world.pods().len()).unwrap(), replicas);
        let template = world.get(Kind::Deployment, "web")["spec"]["template"]["spec"].clone();
        prop_assert!(world.pods().iter().all(|pod| pod["spec"]["containers"] == template["containers"]));
        let status = &world.get(Kind::Deployment, "web")["status"];
        prop_assert_eq!(&status["updatedReplicas"], &json!(replicas));
        let reasons: Vec<&Value> = status["conditions"].as_array().unwrap().iter().map(|one| &one["reason"]).collect();
        prop_assert!(reasons.contains(&&json!("NewReplicaSetAvailable")), "{reasons:?}");
        // Planned twice, nothing is left to do.
        prop_assert_eq!(world.look_at(&key()), 0);
    }
}

#[test]
fn shares_are_kept_when_the_size_changes_in_the_middle() {
    let mut world = world(10, &json!(3), &json!(2));
    roll(&mut world, 2);
    world.settle();
    // The new ones do not get ready: 8 old and 5 new.
    let set_sizes = |world: &World| -> Vec<i64> {
        let mut sizes: Vec<i64> =
            world.all(Kind::ReplicaSet).iter().map(|set| set["spec"]["replicas"].as_i64().unwrap()).collect();
        sizes.sort_unstable();
        sizes
    };
    assert_eq!(set_sizes(&world), [5, 8]);
    world.patch(Kind::Deployment, "web", &json!({"spec": {"replicas": 20}}));
    world.look_at(&key());
    assert_eq!(set_sizes(&world), [9, 14]);
    for set in world.all(Kind::ReplicaSet) {
        assert_eq!(set["metadata"]["annotations"]["deployment.kubernetes.io/desired-replicas"], "20");
    }
    world.live();
    assert_eq!(world.pods().len(), 20);
}

#[test]
fn what_was_left_behind_is_taken_over() {
    let mut world = world(2, &json!(1), &json!(0));
    let before = names(&world.pods());
    let set = world.all(Kind::ReplicaSet)[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let deployment = world.get(Kind::Deployment, "web").clone();
    world.remove(Kind::Deployment, "web");
    world.patch(Kind::ReplicaSet, &set, &json!({"metadata": {"ownerReferences": null}}));
    world.live();
    world.create(Kind::Deployment, json!({"metadata": {"name": "web"}, "spec": deployment["spec"]}));
    world.live();
    assert_eq!(names(&world.pods()), before);
    let owner = &world.get(Kind::ReplicaSet, &set)["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(*owner, world.get(Kind::Deployment, "web")["metadata"]["uid"]);
}

#[test]
fn a_deployment_of_nothing_has_no_pods_and_is_complete() {
    let mut world = world(0, &json!("25%"), &json!("25%"));
    assert_eq!(world.pods().len(), 0);
    roll(&mut world, 2);
    world.live();
    world.patch(Kind::Deployment, "web", &json!({"spec": {"replicas": 2}}));
    world.live();
    assert_eq!(world.pods().len(), 2);
}
