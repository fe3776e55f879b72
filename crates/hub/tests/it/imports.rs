//! `ServiceImports` made in the hub: whom they go to, what they leave out, and what is told on them.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

fn namespace(mode: Option<&str>) -> Value {
    let mut object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    if let Some(mode) = mode {
        object["metadata"]["annotations"] = json!({"atoll.dev/import": mode});
    }
    object
}

fn of(kind: &str, api: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn derived() -> Value {
    of("Service", "v1", "derived-serve")
}

fn template(ports: &[u16]) -> Value {
    let mut object = of("ServiceImport", "multicluster.x-k8s.io/v1alpha1", "serve");
    let ports: Vec<Value> = ports.iter().map(|port| json!({"port": port, "protocol": "TCP"})).collect();
    object["spec"] = json!({"type": "ClusterSetIP", "ports": ports});
    object
}

fn policy(clusters: &[&str]) -> Value {
    let mut object = of("PropagationPolicy", "policy.karmada.io/v1alpha1", "import");
    object["spec"] = json!({
        "resourceSelectors": [{"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "ServiceImport", "name": "serve"}],
        "placement": {"clusterAffinity": {"clusterNames": clusters}}});
    object
}

/// The Service with two ports, its slice, and the export.
async fn exported_by(member: &Cluster) -> Outcome {
    let mut service = of("Service", "v1", "serve");
    service["spec"] = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"},
        {"name": "admin", "port": 81, "targetPort": 8081, "protocol": "TCP"}]});
    let mut slice = of("EndpointSlice", "discovery.k8s.io/v1", "serve-1");
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": "serve"});
    slice["addressType"] = "IPv4".into();
    slice["endpoints"] = json!([{"addresses": ["10.1.0.1"], "conditions": {"ready": true}}]);
    slice["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "admin", "port": 8081, "protocol": "TCP"}]);
    let export = of("ServiceExport", "multicluster.x-k8s.io/v1beta1", "serve");
    for object in [service, slice, export.clone()] {
        member.apply(object).await?;
    }
    let ready = |found: &Value| found["status"].to_string().contains("Exported");
    member.becomes(&export, "it is exported", ready).await.map(drop)
}

/// Waits for an event about a ServiceImport of the hub.
async fn told(hub: &Cluster, reason: &str, words: &str) -> Outcome {
    let kind = of("Event", "v1", "");
    let mut said = Vec::new();
    for _ in 0..1500 {
        let events = hub.list(&kind, "").await?;
        said = events
            .iter()
            .map(|event| format!("{} {}", event.data["reason"], event.data["message"]))
            .collect();
        let is = |event: &kube::api::DynamicObject| {
            event.data["reason"] == reason
                && event.data["involvedObject"]["kind"] == "ServiceImport"
                && event.data["message"].as_str().is_some_and(|message| message.contains(words))
        };
        if events.iter().any(is) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("no event {reason} with {words:?} in {said:#?}")
}

async fn imports_nothing(member: &Cluster) -> Outcome {
    let import = of("ServiceImport", "multicluster.x-k8s.io/v1beta1", "serve");
    member.becomes(&import, "it imports nothing", Value::is_null).await?;
    member.becomes(&derived(), "it has no derived Service", Value::is_null).await.map(drop)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_an_explicit_namespace_only_where_the_template_goes_and_only_its_ports() -> Outcome {
    let mut world = World::start(0).await?;
    world.hub.apply(namespace(Some("explicit"))).await?;
    for name in ["member1", "member2", "member3"] {
        world.join(name).await?;
    }
    exported_by(&world.members[0]).await?;
    for member in &world.members {
        imports_nothing(member).await?;
    }

    // To member2, with one of two ports.
    world.hub.apply(template(&[80])).await?;
    world.hub.apply(policy(&["member2"])).await?;
    let there = world.members[1].becomes(&derived(), "member2 imports", |found| !found.is_null()).await?;
    let ports = there["spec"]["ports"].as_array().cloned().unwrap_or_default();
    ensure!(ports.len() == 1 && ports[0]["port"] == 80, "{there:#}");
    told(&world.hub, "SyncDerivedServiceSucceed", "the derived Service is in member2").await?;
    for other in [0, 2] {
        imports_nothing(&world.members[other]).await?;
    }

    // A hub that starts anew takes nothing away: the same Service is there when it has caught up.
    world.halt().await?;
    world.hub.apply(policy(&["member2", "member3"])).await?;
    world.run();
    world.members[2].becomes(&derived(), "member3 imports too", |found| !found.is_null()).await?;
    let after = world.members[1].get(&derived()).await?;
    ensure!(after["metadata"]["uid"] == there["metadata"]["uid"], "it was made anew: {after:#}");
    imports_nothing(&world.members[0]).await?;

    // Without its policy it stays, without the template it goes.
    world.hub.delete(&policy(&[])).await?;
    world.hub.apply(template(&[81])).await?;
    world.members[1]
        .becomes(&derived(), "it follows the template", |found| found["spec"]["ports"][0]["port"] == 81)
        .await?;
    world.hub.delete(&template(&[])).await?;
    for member in &world.members {
        imports_nothing(member).await?;
    }

    // Automatic again: every cluster with the namespace imports every port.
    world.hub.apply(namespace(Some("auto"))).await?;
    for member in &world.members {
        member
            .becomes(&derived(), "it imports", |found| {
                found["spec"]["ports"].as_array().is_some_and(|all| all.len() == 2)
            })
            .await?;
    }
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn why_there_is_no_derived_service_is_told_on_the_template() -> Outcome {
    let mut world = World::start(2).await?;
    world.hub.apply(namespace(None)).await?;
    world.hub.apply(template(&[80])).await?;
    world.hub.apply(policy(&["member2"])).await?;
    told(&world.hub, "SyncDerivedServiceFailed", "member2: no cluster exports the service").await?;
    exported_by(&world.members[0]).await?;
    told(&world.hub, "SyncDerivedServiceSucceed", "the derived Service is in member2").await?;
    // A port that the service does not have.
    world.hub.apply(template(&[82])).await?;
    told(&world.hub, "SyncDerivedServiceFailed", "none of the ports in the hub's ServiceImport (82/TCP)")
        .await?;
    world.members[1].becomes(&derived(), "there is no Service without a port", Value::is_null).await?;
    world.halt().await
}
