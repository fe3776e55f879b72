//! Garbage: what happens to the dependents of what is deleted.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{container, deployment, grouped, map, maps};
use crate::suite::cases;
use crate::target::Target;

cases! {
    dependents_go_in_the_background,
    dependents_go_first_in_the_foreground,
    orphans_stay_and_forget_their_owner,
    a_dependent_of_two_owners_stays_with_one,
    a_dependent_of_nobody_goes,
    a_dependent_of_another_uid_goes,
    a_chain_goes_whole,
    a_blocking_dependent_holds_its_owner,
    orphans_by_the_old_option_stay,
    dependents_of_other_kinds_go_too,
}

/// A map that belongs to others.
fn owned(name: &str, owners: &[&Answer], blocks: bool) -> Value {
    let reference = |owner: &&Answer| {
        json!({
            "apiVersion": owner.at("/apiVersion"), "kind": owner.at("/kind"), "name": owner.at("/metadata/name"),
            "uid": owner.at("/metadata/uid"), "blockOwnerDeletion": blocks,
        })
    };
    let mut body = map(name, json!({}));
    body["metadata"]["ownerReferences"] = owners.iter().map(reference).collect();
    body
}

async fn make(api: &Target, ns: &str, name: &str) -> Answer {
    let answer = api.post(&maps(ns), map(name, json!({}))).await;
    answer.created();
    answer
}

async fn dependents_go_in_the_background(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    api.post(&maps(&ns), owned("child", &[&owner], false)).await.created();
    let path = format!("{}/owner", maps(&ns));
    api.delete_with(&path, json!({"propagationPolicy": "Background"})).await.has("/status", "Success");
    api.get(&path).await.is(404);
    api.until_gone(&format!("{}/child", maps(&ns))).await;
}

async fn dependents_go_first_in_the_foreground(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    let mut child = owned("child", &[&owner], true);
    child["metadata"]["finalizers"] = json!(["example.com/wait"]);
    api.post(&maps(&ns), child).await.created();
    let (parent, child) = (format!("{}/owner", maps(&ns)), format!("{}/child", maps(&ns)));
    // The collector must know of the child before its owner goes.
    api.delete_with(&parent, json!({"propagationPolicy": "Foreground"})).await.ok();
    api.until(&child, |child| child.at("/metadata/deletionTimestamp").is_string()).await;
    api.get(&parent).await.has("/metadata/finalizers", json!(["foregroundDeletion"]));
    api.merge(&child, json!({"metadata": {"finalizers": null}})).await.ok();
    api.until_gone(&parent).await;
    api.get(&child).await.is(404);
}

async fn orphans_stay_and_forget_their_owner(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    api.post(&maps(&ns), owned("child", &[&owner], false)).await.created();
    api.delete_with(&format!("{}/owner", maps(&ns)), json!({"propagationPolicy": "Orphan"})).await.ok();
    api.until_gone(&format!("{}/owner", maps(&ns))).await;
    api.get(&format!("{}/child", maps(&ns))).await.has("/metadata/ownerReferences", Value::Null);
}

async fn a_dependent_of_two_owners_stays_with_one(api: Target) {
    let ns = api.namespace().await;
    let (one, two) = (make(&api, &ns, "one").await, make(&api, &ns, "two").await);
    api.post(&maps(&ns), owned("child", &[&one, &two], false)).await.created();
    api.delete(&format!("{}/one", maps(&ns))).await.ok();
    let child = format!("{}/child", maps(&ns));
    let left = api.until(&child, |child| child.at("/metadata/ownerReferences/1").is_null()).await;
    left.ok();
    left.has("/metadata/ownerReferences/0/name", "two");
    api.delete(&format!("{}/two", maps(&ns))).await.ok();
    api.until_gone(&child).await;
}

async fn a_dependent_of_nobody_goes(api: Target) {
    let ns = api.namespace().await;
    let mut body = map("child", json!({}));
    body["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "never-was", "uid": "11111111-2222-3333-4444-555555555555"}]);
    api.post(&maps(&ns), body).await.created();
    api.until_gone(&format!("{}/child", maps(&ns))).await;
}

async fn a_dependent_of_another_uid_goes(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    let mut body = owned("child", &[&owner], false);
    body["metadata"]["ownerReferences"][0]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    api.post(&maps(&ns), body).await.created();
    api.until_gone(&format!("{}/child", maps(&ns))).await;
    api.get(&format!("{}/owner", maps(&ns))).await.ok();
}

async fn a_chain_goes_whole(api: Target) {
    let ns = api.namespace().await;
    let one = make(&api, &ns, "one").await;
    let two = api.post(&maps(&ns), owned("two", &[&one], false)).await;
    let three = api.post(&maps(&ns), owned("three", &[&two], false)).await;
    three.created();
    api.delete(&format!("{}/one", maps(&ns))).await.ok();
    for name in ["two", "three"] {
        api.until_gone(&format!("{}/{name}", maps(&ns))).await;
    }
}

async fn a_blocking_dependent_holds_its_owner(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    let mut free = owned("free", &[&owner], false);
    free["metadata"]["finalizers"] = json!(["example.com/wait"]);
    api.post(&maps(&ns), free).await.created();
    // A dependent that does not block lets its owner go at once.
    api.delete_with(&format!("{}/owner", maps(&ns)), json!({"propagationPolicy": "Foreground"})).await.ok();
    api.until_gone(&format!("{}/owner", maps(&ns))).await;
    let child = format!("{}/free", maps(&ns));
    api.until(&child, |child| child.at("/metadata/deletionTimestamp").is_string()).await;
    api.merge(&child, json!({"metadata": {"finalizers": null}})).await.ok();
}

async fn orphans_by_the_old_option_stay(api: Target) {
    let ns = api.namespace().await;
    let owner = make(&api, &ns, "owner").await;
    api.post(&maps(&ns), owned("child", &[&owner], false)).await.created();
    api.delete_with(&format!("{}/owner", maps(&ns)), json!({"orphanDependents": true})).await.ok();
    api.until_gone(&format!("{}/owner", maps(&ns))).await;
    api.get(&format!("{}/child", maps(&ns))).await.has("/metadata/ownerReferences", Value::Null);
}

async fn dependents_of_other_kinds_go_too(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let owner = api.post(&path, deployment("d", json!([container("c", "i:1")]))).await;
    owner.created();
    api.post(&maps(&ns), owned("child", &[&owner], true)).await.created();
    api.delete(&format!("{path}/d")).await.ok();
    api.until_gone(&format!("{}/child", maps(&ns))).await;
}
