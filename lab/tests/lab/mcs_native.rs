//! `MultiClusterService`: native names over clusters, with kubectl on a hub that has an API of its own, and real packets.

use crate::harness::{Outcome, Suite};
use crate::policies::{World, has, kubectl, lacks};
use anyhow::{Context, ensure};
use lab::image::SERVE;
use lab::suite::name;
use lab::{Cluster, Component, Spec};
use serde_json::{Value, json};

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("a_multi_cluster_service_is_reached_by_its_native_name", native);
}

fn mcs(providers: &[&str], consumers: &[&str]) -> String {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService", "metadata": {"name": "serve"},
        "spec": {"types": ["CrossCluster"], "providerClusters": named(providers), "consumerClusters": named(consumers)}})
    .to_string()
}

/// The Service in the hub, and the Deployment that answers with its cluster's name in one member.
async fn workload(cluster: &Cluster) -> Outcome {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "serve", "namespace": "default"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "serve"}}, "template": {
            "metadata": {"labels": {"app": "serve"}},
            "spec": {"containers": [{"name": "serve", "image": SERVE,
                "args": [format!("--message=hello from {}", cluster.name()), "--udp-port=8081"]}]}}}});
    cluster.apply(&[deployment]).await?;
    cluster.pods_ready("default", "app=serve", 1).await?;
    Ok(())
}

const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata: {name: serve}
spec:
  selector: {app: serve}
  ports:
  - {name: http, port: 80, targetPort: 8080}
  - {name: udp, port: 81, targetPort: 8081, protocol: UDP}
"#;

fn fine(found: &Value) -> bool {
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.len() == 2 && conditions.iter().all(|one| one["status"] == "True")
}

/// Karmada's own check: every slice of a provider has a slice with as many endpoints in the consumer.
async fn dispatched(provider: &Cluster, consumer: &Cluster) -> Outcome {
    let ask = ["-n", "default", "endpointslices", "-l", "kubernetes.io/service-name=serve"];
    let dispatcher = "endpointslice-dispatch-controller.karmada.io";
    let own =
        |slice: &Value| slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"] != dispatcher;
    let endpoints = |slice: &Value| slice["endpoints"].as_array().map_or(0, Vec::len);
    let theirs = has(provider, &ask, "its slices", |found| {
        found["items"].as_array().is_some_and(|all| !all.is_empty())
    })
    .await?;
    for slice in theirs["items"].as_array().into_iter().flatten().filter(|slice| own(slice)) {
        let copy = format!("{}-{}", provider.name(), slice["metadata"]["name"].as_str().context("a name")?);
        let what = format!("{copy} with {} endpoints", endpoints(slice));
        let count = endpoints(slice);
        has(consumer, &["-n", "default", "endpointslices", &copy], &what, |found| endpoints(found) == count)
            .await?;
    }
    Ok(())
}

async fn answers(client: &Cluster, from: &str) -> Outcome {
    let want = format!("hello from {from}");
    for ask in [
        "workload fetch --timeout=2s --address=serve.default.svc:80",
        "workload fetch --timeout=2s --address=serve:80",
        "workload fetch --timeout=2s --udp=true --address=serve.default.svc:81",
    ] {
        client.exec_until("default", "tools", ask, |said| said.trim() == want).await?;
    }
    Ok(())
}

async fn native() -> Outcome {
    let world = World::start(Spec::whole(&name("native"), 2)).await?;
    let (one, two) = (world.lab.member(1), world.lab.member(2));
    for number in [1, 2] {
        world.join(number, &[]).await?;
    }
    one.tools("default", "tools").await?;
    two.tools("default", "tools").await?;
    workload(one).await?;
    let object = ["mcs", "serve"];

    // Before its Service is there, that is said; then the native name answers over TCP and UDP.
    world.apply(&mcs(&["member1"], &["member2"])).await?;
    world
        .hub_has(&object, "the missing Service is said", |found| {
            found.to_string().contains("there is no Service serve")
        })
        .await?;
    world.apply(SERVICE).await?;
    world.hub_has(&object, "both conditions are True", fine).await?;
    dispatched(one, two).await?;
    answers(two, "member1").await?;
    let described = world.kubectl(&["describe", "mcs", "serve"], "").await?;
    for word in
        ["SyncServiceSucceed", "DispatchEndpointSliceSucceed", "member1", "member2", "Provider", "Consumer"]
    {
        ensure!(described.contains(word), "{word} is not in {described}");
    }
    let table = world.kubectl(&["get", "mcs"], "").await?;
    ensure!(table.contains("PROVIDERS") && table.contains("DISPATCHED") && table.contains("True"), "{table}");

    // More endpoints; then none.
    kubectl(one, &["-n", "default", "scale", "deployment", "serve", "--replicas=2"]).await?;
    one.pods_ready("default", "app=serve", 2).await?;
    dispatched(one, two).await?;

    // Two providers of which one consumes; the other way round; one that does not exist; all in every way.
    workload(two).await?;
    world.apply(&mcs(&["member1", "member2"], &["member2"])).await?;
    dispatched(one, two).await?;
    world.apply(&mcs(&["member2"], &["member1"])).await?;
    dispatched(two, one).await?;
    world.apply(&mcs(&["member2", "member9"], &["member1"])).await?;
    world
        .hub_has(&["events"], "ClusterNotFound is told", |found| {
            found.to_string().contains("ClusterNotFound")
        })
        .await?;
    for (providers, consumers) in [(&[][..], &["member2"][..]), (&["member1"], &[]), (&[], &[])] {
        world.apply(&mcs(providers, consumers)).await?;
        dispatched(one, two).await?;
    }
    dispatched(two, one).await?;
    world.hub_has(&object, "both conditions are True", fine).await?;

    // A provider whose API is gone: its pods answer, and it is shown as stale.
    world.apply(&mcs(&["member1"], &["member2"])).await?;
    kubectl(two, &["-n", "default", "delete", "deployment", "serve"]).await?;
    lacks(two, &["-n", "default", "pods", "-l", "app=serve"]).await?;
    answers(two, "member1").await?;
    let fault = one.stop(Component::ApiServer)?;
    world
        .hub_has(&object, "the provider is shown as stale", |found| {
            found["status"]["clusters"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["staleSince"].is_string()))
        })
        .await?;
    answers(two, "member1").await?;
    fault.heal()?;
    one.ready().await?;
    world.hub_has(&object, "both conditions are True", fine).await?;

    // Deletion takes the slices and leaves the Service; unjoin takes everything of ours.
    world.kubectl(&["delete", "mcs", "serve"], "").await?;
    let ours = "endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io";
    lacks(two, &["-n", "default", "endpointslices", "-l", ours]).await?;
    has(two, &["-n", "default", "service", "serve"], "the Service stays", |_| true).await?;
    world.apply(&mcs(&["member1"], &["member2"])).await?;
    dispatched(one, two).await?;
    world.atoll.must(&["unjoin", "member1"]).await?;
    lacks(two, &["-n", "default", "endpointslices", "-l", ours]).await?;
    world.lab.down()?;
    Ok(())
}
