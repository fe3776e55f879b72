//! Looking into members through the hub, labels and taints, and what runs in a member becomes a template: on two real clusters.

use super::{SOON, World, has, kubectl, lacks};
use crate::harness::Outcome;
use anyhow::{Context, ensure};
use atoll_lab::suite::name;
use atoll_lab::{Deadline, Spec, until};
use serde_json::{Value, json};
use std::process::{Output, Stdio};
use tokio::io::AsyncWriteExt;

/// Runs `atoll` on the hub; flags come before what is behind `--`.
async fn atoll(world: &World, words: &[&str], stdin: &str) -> anyhow::Result<Output> {
    let (command, rest) = words.split_first().context("a command")?;
    let mut process = tokio::process::Command::new(world.atoll.binary());
    process
        .arg(command)
        .args(["--kubeconfig".as_ref(), world.atoll.kubeconfig()])
        .args(rest)
        .kill_on_drop(true);
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = process.spawn()?;
    let mut pipe = child.stdin.take().context("stdin")?;
    pipe.write_all(stdin.as_bytes()).await?;
    drop(pipe);
    Ok(child.wait_with_output().await?)
}

/// Runs it until it succeeds and prints what is right.
async fn says(world: &World, words: &[&str], is: impl Fn(&str) -> bool) -> anyhow::Result<String> {
    Ok(until(Deadline::after(SOON, format!("atoll {}", words.join(" "))), async || {
        Ok(match atoll(world, words, "").await {
            Ok(output) => {
                let out = String::from_utf8_lossy(&output.stdout).into_owned();
                let talk = String::from_utf8_lossy(&output.stderr).into_owned();
                if output.status.success() && is(&out) { Ok(out) } else { Err(format!("{out}{talk}")) }
            }
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?)
}

fn web(script: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default", "labels": {"app": "web"}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"terminationGracePeriodSeconds": 0, "containers": [
                {"name": "main", "image": "nicolaka/netshoot:v0.15", "command": ["sh", "-c", script]}]}}}})
}

/// An object without what counts its states, and without our marks. (An annotation of a Deployment raises its generation.)
fn own_parts(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(Value::Object(status)) = object.get_mut("status") {
        status.remove("observedGeneration");
    }
    if let Some(Value::Object(meta)) = object.get_mut("metadata") {
        meta.remove("resourceVersion");
        meta.remove("generation");
        meta.remove("managedFields");
        for (map, mark) in [("labels", "atoll.dev/propagated-by"), ("annotations", "atoll.dev/adopted")] {
            if let Some(Value::Object(all)) = meta.get_mut(map) {
                all.remove(mark);
            }
        }
    }
    object
}

pub(super) async fn members() -> Outcome {
    let world = World::start(Spec::whole(&name("look"), 2)).await?;
    let (one, two) = (world.lab.member(1), world.lab.member(2));
    world.join(1, &["--allow-propagation"]).await?;
    world.join(2, &["--allow-propagation"]).await?;

    // Looked into: both side by side, then one of them closely.
    for cluster in [one, two] {
        cluster.apply(&[web("echo one; echo two; exec sleep infinity")]).await?;
    }
    let table =
        says(&world, &["get", "-C", "member1,member2", "deployments"], |out| out.matches("1/1").count() == 2)
            .await?;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().take(2).collect()).collect();
    ensure!(rows == [["CLUSTER", "NAME"], ["member1", "web"], ["member2", "web"]], "{table}");
    says(&world, &["describe", "-C", "member1", "deployment", "web"], |out| {
        out.contains("Cluster:      member1\n") && out.contains("ScalingReplicaSet")
    })
    .await?;
    says(&world, &["logs", "-C", "member1", "deployment/web"], |out| out == "one\ntwo\n").await?;
    let words =
        ["exec", "-C", "member2", "-i", "deployment/web", "--", "sh", "-c", "cat; echo bad >&2; exit 3"];
    let long = "0123456789abcdef".repeat(10_000);
    let output = atoll(&world, &words, &long).await?;
    let talk = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(3) && talk.starts_with("bad\n"), "{:?} {talk}", output.status);
    ensure!(output.stdout == long.as_bytes(), "{} of {} bytes came back", output.stdout.len(), long.len());

    // A label attracts, a taint drives out.
    world
        .apply(
            r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {colour: blue}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: settings, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: settings}]
  placement: {clusterAffinity: {labelSelector: {matchLabels: {tier: gold}}}}
"#,
        )
        .await?;
    let settings = ["configmap", "settings"];
    world.atoll.must(&["cluster", "label", "member1", "tier=gold"]).await?;
    has(one, &settings, "the label attracts it", |_| true).await?;
    lacks(two, &settings).await?;
    world.atoll.must(&["cluster", "taint", "member1", "maintenance:NoExecute"]).await?;
    lacks(one, &settings).await?;
    world.atoll.must(&["cluster", "taint", "member1", "maintenance:NoExecute-"]).await?;
    has(one, &settings, "it may come back", |_| true).await?;

    // What runs is promoted: nothing of it changes, and it outlives its template.
    let deployment = ["deployment", "web"];
    let settled = |found: &Value| {
        let generation = &found["metadata"]["generation"];
        found["status"]["availableReplicas"] == 1 && found["status"]["observedGeneration"] == *generation
    };
    let before = has(two, &deployment, "it runs", settled).await?;
    let pods = ["get", "pods", "-l", "app=web", "-o", "name"];
    let pods_before = kubectl(two, &pods).await?;
    world.atoll.must(&["promote", "deployment", "web", "-C", "member2"]).await?;
    let marked = |found: &Value| found["metadata"]["annotations"]["atoll.dev/adopted"] == "true";
    let after = has(two, &deployment, "it is adopted", marked).await?;
    ensure!(own_parts(&after) == own_parts(&before), "{before:#}\n{after:#}");
    world.hub_has(&["rb", "web-deployment"], "it is applied", super::applied).await?;
    world
        .hub_has(&deployment, "its status is in the hub", |found| found["status"]["readyReplicas"] == 1)
        .await?;
    ensure!(own_parts(&has(two, &deployment, "it is there", marked).await?) == own_parts(&before));
    ensure!(kubectl(two, &pods).await? == pods_before, "its pods are as they were");
    world.kubectl(&["delete", "deployment", "web"], "").await?;
    let left =
        has(two, &deployment, "the marks go", |found| !found.to_string().contains("atoll.dev/")).await?;
    ensure!(left["metadata"]["uid"] == before["metadata"]["uid"], "it is the same object");
    ensure!(left["spec"] == before["spec"], "{left:#}");

    // The hub sees no more in a member than its last join allows.
    world.join(2, &["--revoke-propagation", "--allow-propagation=configmaps"]).await?;
    let output = atoll(&world, &["get", "-C", "member2", "deployments"], "").await?;
    let talk = String::from_utf8_lossy(&output.stderr);
    ensure!(
        talk.contains("atoll join member2 --cluster-kubeconfig FILE --allow-propagation=deployments.apps"),
        "{talk}"
    );
    ensure!(kubectl(two, &["get", "deployment", "web"]).await.is_ok(), "its owner still sees it");
    world.lab.down()?;
    Ok(())
}
