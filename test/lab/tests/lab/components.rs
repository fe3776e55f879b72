//! Components that stop, die, freeze and come back.

use crate::harness::{Outcome, Suite};
use crate::recorder::config_map;
use anyhow::{Context, ensure};
use atoll_lab::image::TOOLS;
use atoll_lab::{Component, Lab};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, PostParams};
use serde_json::json;
use std::time::Duration;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test("a_stopped_api_server_answers_nothing_and_keeps_everything", a_stopped_api_server);
    suite.test("a_frozen_api_server_keeps_its_port_and_answers_nothing", a_frozen_api_server);
    suite.test("a_killed_etcd_comes_back_with_what_it_had", a_killed_etcd);
    suite.test("a_frozen_scheduler_leaves_pods_pending_until_it_thaws", a_frozen_scheduler);
    suite.test("every_component_is_killed_and_restarted_and_pods_still_start", every_component);
    suite.test("a_component_that_does_not_run_cannot_be_stopped_again", stopped_twice);
}

async fn a_stopped_api_server(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "default");
    maps.create(&PostParams::default(), &config_map("before-the-stop")).await?;
    let stopped = cluster.stop(Component::ApiServer)?;
    ensure!(maps.get("before-the-stop").await.is_err(), "the fault bites");
    lab.member(1).client().await?.apiserver_version().await?;
    stopped.heal()?;
    cluster.ready().await?;
    maps.get("before-the-stop").await?;
    Ok(())
}

async fn a_frozen_api_server(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    let client = cluster.client().await?;
    client.apiserver_version().await?;
    let frozen = cluster.freeze(Component::ApiServer)?;
    let answer = tokio::time::timeout(Duration::from_secs(1), client.apiserver_version()).await;
    ensure!(answer.is_err(), "neither an answer nor a refusal: {answer:?}");
    let process = cluster.process(Component::ApiServer).context("it is still there")?;
    ensure!(process.frozen(), "and frozen");
    drop(frozen);
    client.apiserver_version().await?;
    ensure!(cluster.process(Component::ApiServer) == Some(process), "the same process goes on");
    Ok(())
}

async fn a_killed_etcd(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await?, "default");
    maps.create(&PostParams::default(), &config_map("before-the-kill")).await?;
    let killed = cluster.kill(Component::Etcd)?;
    let (create, map) = (PostParams::default(), config_map("during-the-kill"));
    let written = tokio::time::timeout(Duration::from_secs(3), maps.create(&create, &map)).await;
    ensure!(!matches!(written, Ok(Ok(_))), "the fault bites");
    killed.heal()?;
    cluster.ready().await?;
    maps.get("before-the-kill").await?;
    Ok(())
}

fn pod(name: &str) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "tools", "image": TOOLS, "command": ["sleep", "infinity"]}],
        },
    }))
    .expect("a constant Pod is well-formed")
}

async fn a_frozen_scheduler(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    let frozen = cluster.freeze(Component::Scheduler)?;
    let pods: Api<Pod> = Api::namespaced(cluster.client().await?, "default");
    pods.create(&PostParams::default(), &pod("waits")).await?;
    // The controllers work on: they have made a token's ConfigMap for a new namespace, say.
    cluster.namespace("made-meanwhile").await?;
    let node = pods.get("waits").await?.spec.and_then(|spec| spec.node_name);
    ensure!(node.is_none(), "no scheduler chose a node: {node:?}");
    frozen.heal()?;
    cluster.pods_ready("default", "app=waits", 1).await?;
    Ok(())
}

async fn every_component(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    for component in cluster.components() {
        let before = cluster.process(*component).with_context(|| format!("{} runs", component.name()))?;
        cluster.kill(*component)?.heal()?;
        ensure!(!before.alive(), "{} was killed", component.name());
        let after =
            cluster.process(*component).with_context(|| format!("{} runs again", component.name()))?;
        cluster.restart(*component)?;
        ensure!(
            !after.alive() && cluster.process(*component).is_some(),
            "{} was restarted",
            component.name()
        );
        cluster.ready().await?;
    }
    let pods: Api<Pod> = Api::namespaced(cluster.client().await?, "default");
    pods.create(&PostParams::default(), &pod("after-all-that")).await?;
    cluster.pods_ready("default", "app=after-all-that", 1).await?;
    let resolves = "dig +short +time=2 kubernetes.default.svc.cluster.local";
    let address = cluster.addresses().service(1).v4.to_string();
    cluster.exec_until("default", "after-all-that", resolves, |said| said.trim() == address).await?;
    Ok(())
}

async fn stopped_twice(lab: &Lab) -> Outcome {
    let cluster = lab.member(3);
    let stopped = cluster.stop(Component::ControllerManager)?;
    let again = cluster.stop(Component::ControllerManager).err().context("a second stop is refused")?;
    ensure!(again.to_string().contains("does not run"), "{again}");
    stopped.heal()?;
    ensure!(cluster.process(Component::ControllerManager).is_some(), "it runs again");
    Ok(())
}
