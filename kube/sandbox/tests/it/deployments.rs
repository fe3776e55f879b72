//! Deployments and their ReplicaSets, with pods that run.

use crate::cluster::{Cluster, SICK};
use serde_json::{Value, json};
use std::time::Duration;

const DEPLOYMENT: (&str, &str, &str) = ("apps/v1", "Deployment", "web");
const SETS: (&str, &str) = ("apps/v1", "ReplicaSet");

fn web(replicas: u32, strategy: &Value) -> Value {
    json!({"metadata": {"name": "web", "annotations": {"team": "front"}}, "spec": {
        "replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "strategy": strategy,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}},
    }})
}

fn image(version: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": version}]}}}})
}

/// What `kubectl rollout status` waits for.
fn rolled_out(found: &Value) -> bool {
    let (spec, status) = (&found["spec"], &found["status"]);
    status["observedGeneration"].as_i64() >= found["metadata"]["generation"].as_i64()
        && ["updatedReplicas", "replicas", "availableReplicas"]
            .iter()
            .all(|field| status[field].as_i64().unwrap_or(0) == spec["replicas"].as_i64().unwrap())
}

fn condition<'a>(found: &'a Value, kind: &str) -> &'a Value {
    let all = found["status"]["conditions"].as_array();
    all.and_then(|all| all.iter().find(|one| one["type"] == kind)).unwrap_or(&Value::Null)
}

fn said(found: &Value, kind: &str) -> String {
    let one = condition(found, kind);
    format!("{} {}", one["status"].as_str().unwrap_or("-"), one["reason"].as_str().unwrap_or("-"))
}

#[tokio::test(start_paused = true)]
async fn a_rollout_stays_in_its_bounds_and_keeps_its_history() {
    let cluster = Cluster::start().await;
    let strategy = json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}});
    cluster.create("apps/v1", "Deployment", web(4, &strategy)).await;
    let first = cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && said(found, "Progressing").ends_with("NewReplicaSetAvailable")
        })
        .await;
    assert_eq!(said(&first, "Available"), "True MinimumReplicasAvailable");
    assert_eq!(first["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    let sets = cluster.list(SETS.0, SETS.1).await;
    let [set] = sets.as_slice() else { panic!("{} ReplicaSets", sets.len()) };
    let hash = &set["metadata"]["labels"]["pod-template-hash"];
    assert_eq!(set["metadata"]["name"], format!("web-{}", hash.as_str().unwrap()));
    assert_eq!(set["spec"]["selector"]["matchLabels"]["pod-template-hash"], *hash);
    assert_eq!(set["metadata"]["annotations"]["team"], "front");
    for pod in cluster.pods().await {
        assert_eq!(pod["metadata"]["labels"]["pod-template-hash"], *hash);
        assert_eq!(pod["metadata"]["generateName"], format!("web-{}-", hash.as_str().unwrap()));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], set["metadata"]["uid"]);
    }

    cluster.count();
    cluster.patch("apps/v1", "Deployment", "web", image("web:2")).await;
    let second = cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        })
        .await;
    assert_eq!(said(&second, "Available"), "True MinimumReplicasAvailable");
    {
        let counts = cluster.counts.lock().unwrap();
        assert!(counts.most <= 5 && counts.fewest >= 3, "{counts:?}");
    }
    cluster
        .until_all(("v1", "Pod"), |all| {
            all.len() == 4 && all.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "web:2")
        })
        .await;

    // Back again: the old ReplicaSet is used, under a new number.
    cluster.patch("apps/v1", "Deployment", "web", image("web:1")).await;
    cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        })
        .await;
    let sets = cluster.list(SETS.0, SETS.1).await;
    assert_eq!(sets.len(), 2);
    let old = sets.iter().find(|one| one["metadata"]["uid"] == set["metadata"]["uid"]).unwrap();
    assert_eq!(old["spec"]["replicas"], 4);
    assert_eq!(old["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"], "1");
}

