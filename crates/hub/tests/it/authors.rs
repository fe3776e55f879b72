//! A `MultiClusterService` acts with its author's rights: without them nothing follows from it, and what is there stays.

use anyhow::ensure;
use atoll_hub::balancing::Balancing;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

const RBAC: &str = "rbac.authorization.k8s.io";

fn of(kind: &str, api: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn service(name: &str) -> Value {
    let mut service = of("Service", "v1", name);
    service["spec"] = json!({"ports": [{"name": "http", "port": 80, "targetPort": 8080, "protocol": "TCP"}]});
    service
}

fn slice(name: &str, address: &str) -> Value {
    let mut slice = of("EndpointSlice", "discovery.k8s.io/v1", &format!("{name}-1"));
    slice["metadata"]["labels"] = json!({"kubernetes.io/service-name": name,
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io"});
    slice["addressType"] = "IPv4".into();
    slice["endpoints"] = json!([{"addresses": [address], "conditions": {"ready": true}}]);
    slice["ports"] = json!([{"name": "http", "port": 8080, "protocol": "TCP"}]);
    slice
}

fn mcs(name: &str, types: &[&str], provider: &str, consumer: &str) -> Value {
    let mut object = of("MultiClusterService", "networking.karmada.io/v1alpha1", name);
    object["spec"] = json!({"types": types, "providerClusters": [{"name": provider}],
        "consumerClusters": [{"name": consumer}]});
    object
}

fn crossing(name: &str) -> Value {
    mcs(name, &["CrossCluster"], "member1", "member2")
}

/// Two members that both serve these, and a hub that has them as templates.
async fn serving(names: &[&str]) -> anyhow::Result<World> {
    let world = World::balanced_by(Balancing::BuiltIn("192.0.2.0/28".parse()?), 2).await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    for name in names {
        world.hub.apply(service(name)).await?;
        for (number, member) in (1..).zip(&world.members) {
            member.apply(slice(name, &format!("10.{number}.0.1"))).await?;
        }
    }
    Ok(world)
}

/// Grants rights in `shop` to bob: to `MultiClusterServices`, and to these.
async fn may(hub: &Cluster, resources: &[&str]) -> Outcome {
    let mut role = of("Role", &format!("{RBAC}/v1"), "bobs");
    role["rules"] = json!([
        {"apiGroups": ["networking.karmada.io"], "resources": ["multiclusterservices"], "verbs": ["*"]},
        {"apiGroups": [""], "resources": resources, "verbs": ["get", "create", "update"]}]);
    hub.apply(role).await?;
    let mut binding = of("RoleBinding", &format!("{RBAC}/v1"), "bobs");
    binding["subjects"] = json!([{"kind": "User", "name": "bob", "apiGroup": RBAC}]);
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": "bobs"});
    hub.apply(binding).await.map(drop)
}

fn says(found: &Value, kind: &str, status: &str, words: &str) -> bool {
    let conditions = found["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| {
        one["type"] == kind
            && one["status"] == status
            && one["message"].as_str().is_some_and(|message| message.contains(words))
    })
}

async fn is_refused(hub: &Cluster, object: &Value, words: &str) -> Outcome {
    let both = ["ServiceApplied", "EndpointSliceDispatched"];
    hub.becomes(object, &format!("it is refused: {words}"), |found| {
        both.iter().all(|kind| says(found, kind, "False", words))
    })
    .await
    .map(drop)
}

/// Waits until the hub has done something honest that was asked for after the attack.
async fn at_work(world: &World) -> Outcome {
    world.hub.apply(crossing("honest")).await?;
    world.members[1].reaches("honest", &["10.1.0.1"]).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_denied_author_dispatches_nothing_until_the_right_is_granted() -> Outcome {
    let mut world = serving(&["web", "balanced", "honest"]).await?;
    let hub = &world.hub;
    may(hub, &["configmaps"]).await?;
    let bob = hub.used_by("bob");
    let balanced = mcs("balanced", &["LoadBalancer"], "member1", "member2");
    bob.apply(crossing("web")).await?;
    world.members[0].apply(service("balanced")).await?; // a load balancer brings no Service
    bob.apply(balanced.clone()).await?;
    for object in [&crossing("web"), &balanced] {
        is_refused(hub, object, r#"author "bob" could not do this: they may not get services"#).await?;
    }
    at_work(&world).await?;
    let nothing = async |world: &World| -> Outcome {
        for member in &world.members {
            ensure!(member.dispatched("web").await?.0.is_empty(), "endpoints were dispatched");
            ensure!(member.get(&service("web")).await?.is_null(), "the Service was copied");
        }
        let shown = world.hub.get(&balanced).await?;
        ensure!(shown["status"]["loadBalancer"].is_null(), "it has an address: {shown:#}");
        Ok(())
    };
    nothing(&world).await?;
    // Neither does the next hub.
    world.halt().await?;
    world.members[0].apply(slice("honest", "10.1.0.9")).await?;
    world.run();
    world.members[1].reaches("honest", &["10.1.0.9"]).await?;
    nothing(&world).await?;
    // What he may is done, though nothing of his has changed since.
    may(&world.hub, &["services"]).await?;
    world.members[1].reaches("web", &["10.1.0.1"]).await?;
    let fine = |found: &Value| says(found, "EndpointSliceDispatched", "True", "");
    world.hub.becomes(&crossing("web"), "it is dispatched", fine).await?;
    let reached = |found: &Value| found["status"]["loadBalancer"]["ingress"][0]["ip"].is_string();
    world.hub.becomes(&balanced, "it has an address", reached).await?;
    // A right that is taken away leaves what is there, and brings no more.
    may(&world.hub, &["configmaps"]).await?;
    is_refused(&world.hub, &crossing("web"), "bob").await?;
    world.members[0].apply(slice("web", "10.1.0.6")).await?;
    world.members[0].apply(slice("honest", "10.1.0.10")).await?;
    world.members[1].reaches("honest", &["10.1.0.10"]).await?;
    world.members[1].reaches("web", &["10.1.0.1"]).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_without_a_stamp_changes_nothing_and_takes_nothing_away() -> Outcome {
    let mut world = serving(&["web", "new", "honest"]).await?;
    let object = crossing("web");
    world.hub.apply(object.clone()).await?;
    world.members[1].reaches("web", &["10.1.0.1"]).await?;
    let before = world.members[1].get(&of("EndpointSlice", "discovery.k8s.io/v1", "member1-web-1")).await?;
    ensure!(!before.is_null());
    // As after an upgrade of a hub from before there were stamps.
    world.halt().await?;
    world.hub.apply(crossing("new")).await?;
    for name in ["web", "new"] {
        world.hub.unstamp(&crossing(name)).await?;
    }
    world.members[0].apply(slice("web", "10.1.0.6")).await?;
    world.run();
    at_work(&world).await?;
    for name in ["web", "new"] {
        is_refused(&world.hub, &crossing(name), "nobody knows who wrote it. Apply it again").await?;
    }
    let after = world.members[1].get(&of("EndpointSlice", "discovery.k8s.io/v1", "member1-web-1")).await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "it was taken away: {after:#}");
    ensure!(after["endpoints"] == before["endpoints"], "it was changed: {after:#}");
    ensure!(!world.members[1].get(&service("web")).await?.is_null(), "the Service was taken away");
    ensure!(world.members[1].dispatched("new").await?.0.is_empty(), "endpoints were dispatched");
    ensure!(world.members[1].get(&service("new")).await?.is_null(), "the Service was copied");
    // Touched by one who may, it is theirs.
    world.hub.annotate(&object, "touched", "yes").await?;
    world.members[1].reaches("web", &["10.1.0.6"]).await?;
    // One that is deleted takes with it what it brought, whoever wrote it.
    world.hub.unstamp(&object).await?;
    is_refused(&world.hub, &object, "nobody knows").await?;
    world.hub.delete(&object).await?;
    world.members[1].reaches("web", &[]).await?;
    world.hub.becomes(&object, "it is gone", Value::is_null).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_asked_gets_nothing_that_an_author_could_not_make_there() -> Outcome {
    let mut world = World::start(1).await?;
    world.check_authors = true;
    world.join("member2").await?;
    world.hub.apply(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})).await?;
    let mut role = of("Role", &format!("{RBAC}/v1"), "bobs");
    let configmaps =
        json!({"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update"]});
    let policies = json!({"apiGroups": ["policy.karmada.io"], "resources": ["*"], "verbs": ["*"]});
    role["rules"] = json!([policies, configmaps]);
    let mut binding = of("RoleBinding", &format!("{RBAC}/v1"), "bobs");
    binding["subjects"] = json!([{"kind": "User", "name": "bob", "apiGroup": RBAC}]);
    binding["roleRef"] = json!({"apiGroup": RBAC, "kind": "Role", "name": "bobs"});
    world.hub.apply(role.clone()).await?;
    world.hub.apply(binding.clone()).await?;
    let settings = |colour: &str| {
        let mut settings = of("ConfigMap", "v1", "settings");
        settings["data"] = json!({"colour": colour});
        settings
    };
    world.hub.apply(settings("blue")).await?;
    let mut policy = of("PropagationPolicy", "policy.karmada.io/v1alpha1", "settings");
    policy["spec"] = json!({"placement": {"clusterAffinity": {"clusterNames": ["member1", "member2"]}},
        "resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}]});
    world.hub.used_by("bob").apply(policy).await?;
    let [one, two] = &world.members[..] else { anyhow::bail!("two members") };
    let is = |colour: &'static str| move |found: &Value| found["data"]["colour"] == colour;
    one.becomes(&settings(""), "the hub alone is asked", is("blue")).await?;
    let bound = of("ResourceBinding", "work.karmada.io/v1alpha2", "settings-configmap");
    let why = "they may not create configmaps in the namespace shop of member2";
    let says = |found: &Value| found["status"].to_string().contains(why);
    world.hub.becomes(&bound, "it says which right is missing, and where", says).await?;
    ensure!(two.get(&settings("")).await?.is_null(), "it was copied");
    let events = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"namespace": "shop"}});
    let give_up = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
    loop {
        let told = world.hub.list(&events, "").await?;
        if told.iter().any(|event| event.data["message"].as_str().is_some_and(|text| text.contains(why))) {
            break;
        }
        ensure!(tokio::time::Instant::now() < give_up, "no event says it");
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    // Granted there, without a change in the hub.
    role["rules"] = json!([configmaps]);
    two.apply(role.clone()).await?;
    two.apply(binding).await?;
    two.becomes(&settings(""), "he may there too", is("blue")).await?;
    let says_no_more = |found: &Value| !found["status"].to_string().contains(why);
    world.hub.becomes(&bound, "it says no more that a right is missing", says_no_more).await?;
    // Taken away there: the copy stays as it is.
    two.delete(&role).await?;
    let says = |found: &Value| found["status"].to_string().contains(why);
    world.hub.becomes(&bound, "it says so again", says).await?;
    world.hub.apply(settings("red")).await?;
    one.becomes(&settings(""), "elsewhere it changes", is("red")).await?;
    ensure!(two.get(&settings("")).await?["data"]["colour"] == "blue");
    world.halt().await
}
