//! Nothing is lost: hubs die, freeze and restart, members go and come back, and by the recorder no request deletes
//! a slice of a healthy or unreachable source.

use crate::harness::{Outcome, Set, Suite};
use crate::mcs::{addresses, answered, endpoints_are, export, import_is, imports, serve, unexport};
use anyhow::ensure;
use atoll_lab::audit::{Recorded, Recorder};
use atoll_lab::clusterset::HubApi;
use atoll_lab::{Cluster, Component, Deadline, Lab, until};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

pub(crate) fn tests(suite: &mut Suite) {
    suite.hub_test("a_hub_killed_in_a_burst_loses_nothing", killed_in_a_burst);
    suite.hub_test("a_member_whose_api_is_gone_keeps_its_endpoints_everywhere", api_gone);
    suite.hub_test("a_lost_member_is_withdrawn_where_its_export_asks_for_it", withdrawn);
    suite.hub_test("a_hub_started_while_a_member_is_down_changes_nothing", started_while_down);
    // Two hubs need an API that neither of them serves.
    if HubApi::of_environment() == HubApi::Cluster {
        suite.hub_test("a_thawed_former_leader_writes_nothing", thawed_leader);
    }
    suite.hub_test("a_rolling_update_fails_no_request_from_another_cluster", rolling_update);
}

const KINDS: [&str; 3] = ["endpointslices", "services", "serviceimports"];

/// The DELETEs in `namespace` that were answered with success, of objects of ours.
async fn deletes(recorder: &Recorder, namespace: &str) -> atoll_lab::Result<Vec<Recorded>> {
    let mut all = recorder.requests().await?;
    all.retain(|recorded| {
        recorded.request.verb.starts_with("delete")
            && recorded.request.namespace == namespace
            && KINDS.contains(&recorded.request.resource.as_str())
            && recorded.code < 300
    });
    Ok(all)
}

/// A selector-less Service `web-<number>` with one slice of `endpoints`, and its export.
fn hand_made(namespace: &str, number: u32, endpoints: u32) -> [Value; 3] {
    let name = format!("web-{number}");
    let addresses: Vec<_> = (1..=endpoints)
        .map(|host| json!({"addresses": [format!("10.11.{number}.{host}")], "conditions": {"ready": true}}))
        .collect();
    [
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace},
            "spec": {"ports": [{"name": "http", "port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": name}},
            "endpoints": addresses, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }),
        json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"name": name, "namespace": namespace},
        }),
    ]
}

async fn killed_in_a_burst(lab: &Lab, set: &Set) -> Outcome {
    const COUNT: u32 = 40;
    for cluster in lab.clusters() {
        cluster.namespace("burst").await?;
    }
    let all = |endpoints| (1..=COUNT).flat_map(|n| hand_made("burst", n, endpoints)).collect::<Vec<_>>();
    lab.member(1).apply(&all(1)).await?;
    for number in 1..=COUNT {
        endpoints_are(lab.member(3), "burst", &format!("web-{number}"), "IPv4", 1).await?;
    }
    let recorders = [Recorder::of(lab.member(2))?, Recorder::of(lab.member(3))?];
    lab.member(1).apply(&all(3)).await?;
    set.hub().kill()?;
    set.start_hub()?;
    for cluster in [lab.member(2), lab.member(3)] {
        for number in 1..=COUNT {
            endpoints_are(cluster, "burst", &format!("web-{number}"), "IPv4", 3).await?;
        }
    }
    for recorder in &recorders {
        let deleted = deletes(recorder, "burst").await?;
        ensure!(deleted.is_empty(), "{deleted:?}");
    }
    for number in 1..=COUNT {
        unexport(lab.member(1), "burst", &format!("web-{number}")).await?;
    }
    Ok(())
}

/// Whether the import says that `source` may be out of date.
fn stale(import: &Value, source: &str) -> bool {
    let annotations = import["metadata"]["annotations"].as_object();
    annotations.into_iter().flatten().any(|(key, value)| {
        key.contains("stale-since") && (key.contains(source) || value.to_string().contains(source))
    })
}

