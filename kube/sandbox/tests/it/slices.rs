//! EndpointSlices of Services.

use crate::cluster::{Cluster, NODE, SICK, ZONE};
use serde_json::{Value, json};

const SLICES: (&str, &str) = ("discovery.k8s.io/v1", "EndpointSlice");

fn pod(name: &str, labels: &Value) -> Value {
    let container =
        json!({"name": "main", "image": "web", "ports": [{"name": "http", "containerPort": 8080}]});
    json!({"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}})
}

fn endpoints(slices: &[Value]) -> Vec<&Value> {
    slices.iter().flat_map(|slice| slice["endpoints"].as_array().into_iter().flatten()).collect()
}

#[tokio::test(start_paused = true)]
async fn a_service_has_one_slice_that_follows_its_pods() {
    let cluster = Cluster::start().await;
    let service = cluster.create("v1", "Service", json!({"metadata": {"name": "web", "labels": {"team": "front"}}, "spec": {
        "selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http", "appProtocol": "http"}]}})).await;
    let placeholder = cluster.until_all(SLICES, |all| all.len() == 1).await.remove(0);
    assert!(endpoints(std::slice::from_ref(&placeholder)).is_empty());
    let name = placeholder["metadata"]["name"].as_str().unwrap();
    assert!(name.starts_with("web-") && name.len() == "web-".len() + 5, "{name}");
    assert_eq!(
        placeholder["metadata"]["labels"],
        json!({"team": "front", "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"})
    );
    let owner = &placeholder["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["uid"]), (&"Service".into(), &service["metadata"]["uid"]));

    cluster.create("v1", "Pod", pod("one", &json!({"app": "web"}))).await;
    cluster.create("v1", "Pod", pod("two", &json!({"app": "web", SICK: "yes"}))).await;
    cluster.create("v1", "Pod", pod("other", &json!({"app": "shop"}))).await;
    let slices = cluster.until_all(SLICES, |all| endpoints(all).len() == 2).await;
    let [slice] = slices.as_slice() else { panic!("{} slices", slices.len()) };
    assert_eq!(slice["metadata"]["uid"], placeholder["metadata"]["uid"], "the placeholder became it");
    assert_eq!(
        slice["ports"],
        json!([{"name": "http", "port": 8080, "protocol": "TCP", "appProtocol": "http"}])
    );
    let of = |name: &str| *endpoints(&slices).iter().find(|one| one["targetRef"]["name"] == name).unwrap();
    let one = of("one");
    assert_eq!(one["conditions"], json!({"ready": true, "serving": true, "terminating": false}));
    assert_eq!((&one["nodeName"], &one["zone"]), (&NODE.into(), &ZONE.into()));
    assert_eq!(of("two")["conditions"], json!({"ready": false, "serving": false, "terminating": false}));

    cluster.delete("v1", "Pod", "one").await;
    cluster.delete("v1", "Pod", "two").await;
    let empty = cluster.until_all(SLICES, |all| endpoints(all).is_empty()).await;
    assert_eq!(empty.len(), 1);
    cluster.delete("v1", "Service", "web").await;
    cluster.until_all(SLICES, <[Value]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_headless_service_gives_names_to_pods() {
    let cluster = Cluster::start().await;
    cluster
        .create(
            "v1",
            "Service",
            json!({"metadata": {"name": "db"}, "spec": {"clusterIP": "None",
        "selector": {"app": "db"}, "publishNotReadyAddresses": true, "ports": [{"port": 5432}]}}),
        )
        .await;
    let mut named = pod("db-0", &json!({"app": "db", SICK: "yes"}));
    named["spec"]["hostname"] = "db-0".into();
    named["spec"]["subdomain"] = "db".into();
    cluster.create("v1", "Pod", named).await;
    let slices = cluster.until_all(SLICES, |all| endpoints(all).len() == 1).await;
    assert_eq!(slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"], "");
    assert_eq!(slices[0]["ports"], json!([{"name": "", "port": 5432, "protocol": "TCP"}]));
    let endpoint = &slices[0]["endpoints"][0];
    assert_eq!(endpoint["hostname"], "db-0");
    assert_eq!(endpoint["conditions"], json!({"ready": true, "serving": false, "terminating": false}));
}

#[tokio::test(start_paused = true)]
async fn what_has_no_selector_is_left_to_others() {
    let cluster = Cluster::start().await;
    cluster
        .create("v1", "Service", json!({"metadata": {"name": "derived"}, "spec": {"ports": [{"port": 80}]}}))
        .await;
    let theirs = json!({"metadata": {"name": "theirs", "labels": {"kubernetes.io/service-name": "derived",
        "endpointslice.kubernetes.io/managed-by": "somebody"}}, "addressType": "IPv4", "endpoints": [], "ports": []});
    cluster.create(SLICES.0, SLICES.1, theirs).await;
    // Something else shows that the controller was there.
    cluster.create("v1", "Service", json!({"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}})).await;
    let slices = cluster.until_all(SLICES, |all| all.len() == 2).await;
    assert!(slices.iter().any(|slice| slice["metadata"]["name"] == "theirs"));
    assert!(slices.iter().any(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web"));
}
