//! Attacks on the addresses of load balancers: a tenant's address is shared only with whom he names, and who names him.

use anyhow::{Context, ensure};
use atoll_hub::balancing::Balancing;
use serde_json::{Value, json};

use crate::world::{Outcome, World};

const ADDRESS: &str = "192.0.2.1";
const NOT_YOURS: &str = "192.0.2.1 belongs to a service of another namespace";

/// A `MultiClusterService` called `web`.
fn mcs(namespace: &str, asks: Option<&str>, shares: Option<&str>) -> Value {
    let mut annotations = json!({});
    for (key, text) in [("atoll.dev/lb-addresses", asks), ("atoll.dev/lb-share-with", shares)] {
        if let Some(text) = text {
            annotations[key] = text.into();
        }
    }
    json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": "web", "namespace": namespace, "annotations": annotations}, "spec": {"types": ["LoadBalancer"]}})
}

fn published(namespace: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("lb.{namespace}.web"), "namespace": "atoll-system"}})
}

/// The places of the balancer that are published for the namespace's service.
async fn places(world: &World, namespace: &str) -> anyhow::Result<Vec<String>> {
    let map = world.hub.get(&published(namespace)).await?;
    let Some(text) = map["data"]["lb.json"].as_str() else { return Ok(Vec::new()) };
    let wanted = atoll_lb::config::parse(text)?;
    Ok(wanted.listeners.iter().map(|listener| listener.address.to_string()).collect())
}

fn says(object: &Value, words: &str) -> bool {
    let all = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.iter().any(|one| {
        one["type"] == "LoadBalancerReady" && one["message"].as_str().is_some_and(|text| text.contains(words))
    })
}

async fn has(world: &World, namespace: &str, address: &str) -> anyhow::Result<Value> {
    let story = format!("{namespace} has {address}");
    let is = |found: &Value| {
        found["status"]["loadBalancer"]["ingress"] == json!([{"ip": address}])
            && says(found, &format!("the address {address}"))
    };
    world.hub.becomes(&mcs(namespace, None, None), &story, is).await
}

async fn is_refused(world: &World, namespace: &str, words: &str) -> Outcome {
    let object = mcs(namespace, None, None);
    let found = world
        .hub
        .becomes(&object, &format!("{namespace} is refused: {words}"), |found| says(found, words))
        .await?;
    ensure!(found["status"]["loadBalancer"].is_null(), "it shows no address: {found:#}");
    ensure!(!found["status"].to_string().contains("shop"), "it is not told whose it is: {found:#}");
    Ok(())
}

/// Three tenants, each with a service on a port of its own.
async fn tenants(balancing: Balancing) -> anyhow::Result<World> {
    let world = World::balanced_by(balancing, 1).await?;
    for (namespace, port) in [("shop", 80), ("thief", 81), ("billing", 82)] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        // The member first: the hub makes its own namespaces there.
        world.members[0].apply(object.clone()).await?;
        world.hub.apply(object).await?;
        let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": namespace},
            "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": port, "targetPort": 8080, "protocol": "TCP"}]}});
        world.members[0].apply(service).await?;
    }
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_takes_a_free_port_of_anothers_address_and_is_refused_without_both_sides_consent() -> Outcome
{
    let mut world = tenants(Balancing::BuiltIn("192.0.2.0/29".parse()?)).await?;
    world.hub.apply(mcs("shop", None, None)).await?;
    has(&world, "shop", ADDRESS).await?;

    // The attack, and the same with the thief's word alone.
    world.hub.apply(mcs("thief", Some(ADDRESS), None)).await?;
    is_refused(&world, "thief", NOT_YOURS).await?;
    world.hub.apply(mcs("thief", Some(ADDRESS), Some("shop,shop/web,thief"))).await?;
    is_refused(&world, "thief", NOT_YOURS).await?;
    ensure!(places(&world, "thief").await?.is_empty(), "nothing is published for the thief");

    // The honest use: each names the other, in whichever order.
    world.hub.apply(mcs("billing", Some(ADDRESS), Some("shop"))).await?;
    is_refused(&world, "billing", NOT_YOURS).await.context("shop has not consented yet")?;
    world.hub.apply(mcs("shop", None, Some("billing/web"))).await?;
    has(&world, "billing", ADDRESS).await?;
    ensure!(places(&world, "billing").await? == ["192.0.2.1:82"]);

    // Consent ends: who came first stays, the guest goes at once and is told why.
    world.hub.apply(mcs("shop", None, None)).await?;
    is_refused(&world, "billing", NOT_YOURS).await?;
    ensure!(places(&world, "billing").await?.is_empty(), "the guest listens there no more");
    has(&world, "shop", ADDRESS).await?;
    ensure!(places(&world, "shop").await? == ["192.0.2.1:80"]);

    // It comes back, and ends while no hub runs: the next one looks again.
    world.hub.apply(mcs("shop", None, Some("billing"))).await?;
    has(&world, "billing", ADDRESS).await?;
    world.halt().await?;
    world.hub.apply(mcs("shop", None, Some("somebody-else"))).await?;
    world.run();
    is_refused(&world, "billing", NOT_YOURS).await?;
    has(&world, "shop", ADDRESS).await?;
    // A guest that asks for no address of its own gets another one.
    world.hub.apply(mcs("billing", None, None)).await?;
    has(&world, "billing", "192.0.2.2").await?;
    world.halt().await
}

/// Two that share an address without consent, as an earlier release allowed it: the one that was there first keeps it, whoever is looked at
/// first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thief_who_was_in_before_the_upgrade_is_put_out() -> Outcome {
    let mut world = tenants(Balancing::BuiltIn("192.0.2.0/29".parse()?)).await?;
    world.hub.apply(mcs("shop", None, Some("billing"))).await?;
    has(&world, "shop", ADDRESS).await?;
    world.hub.apply(mcs("billing", Some(ADDRESS), Some("shop"))).await?;
    has(&world, "billing", ADDRESS).await?;
    world.halt().await?;
    for (namespace, turns) in [("shop", ""), ("billing", "192.0.2.1=1")] {
        // As an earlier release left it: without consent, and the first has no turn.
        world.hub.annotate(&published(namespace), "atoll.dev/lb-share-with", "").await?;
        world.hub.annotate(&published(namespace), "atoll.dev/lb-turns", turns).await?;
        world.hub.apply(mcs(namespace, (namespace == "billing").then_some(ADDRESS), None)).await?;
    }
    world.run();
    is_refused(&world, "billing", NOT_YOURS).await?;
    has(&world, "shop", ADDRESS).await?;
    ensure!(places(&world, "billing").await?.is_empty());
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_who_takes_the_whole_pool_stops_at_the_operators_limit() -> Outcome {
    let mut world = tenants(Balancing::Limited("192.0.2.0/29".parse()?, 1)).await?;
    world.hub.apply(mcs("thief", Some("192.0.2.1,192.0.2.2"), None)).await?;
    is_refused(&world, "thief", "as many load balancer addresses as the hub allows (1)").await?;
    world.hub.apply(mcs("billing", None, None)).await?;
    has(&world, "billing", ADDRESS).await?;
    world.halt().await
}