async fn marked_stale(cluster: &Cluster, namespace: &str, name: &str, source: &str, want: bool) -> Outcome {
    let api = imports(cluster, namespace).await?;
    let what = format!("stale mark of {source} in {}: {want}", cluster.name());
    until(Deadline::after(Duration::from_secs(90), what), async || {
        Ok(match api.get_opt(name).await {
            Ok(Some(import)) => {
                let whole = json!({"metadata": import.metadata});
                if stale(&whole, source) == want { Ok(()) } else { Err(whole.to_string()) }
            }
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    Ok(())
}

async fn api_gone(lab: &Lab, _: &Set) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("gone").await?;
    }
    serve(lab.member(2), "gone", "web").await?;
    lab.member(3).tools("gone", "tools").await?;
    export(lab.member(2), "gone", "web").await?;
    answered(lab.member(3), "gone", "web", "member2").await?;
    let recorder = Recorder::of(lab.member(3))?;
    let (stopped, since) = (lab.member(2).stop(Component::ApiServer)?, Instant::now());
    ensure!(lab.member(2).client().await?.apiserver_version().await.is_err(), "the fault bites");
    marked_stale(lab.member(3), "gone", "web", "member2", true).await?;
    // The pods live on, and so does the way to them, for a whole minute.
    let minute = Deadline::after(Duration::from_secs(120), "a minute has passed");
    until(minute, async || {
        answered(lab.member(3), "gone", "web", "member2").await.map_err(|error| {
            Deadline::after(Duration::ZERO, "the service is reached").passed(error.to_string())
        })?;
        let passed = since.elapsed();
        Ok(if passed >= Duration::from_secs(60) { Ok(()) } else { Err(format!("{passed:?}")) })
    })
    .await?;
    stopped.heal()?;
    lab.member(2).ready().await?;
    marked_stale(lab.member(3), "gone", "web", "member2", false).await?;
    let deleted = deletes(&recorder, "gone").await?;
    ensure!(deleted.is_empty(), "{deleted:?}");
    unexport(lab.member(2), "gone", "web").await
}

async fn withdrawn(lab: &Lab, _: &Set) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("lost").await?;
    }
    let (source, elsewhere) = (lab.member(2), lab.member(3));
    for name in ["goes", "stays"] {
        serve(source, "lost", name).await?;
    }
    source
        .apply(&[json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport",
            "metadata": {"name": "goes", "namespace": "lost", "annotations": {"atoll.dev/liveness": "Withdraw"}},
        })])
        .await?;
    export(source, "lost", "stays").await?;
    for name in ["goes", "stays"] {
        endpoints_are(elsewhere, "lost", name, "IPv4", 1).await?;
    }
    let recorder = Recorder::of(elsewhere)?;
    let stopped = source.stop(Component::ApiServer)?;
    ensure!(source.client().await?.apiserver_version().await.is_err(), "the fault bites");
    marked_stale(elsewhere, "lost", "stays", "member2", true).await?;
    endpoints_are(elsewhere, "lost", "goes", "IPv4", 0).await?;
    endpoints_are(elsewhere, "lost", "stays", "IPv4", 1).await?;
    // The import and its address stay: whoever resolved it need not ask again when the source is back.
    let address = addresses(elsewhere, "lost", "goes").await?;
    stopped.heal()?;
    source.ready().await?;
    for name in ["goes", "stays"] {
        endpoints_are(elsewhere, "lost", name, "IPv4", 1).await?;
    }
    marked_stale(elsewhere, "lost", "stays", "member2", false).await?;
    ensure!(addresses(elsewhere, "lost", "goes").await? == address, "it has another address now");
    let deleted = deletes(&recorder, "lost").await?;
    let withdrawn = |recorded: &Recorded| {
        recorded.request.resource == "endpointslices" && recorded.request.name.contains("-goes-")
    };
    ensure!(deleted.len() == 2 && deleted.iter().all(withdrawn), "{deleted:?}");
    for name in ["goes", "stays"] {
        unexport(source, "lost", name).await?;
    }
    Ok(())
}

/// Everything of ours in a namespace that a restart must not change: imports, derived Services, slices.
async fn picture(cluster: &Cluster, namespace: &str) -> anyhow::Result<Value> {
    let client = cluster.client().await?;
    let all = ListParams::default();
    let imports = imports(cluster, namespace).await?.list(&all).await?;
    let services: Api<Service> = Api::namespaced(client.clone(), namespace);
    let services = services.list(&all).await?;
    let slices: Api<k8s_openapi::api::discovery::v1::EndpointSlice> = Api::namespaced(client, namespace);
    let slices =
        slices.list(&ListParams::default().labels("multicluster.kubernetes.io/source-cluster")).await?;
    Ok(json!({
        "imports": imports.items.iter().map(|i| json!([i.metadata.name, i.data["spec"]])).collect::<Vec<_>>(),
        "services": services.items.iter().map(|s| json!([s.metadata.name, s.metadata.uid, s.spec])).collect::<Vec<_>>(),
        "slices": slices.items.iter().map(|s| json!([s.metadata.name, s.metadata.uid, s.endpoints, s.ports])).collect::<Vec<_>>(),
    }))
}

