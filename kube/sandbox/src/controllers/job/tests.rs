//! Jobs in a world without I/O.

use crate::controllers::action::Kind;
use crate::controllers::queue::{Controller, Key};
use crate::controllers::world::{HERE, World};
use serde_json::{Value, json};

fn world(spec: &Value) -> World {
    let mut world = World::new();
    let template =
        json!({"metadata": {"labels": {"app": "sum"}}, "spec": {"restartPolicy": "Never", "containers": []}});
    world.create(Kind::Job, json!({"metadata": {"name": "sum"}, "spec": spec}));
    world.patch(Kind::Job, "sum", &json!({"spec": {"template": template}}));
    world.settle();
    world
}

fn running(world: &World) -> Vec<String> {
    let live = world
        .pods()
        .into_iter()
        .filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed")));
    live.map(|pod| pod["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

fn end_one(world: &mut World, phase: &str) {
    let name = running(world).remove(0);
    world.end(&name, phase);
    world.settle();
}

fn said(world: &World) -> Vec<String> {
    let conditions =
        world.get(Kind::Job, "sum")["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions
        .iter()
        .map(|one| format!("{} {}", one["type"].as_str().unwrap(), one["reason"].as_str().unwrap()))
        .collect()
}

/// Looks at the job after a while.
fn later(world: &mut World, seconds: i64) {
    world.pass(seconds);
    world.look_at(&Key::new(Controller::Job, HERE, "sum"));
    world.settle();
}

#[test]
fn as_many_at_once_as_allowed_until_enough_have_succeeded() {
    let mut world = world(&json!({"completions": 3, "parallelism": 2}));
    assert_eq!(running(&world).len(), 2);
    end_one(&mut world, "Succeeded");
    assert_eq!(running(&world).len(), 2);
    end_one(&mut world, "Succeeded");
    assert_eq!(running(&world).len(), 1);
    end_one(&mut world, "Succeeded");
    assert_eq!(running(&world).len(), 0);
    assert_eq!(said(&world), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
    let status = &world.get(Kind::Job, "sum")["status"];
    assert_eq!((&status["succeeded"], &status["active"]), (&3.into(), &Value::Null));
    assert!(status["completionTime"].is_string());
    assert_eq!(world.look_at(&Key::new(Controller::Job, HERE, "sum")), 0);
}

#[test]
fn a_failure_is_tried_again_after_a_while_and_not_for_ever() {
    let mut world = world(&json!({"completions": 1, "parallelism": 1, "backoffLimit": 2}));
    for (failures, wait) in [(1, 10), (2, 20)] {
        end_one(&mut world, "Failed");
        assert_eq!(running(&world).len(), 0, "after failure {failures}");
        later(&mut world, wait - 1);
        assert_eq!(running(&world).len(), 0, "after failure {failures}");
        later(&mut world, 1);
        assert_eq!(running(&world).len(), 1, "after failure {failures}");
    }
    end_one(&mut world, "Failed");
    assert_eq!(said(&world), ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]);
    later(&mut world, 3600);
    assert_eq!(running(&world).len(), 0);
}

#[test]
fn a_deadline_ends_what_runs() {
    let mut world = world(&json!({"completions": 2, "parallelism": 2, "activeDeadlineSeconds": 30}));
    later(&mut world, 29);
    assert_eq!(running(&world).len(), 2);
    later(&mut world, 1);
    assert_eq!(said(&world), ["FailureTarget DeadlineExceeded"], "the pods are still on their way out");
    world.live();
    assert_eq!(said(&world), ["FailureTarget DeadlineExceeded", "Failed DeadlineExceeded"]);
}

#[test]
fn without_a_number_one_success_is_enough_and_the_others_may_end() {
    let mut world = world(&json!({"parallelism": 2}));
    end_one(&mut world, "Succeeded");
    assert_eq!((running(&world).len(), said(&world).len()), (1, 0));
    end_one(&mut world, "Succeeded");
    assert_eq!(said(&world).last().unwrap(), "Complete CompletionsReached");
}

#[test]
fn what_succeeded_stays_counted_when_its_pod_goes() {
    let mut world = world(&json!({"completions": 2, "parallelism": 1}));
    let first = running(&world).remove(0);
    end_one(&mut world, "Succeeded");
    world.remove(Kind::Pod, &first);
    world.settle();
    assert_eq!(world.get(Kind::Job, "sum")["status"]["succeeded"], 1);
    end_one(&mut world, "Succeeded");
    assert_eq!(
        world.get(Kind::Job, "sum")["status"]["succeeded"],
        1,
        "it can't know better without finalizers"
    );
}

#[test]
fn a_suspended_job_rests_and_goes_on() {
    let mut world = world(&json!({"completions": 1, "parallelism": 1, "suspend": true}));
    assert_eq!(running(&world).len(), 0);
    assert_eq!(said(&world), ["Suspended JobSuspended"]);
    world.patch(Kind::Job, "sum", &json!({"spec": {"suspend": false}}));
    world.settle();
    assert_eq!(running(&world).len(), 1);
    assert_eq!(said(&world), ["Suspended JobResumed"]);
}
