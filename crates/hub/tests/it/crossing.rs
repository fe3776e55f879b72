//! What a MultiClusterService does, from its manifest to the members and back to its conditions.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

fn mcs(name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": "shop"}, "spec": {"types": ["CrossCluster"]}});
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    object
}

fn between(providers: &[&str], consumers: &[&str]) -> Value {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({"providerClusters": named(providers), "consumerClusters": named(consumers)})
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"app": name}, "ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]}})
}

fn slice(service: &str, name: &str, address: &str) -> Value {
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": "shop", "labels": {"kubernetes.io/service-name": service,
            "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"}},
        "endpoints": [{"addresses": [address], "conditions": {"ready": true}, "nodeName": "n1"}],
        "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}]})
}

/// The status and message of a condition.
fn condition(object: &Value, kind: &str) -> (String, String) {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let one = all.into_iter().find(|one| one["type"] == kind).unwrap_or_default();
    let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("message"))
}

async fn is_fine(hub: &Cluster, object: &Value) -> anyhow::Result<Value> {
    hub.becomes(object, "both conditions are True", |found| {
        ["ServiceApplied", "EndpointSliceDispatched"].iter().all(|kind| condition(found, kind).0 == "True")
    })
    .await
}

async fn told(hub: &Cluster, reason: &str) -> Outcome {
    let kind = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop"}});
    for _ in 0..500 {
        let events = hub.list(&kind, "").await?;
        if events.iter().any(|event| event.data["reason"] == reason) {
            return Ok(());
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    anyhow::bail!("no event {reason}")
}

async fn two() -> anyhow::Result<World> {
    let world = World::start(2).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    world.hub.apply(service("serve")).await?;
    for (number, member) in (1..).zip(&world.members) {
        member.apply(slice("serve", &format!("serve-{number}"), &format!("10.{number}.0.1"))).await?;
    }
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn consumers_get_the_service_and_the_providers_slices_and_conditions_tell_the_truth() -> Outcome {
    let mut world = two().await?;
    let object = mcs("serve", between(&["member1"], &["member2"]));
    world.hub.apply(object.clone()).await?;
    let [m1, m2] = &world.members[..] else { anyhow::bail!("two members") };
    m2.reaches("serve", &["10.1.0.1"]).await?;
    let shown = is_fine(&world.hub, &object).await?;
    ensure!(condition(&shown, "ServiceApplied").1 == "Service is propagated to target clusters.");
    ensure!(condition(&shown, "EndpointSliceDispatched").1 == "EndpointSlice are dispatched successfully");
    ensure!(shown["status"]["providers"] == 1 && shown["status"]["consumers"] == 1, "{shown:#}");
    ensure!(shown["status"]["endpoints"] == 1, "{shown:#}");
    let labels = &shown["metadata"]["labels"];
    ensure!(labels["multiclusterservice.karmada.io/permanent-id"].as_str().is_some_and(|id| id.len() == 36));
    ensure!(shown["metadata"]["finalizers"] == json!(["karmada.io/multiclusterservice-controller"]));
    for reason in ["SyncServiceSucceed", "DispatchEndpointSliceSucceed"] {
        told(&world.hub, reason).await?;
    }
    for member in [m1, m2] {
        let there = member.get(&service("serve")).await?;
        ensure!(there["spec"]["ports"][0]["port"] == 80, "{there:#}");
    }

    // Two providers, of which one consumes; then the other way round; then somebody who does not exist.
    world.hub.apply(mcs("serve", between(&["member1", "member2"], &["member2"]))).await?;
    m2.reaches("serve", &["10.1.0.1"]).await?;
    world.hub.apply(mcs("serve", between(&["member2"], &["member1"]))).await?;
    m1.reaches("serve", &["10.2.0.1"]).await?;
    m2.reaches("serve", &[]).await?;
    is_fine(&world.hub, &object).await?;
    world.hub.apply(mcs("serve", between(&["member2", "nobody"], &["member1"]))).await?;
    told(&world.hub, "ClusterNotFound").await?;
    let lacking = world
        .hub
        .becomes(&object, "it says who is missing", |found| {
            condition(found, "ServiceApplied").1.contains("nobody")
        })
        .await?;
    ensure!(condition(&lacking, "ServiceApplied").0 == "False");

    // All, one way and the other.
    for spec in [between(&[], &["member2"]), between(&["member1"], &[]), between(&[], &[])] {
        world.hub.apply(mcs("serve", spec)).await?;
        m2.reaches("serve", &["10.1.0.1"]).await?;
    }
    m1.reaches("serve", &["10.2.0.1"]).await?;
    is_fine(&world.hub, &object).await?;

    world.hub.delete(&object).await?;
    for member in [m1, m2] {
        member.reaches("serve", &[]).await?;
        ensure!(!member.get(&service("serve")).await?.is_null(), "the Service stays");
    }
    world.hub.becomes(&object, "the MultiClusterService is gone", Value::is_null).await?;
    world.halt().await
}