async fn started_while_down(lab: &Lab, set: &Set) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("cold").await?;
    }
    for cluster in [lab.member(2), lab.member(3)] {
        serve(cluster, "cold", "web").await?;
        export(cluster, "cold", "web").await?;
    }
    endpoints_are(lab.member(1), "cold", "web", "IPv4", 2).await?;
    addresses(lab.member(1), "cold", "web").await?;
    import_is(lab.member(1), "cold", "web", "two clusters", |import| {
        import["status"]["clusters"].as_array().map(Vec::len) == Some(2)
    })
    .await?;
    let before = picture(lab.member(1), "cold").await?;
    set.hub().end(Duration::from_secs(10))?;
    let stopped = lab.member(2).stop(Component::ApiServer)?;
    let recorder = Recorder::of(lab.member(1))?;
    set.start_hub()?;
    // It works for the others: a new service arrives, and the lost one is marked.
    serve(lab.member(3), "cold", "new").await?;
    export(lab.member(3), "cold", "new").await?;
    addresses(lab.member(1), "cold", "new").await?;
    marked_stale(lab.member(1), "cold", "web", "member2", true).await?;
    unexport(lab.member(3), "cold", "new").await?;
    crate::mcs::nothing_is_imported(lab.member(1), "cold", "new").await?;
    let after = picture(lab.member(1), "cold").await?;
    ensure!(before == after, "before {before}\nafter  {after}");
    let deleted = deletes(&recorder, "cold").await?;
    let of_new = |recorded: &Recorded| recorded.request.name.contains("new");
    ensure!(deleted.iter().all(of_new), "{deleted:?}");
    stopped.heal()?;
    lab.member(2).ready().await?;
    set.atoll.all_ready(lab.clusters()).await?;
    for cluster in [lab.member(2), lab.member(3)] {
        unexport(cluster, "cold", "web").await?;
    }
    Ok(())
}

async fn thawed_leader(lab: &Lab, set: &Set) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("thaw").await?;
    }
    lab.member(1).apply(&hand_made("thaw", 1, 1)).await?;
    endpoints_are(lab.member(3), "thaw", "web-1", "IPv4", 1).await?;
    let recorder = Recorder::of(lab.member(3))?;
    let second =
        set.atoll.start_hub("hub-2", &["--metrics-address", "0.0.0.0:9091", "--identity", "second"])?;
    let first = set.hub();
    first.freeze()?;
    lab.member(1).apply(&hand_made("thaw", 1, 2)).await?;
    let taken_over = endpoints_are(lab.member(3), "thaw", "web-1", "IPv4", 2).await;
    first.signal(rustix::process::Signal::CONT)?;
    taken_over?;
    lab.member(1).apply(&hand_made("thaw", 1, 3)).await?;
    endpoints_are(lab.member(3), "thaw", "web-1", "IPv4", 3).await?;
    let deleted = deletes(&recorder, "thaw").await?;
    ensure!(deleted.is_empty(), "{deleted:?}");
    // The first one is what the other tests know: let it lead again.
    second.end(Duration::from_secs(10))?;
    lab.member(1).apply(&hand_made("thaw", 1, 4)).await?;
    if !first.alive() {
        set.start_hub()?;
    }
    endpoints_are(lab.member(3), "thaw", "web-1", "IPv4", 4).await?;
    unexport(lab.member(1), "thaw", "web-1").await
}

async fn rolling_update(lab: &Lab, _: &Set) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace("roll").await?;
    }
    let one = lab.member(1);
    let mut deployment = crate::mcs::deployment(one, "roll", "web", 2);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", "3"]}}});
    container["readinessProbe"] = json!({"httpGet": {"path": "/", "port": 8080}, "periodSeconds": 1});
    deployment["spec"]["strategy"] = json!({"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}});
    one.apply(&[deployment.clone(), crate::mcs::service("roll", "web", &json!({}))]).await?;
    one.pods_ready("roll", "app=web", 2).await?;
    export(one, "roll", "web").await?;
    lab.member(2).tools("roll", "tools").await?;
    answered(lab.member(2), "roll", "web", "member1").await?;
    let address = addresses(lab.member(2), "roll", "web").await?.remove(0);
    let requests = format!("workload request --address={address} --interval=20ms --duration=25s");
    let command = ["sh", "-c", &requests];
    let client = lab.member(2).exec("roll", "tools", &command);
    let update = async {
        deployment["spec"]["template"]["metadata"]["annotations"] = json!({"version": "2"});
        one.apply(&[deployment.clone()]).await?;
        let mut status = one.kubectl();
        status.args(["-n", "roll", "rollout", "status", "deployment/web", "--timeout=60s"]);
        let done = status.output().await?;
        ensure!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        Ok(())
    };
    let (said, updated) = tokio::join!(client, update);
    updated?;
    let said = said?;
    let pods: std::collections::BTreeSet<_> =
        said.lines().filter_map(|line| line.split(' ').nth(3)).collect();
    let failed: Vec<_> = said.lines().filter(|line| line.contains("error:")).collect();
    ensure!(failed.is_empty(), "{} of {} requests failed: {failed:?}", failed.len(), said.lines().count());
    ensure!(pods.len() >= 4, "old and new pods answered: {pods:?}");
    unexport(one, "roll", "web").await
}
