//! What policies brought, when something goes wrong in the hub.

use anyhow::ensure;
use serde_json::{Value, json};

use crate::world::{Outcome, World};

fn settings() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"},
        "data": {"colour": "blue"}})
}

fn binding() -> Value {
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "settings-configmap", "namespace": "shop"}})
}

fn shop() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
}

/// A hub whose policy has brought the settings to two members.
async fn brought() -> anyhow::Result<World> {
    let world = World::start(2).await?;
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "settings", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}],
            "placement": {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}}});
    for object in [shop(), settings(), policy] {
        world.hub.apply(object).await?;
    }
    for member in &world.members {
        member.becomes(&settings(), "the policy brings it", |found| !found.is_null()).await?;
    }
    Ok(world)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_namespace_goes_when_members_have_let_go_of_what_came_from_it() -> Outcome {
    let mut world = brought().await?;
    world.members[1].cut();
    world.hub.delete(&shop()).await?;
    world.members[0].becomes(&settings(), "it is taken away", Value::is_null).await?;
    // The next hub knows what the member that is away still has.
    world.halt().await?;
    world.run();
    let held = world
        .hub
        .becomes(&binding(), "it says who is waited for", |found| {
            found["metadata"]["annotations"]["atoll.dev/holders"]
                .as_str()
                .is_some_and(|holders| holders.contains("member2"))
        })
        .await?;
    ensure!(held["metadata"]["deletionTimestamp"].is_string(), "{held:#}");
    world.members[1].serve().await?;
    world.members[1].becomes(&settings(), "it is taken away there too", Value::is_null).await?;
    world.hub.becomes(&shop(), "the namespace goes", Value::is_null).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binding_that_a_user_deletes_comes_again_and_members_lose_nothing() -> Outcome {
    let mut world = brought().await?;
    let before = world.hub.get(&binding()).await?;
    let copy = world.members[0].get(&settings()).await?;
    world.hub.delete(&binding()).await?;
    world
        .hub
        .becomes(&binding(), "it is there anew", |found| {
            found["metadata"]["uid"].is_string()
                && found["metadata"]["uid"] != before["metadata"]["uid"]
                && found["status"]["conditions"][1]["status"] == "True"
        })
        .await?;
    let after = world.members[0].get(&settings()).await?;
    ensure!(after["metadata"]["uid"] == copy["metadata"]["uid"], "{after:#}");
    // The template goes, and with it everything.
    world.hub.delete(&settings()).await?;
    for member in &world.members {
        member.becomes(&settings(), "it is taken away", Value::is_null).await?;
    }
    world.hub.becomes(&binding(), "its binding goes", Value::is_null).await?;
    world.halt().await
}
