//! Workloads that an autoscaler sees to.

use atoll_api::names::label::RETAIN_REPLICAS;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::{Change, Outcome, Placer};
use serde_json::{Value, json};

use crate::placement::{placed, policy, template, with_clusters};

fn web() -> (ObjectKey, Change) {
    template(
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 3}}),
    )
}

fn autoscaler(target: &Value) -> (ObjectKey, Change) {
    template(json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "scaler", "namespace": "shop"}, "spec": {"scaleTargetRef": target}}))
}

fn selecting(api_version: &str, kind: &str, clusters: &[&str]) -> Value {
    json!({"resourceSelectors": [{"apiVersion": api_version, "kind": kind}],
        "placement": {"clusterAffinity": {"clusterNames": clusters}}})
}

/// The clusters whose copy keeps its own replicas, after everything that changed was planned.
fn retaining(placer: &mut Placer, key: &ObjectKey) -> Vec<String> {
    while placer.plan_next().is_some() {}
    let placed = placed(placer, key);
    let retains = |object: &Value| object["metadata"]["labels"][RETAIN_REPLICAS] == "true";
    let copies = placed.copies.iter().filter(|(_, copy)| retains(copy.object.as_ref().unwrap()));
    copies.map(|(id, _)| id.to_string()).collect()
}

#[test]
fn an_autoscaler_sees_to_replicas_where_it_goes_and_for_as_long_as_it_targets_them() {
    let mut placer = with_clusters(&["one", "two"]);
    let (key, web) = web();
    placer.apply(policy("web", selecting("apps/v1", "Deployment", &["one", "two"])));
    placer.apply(web);
    assert!(retaining(&mut placer, &key).is_empty());
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let (scaler, there) = autoscaler(&target);
    placer.apply(there.clone());
    assert!(retaining(&mut placer, &key).is_empty(), "no policy places it");
    let hpa =
        |clusters: &[&str]| policy("hpa", selecting("autoscaling/v2", "HorizontalPodAutoscaler", clusters));
    placer.apply(hpa(&["one"]));
    assert_eq!(retaining(&mut placer, &key), ["one"]);
    placer.apply(hpa(&["one", "two"]));
    assert_eq!(retaining(&mut placer, &key), ["one", "two"]);
    for other in [
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "api"}),
        json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "web"}),
        json!({"apiVersion": "sea.example/v1", "kind": "Deployment", "name": "web"}),
        json!({}),
    ] {
        placer.apply(autoscaler(&other).1);
        assert!(retaining(&mut placer, &key).is_empty(), "{other}");
        placer.apply(there.clone());
        assert_eq!(retaining(&mut placer, &key), ["one", "two"]);
    }
    placer.apply(Change::Template(scaler, None));
    assert!(retaining(&mut placer, &key).is_empty());
}

#[test]
fn a_workload_waits_until_the_autoscalers_of_a_former_life_are_read() {
    let target = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    let ((key, web), (scaler, there)) = (web(), autoscaler(&target));
    let policies = || {
        [
            policy("web", selecting("apps/v1", "Deployment", &["one"])),
            policy("hpa", selecting("autoscaling/v2", "HorizontalPodAutoscaler", &["one"])),
        ]
    };
    let mut former = with_clusters(&["one"]);
    policies().into_iter().chain([web.clone(), there.clone()]).for_each(|change| former.apply(change));
    while former.plan_next().is_some() {}
    let recalled = |key: &ObjectKey, former: &mut Placer| {
        Change::Recalled(key.clone(), Box::new(placed(former, key).decision.unwrap()))
    };
    let mut placer = with_clusters(&["one"]);
    let memory = [recalled(&key, &mut former), recalled(&scaler, &mut former)];
    policies().into_iter().chain(memory).chain([web]).for_each(|change| placer.apply(change));

    let read = |kind: &Kind| kind.kind == "Deployment";
    assert_eq!(placer.plan_next_of(read), None, "it is not known yet what the autoscaler targets");
    placer.apply(there);
    let mut outcomes = Vec::new();
    while let Some((of, outcome)) = placer.plan_next_of(|_| true) {
        if of == key {
            outcomes.push(outcome);
        }
    }
    assert!(!outcomes.is_empty());
    for outcome in outcomes {
        let Outcome::Placed(placed) = outcome else { panic!("{outcome:?}") };
        let copy = placed.copies.values().next().unwrap().object.as_ref().unwrap();
        assert_eq!(copy["metadata"]["labels"][RETAIN_REPLICAS], "true");
    }
}
