//! What `kubectl describe` and `kubectl get` say in a member, with the rights that a join gives the hub.

use std::time::Duration;

use anyhow::ensure;
use atoll_hub::join::Propagation;
use serde_json::{Value, json};

use crate::world::{Cluster, Outcome, World};

fn of(kind: &str, api: &str, name: &str) -> Value {
    json!({"apiVersion": api, "kind": kind, "metadata": {"name": name, "namespace": "shop"}})
}

fn export() -> Value {
    of("ServiceExport", "multicluster.x-k8s.io/v1beta1", "web")
}

fn derived() -> Value {
    of("Service", "v1", "derived-web")
}

async fn exported_by(member: &Cluster) -> Outcome {
    let mut service = of("Service", "v1", "web");
    service["spec"] = json!({"ports": [{"name": "http", "port": 80, "protocol": "TCP"}]});
    member.apply(service).await?;
    member.apply(export()).await?;
    Ok(())
}

fn message(found: &Value) -> &str {
    let conditions = found["status"]["conditions"].as_array();
    let ready = conditions.into_iter().flatten().find(|one| one["type"] == "Ready");
    ready.and_then(|one| one["message"].as_str()).unwrap_or_default()
}

/// The messages of the events of a reason about objects of a kind.
async fn told(member: &Cluster, kind: &str, reason: &str) -> anyhow::Result<Vec<String>> {
    let events = member.list(&of("Event", "v1", ""), "").await?;
    let meant = events
        .iter()
        .filter(|one| one.data["reason"] == reason && one.data["involvedObject"]["kind"] == kind);
    Ok(meant.map(|one| one.data["message"].as_str().unwrap_or_default().to_owned()).collect())
}

/// Waits until that many were told, and says what the last was.
async fn told_times(member: &Cluster, kind: &str, reason: &str, times: usize) -> anyhow::Result<String> {
    let give_up = tokio::time::Instant::now() + Duration::from_secs(30);
    loop {
        let mut all = told(member, kind, reason).await?;
        if all.len() == times {
            return Ok(all.pop().unwrap_or_default());
        }
        ensure!(
            tokio::time::Instant::now() < give_up,
            "{kind} {reason}: not {times} in {}: {all:#?}",
            member.name
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_users_do_is_answered_by_the_object_that_they_touched_once_per_change() -> Outcome {
    let mut world = World::start(0).await?;
    for name in ["member1", "member2"] {
        world.join_with(name, Propagation::Nothing).await?;
    }
    let [one, two] = &world.members[..] else { unreachable!("two joined") };
    exported_by(one).await?;
    let imported = |found: &Value| message(found) == "Exported; imported by member2.";
    one.becomes(&export(), "it says who imports it", imported).await?;
    told_times(one, "ServiceExport", "Exported", 1).await?;

    // Edited and deleted by hand: it comes back, and says so.
    two.becomes(&derived(), "member2 imports", |found| !found.is_null()).await?;
    two.merge(&derived(), json!({"spec": {"selector": {"app": "mine"}}})).await?;
    two.becomes(&derived(), "the edit is undone", |found| found["spec"]["selector"].is_null()).await?;
    let said = told_times(two, "Service", "DriftRepaired", 1).await?;
    ensure!(
        said.contains("was changed, and the change was undone: it follows the service exported by member1"),
        "{said}"
    );

    // An export in use is deleted: the Service says who has lost it.
    one.delete(&export()).await?;
    let said = told_times(one, "Service", "Unexported", 1).await?;
    ensure!(said.contains("imported by member2;"), "{said}");
    told_times(two, "ServiceImport", "ImportRemoved", 1).await?;
    world.halt().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_whose_role_lacks_events_works_and_has_conditions_only() -> Outcome {
    let mut world = World::start(0).await?;
    world.join_with("member1", Propagation::Nothing).await?;
    let one = &world.members[0];
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "atoll-hub"}});
    let found = one.get(&role).await?;
    let rules: Vec<Value> = found["rules"].as_array().cloned().unwrap_or_default();
    let fewer: Vec<&Value> = rules.iter().filter(|rule| rule["resources"] != json!(["events"])).collect();
    ensure!(fewer.len() + 1 == rules.len(), "{rules:#?}");
    one.merge(&role, json!({"rules": fewer})).await?;
    exported_by(one).await?;
    let alone = |found: &Value| message(found) == "Exported; no other cluster has joined yet.";
    one.becomes(&export(), "it is exported all the same", alone).await?;
    ensure!(told(one, "ServiceExport", "Exported").await?.is_empty());
    world.halt().await
}
