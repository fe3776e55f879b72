//! StatefulSets, with pods that run.

use crate::cluster::Cluster;
use serde_json::{Value, json};

const SET: (&str, &str, &str) = ("apps/v1", "StatefulSet", "db");

fn rolled_out(set: &Value) -> bool {
    let status = &set["status"];
    status["observedGeneration"] == set["metadata"]["generation"]
        && status["currentRevision"] == status["updateRevision"]
        && status["readyReplicas"] == set["spec"]["replicas"]
}

#[tokio::test(start_paused = true)]
async fn pods_have_names_that_stay_and_the_service_knows_them() {
    let cluster = Cluster::start().await;
    cluster
        .create(
            "v1",
            "Service",
            json!({"metadata": {"name": "db"}, "spec": {"clusterIP": "None",
            "selector": {"app": "db"}, "ports": [{"port": 5432}]}}),
        )
        .await;
    cluster
        .create(
            "apps/v1",
            "StatefulSet",
            json!({"metadata": {"name": "db"}, "spec": {"replicas": 2, "serviceName": "db",
            "selector": {"matchLabels": {"app": "db"}}, "template": {"metadata": {"labels": {"app": "db"}},
            "spec": {"containers": [{"name": "main", "image": "db:1"}]}}}}),
        )
        .await;
    cluster.until(SET, rolled_out).await;
    let slices = ("discovery.k8s.io/v1", "EndpointSlice");
    let hostnames = |slices: &[Value]| -> Vec<String> {
        let endpoints = slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten());
        let mut names: Vec<String> =
            endpoints.filter_map(|one| one["hostname"].as_str()).map(str::to_owned).collect();
        names.sort();
        names
    };
    cluster.until_all(slices, |all| hostnames(all) == ["db-0", "db-1"]).await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "db:2"}]}}}});
    cluster.patch("apps/v1", "StatefulSet", "db", image).await;
    cluster
        .until_all(("v1", "Pod"), |all| {
            all.len() == 2 && all.iter().all(|pod| pod["spec"]["containers"][0]["image"] == "db:2")
        })
        .await;
    cluster.until(SET, rolled_out).await;
    assert_eq!(cluster.list("apps/v1", "ControllerRevision").await.len(), 2);
    cluster.delete("apps/v1", "StatefulSet", "db").await;
    cluster.until_all(("v1", "Pod"), <[Value]>::is_empty).await;
    cluster.until_all(("apps/v1", "ControllerRevision"), <[Value]>::is_empty).await;
}