#[tokio::test(start_paused = true)]
async fn what_never_gets_ready_stops_a_rollout_and_the_deadline_tells() {
    let cluster = Cluster::start().await;
    let mut deployment = web(3, &json!({"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}));
    deployment["spec"]["progressDeadlineSeconds"] = 60.into();
    cluster.create("apps/v1", "Deployment", deployment).await;
    cluster.until(DEPLOYMENT, rolled_out).await;
    cluster.count();
    cluster
        .patch(
            "apps/v1",
            "Deployment",
            "web",
            json!({"spec": {"template": {"metadata": {"labels": {SICK: "yes"}}}}}),
        )
        .await;
    cluster.until(DEPLOYMENT, |found| found["status"]["updatedReplicas"] == 1).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    let stuck = cluster
        .until(DEPLOYMENT, |found| said(found, "Progressing") == "False ProgressDeadlineExceeded")
        .await;
    assert_eq!(said(&stuck, "Available"), "True MinimumReplicasAvailable");
    {
        let counts = cluster.counts.lock().unwrap();
        assert_eq!((counts.most, counts.fewest), (4, 3));
    }
    // Healed by the next template.
    cluster
        .patch(
            "apps/v1",
            "Deployment",
            "web",
            json!({"spec": {"template": {"metadata": {"labels": {SICK: null}}}}}),
        )
        .await;
    cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && said(found, "Progressing") == "True NewReplicaSetAvailable"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn recreate_has_never_two_templates_at_once() {
    let cluster = Cluster::start().await;
    cluster.create("apps/v1", "Deployment", web(3, &json!({"type": "Recreate"}))).await;
    cluster.until(DEPLOYMENT, rolled_out).await;
    cluster.count();
    cluster.patch("apps/v1", "Deployment", "web", image("web:2")).await;
    cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"
        })
        .await;
    let counts = cluster.counts.lock().unwrap();
    assert_eq!((counts.most, counts.fewest), (3, 0));
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_scales_but_does_not_roll() {
    let cluster = Cluster::start().await;
    cluster.create("apps/v1", "Deployment", web(2, &json!({}))).await;
    cluster.until(DEPLOYMENT, rolled_out).await;
    cluster.patch("apps/v1", "Deployment", "web", json!({"spec": {"paused": true, "replicas": 3}})).await;
    cluster.patch("apps/v1", "Deployment", "web", image("web:2")).await;
    let paused = cluster
        .until(DEPLOYMENT, |found| {
            found["status"]["availableReplicas"] == 3
                && said(found, "Progressing") == "Unknown DeploymentPaused"
        })
        .await;
    assert_eq!(paused["metadata"]["annotations"]["deployment.kubernetes.io/revision"], "1");
    assert_eq!(cluster.list(SETS.0, SETS.1).await.len(), 1);
    cluster.patch("apps/v1", "Deployment", "web", json!({"spec": {"paused": null}})).await;
    cluster
        .until(DEPLOYMENT, |found| {
            rolled_out(found) && said(found, "Progressing") == "True NewReplicaSetAvailable"
        })
        .await;
    cluster
        .until_all(("v1", "Pod"), |all| {
            all.len() == 3 && all.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "web:2")
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn no_more_history_than_asked_for() {
    let cluster = Cluster::start().await;
    let mut deployment = web(1, &json!({}));
    deployment["spec"]["revisionHistoryLimit"] = 1.into();
    cluster.create("apps/v1", "Deployment", deployment).await;
    for version in 2..6 {
        cluster.until(DEPLOYMENT, rolled_out).await;
        cluster.patch("apps/v1", "Deployment", "web", image(&format!("web:{version}"))).await;
    }
    cluster.until(DEPLOYMENT, rolled_out).await;
    cluster.until_all(SETS, |all| all.len() == 2).await;
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_goes_is_replaced_and_all_go_with_their_deployment() {
    let cluster = Cluster::start().await;
    cluster.create("apps/v1", "Deployment", web(3, &json!({}))).await;
    cluster.until(DEPLOYMENT, rolled_out).await;
    let victim = cluster.pods().await[0]["metadata"]["name"].as_str().unwrap().to_owned();
    cluster.delete("v1", "Pod", &victim).await;
    cluster
        .until_all(("v1", "Pod"), |all| {
            all.len() == 3
                && all
                    .iter()
                    .all(|pod| pod["metadata"]["name"] != *victim && pod["status"]["phase"] == "Running")
        })
        .await;
    cluster.patch("apps/v1", "Deployment", "web", json!({"spec": {"replicas": 1}})).await;
    cluster.until_all(("v1", "Pod"), |all| all.len() == 1).await;
    cluster.delete("apps/v1", "Deployment", "web").await;
    cluster.until_all(("v1", "Pod"), <[Value]>::is_empty).await;
    cluster.until_all(SETS, <[Value]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_new_pod_counts_only_after_a_while() {
    let cluster = Cluster::start().await;
    let mut deployment = web(2, &json!({}));
    deployment["spec"]["minReadySeconds"] = 30.into();
    cluster.create("apps/v1", "Deployment", deployment).await;
    let ready = cluster.until(DEPLOYMENT, |found| found["status"]["readyReplicas"] == 2).await;
    assert_eq!(said(&ready, "Available"), "False MinimumReplicasUnavailable");
    // Times in objects are whole seconds, so it may be nearly one less.
    tokio::time::sleep(Duration::from_secs(28)).await;
    let waiting = cluster.get(DEPLOYMENT.0, DEPLOYMENT.1, DEPLOYMENT.2).await;
    assert_eq!(waiting["status"]["availableReplicas"], Value::Null);
    cluster.until(DEPLOYMENT, rolled_out).await;
}
