//! What a change costs, by the API servers' own logs, and where traffic goes.

use crate::harness::{Outcome, Suite};
use crate::mcs::{addresses, deployment, endpoints_are, export, service, unexport, who_answers};
use anyhow::ensure;
use atoll_lab::audit::{Recorded, Recorder};
use atoll_lab::{Cluster, Deadline, Lab, until};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

pub(crate) fn tests(suite: &mut Suite) {
    suite.set_test("a_changed_slice_costs_one_write_per_importer_and_no_other", one_write_per_importer);
    suite.set_test("traffic_stays_in_its_zone_while_the_zone_has_endpoints", same_zone);
}

/// The requests of a hub: not an administrator's, not the cluster's own machinery's.
fn of_a_hub(recorded: &Recorded) -> bool {
    recorded.user.starts_with("system:serviceaccount:atoll-system:")
}

async fn one_write_per_importer(lab: &Lab) -> Outcome {
    let one = lab.member(1);
    for cluster in lab.clusters() {
        cluster.namespace("cost").await?;
    }
    let slice = |count: u32| {
        let endpoints: Vec<_> = (1..=count)
            .map(|host| json!({"addresses": [format!("10.11.7.{host}")], "conditions": {"ready": true}}))
            .collect();
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "web", "namespace": "cost", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": endpoints, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        })
    };
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "cost"},
        "spec": {"ports": [{"name": "http", "port": 80}]},
    });
    one.apply(&[service, slice(1)]).await?;
    export(one, "cost", "web").await?;
    for cluster in lab.clusters() {
        endpoints_are(cluster, "cost", "web", "IPv4", 1).await?;
        addresses(cluster, "cost", "web").await?;
    }
    settle(lab).await?;
    let recorders = lab.clusters().iter().map(Recorder::of).collect::<atoll_lab::Result<Vec<_>>>()?;
    for count in 2..=6 {
        let slices: Api<EndpointSlice> = Api::namespaced(one.client().await?, "cost");
        slices
            .patch(
                "web",
                &PatchParams::default(),
                &Patch::Merge(json!({"endpoints": slice(count)["endpoints"]})),
            )
            .await?;
        for cluster in lab.clusters() {
            endpoints_are(cluster, "cost", "web", "IPv4", count as usize).await?;
        }
    }
    for (cluster, recorder) in lab.clusters().iter().zip(&recorders) {
        let mut writes = recorder.requests().await?;
        writes.retain(|recorded| {
            of_a_hub(recorded) && !matches!(&*recorded.request.verb, "get" | "list" | "watch")
        });
        let slices = writes
            .iter()
            .filter(|write| write.request.resource == "endpointslices" && write.request.verb == "update");
        ensure!(slices.count() == 5 && writes.len() == 5, "{}: {writes:?}", cluster.name());
    }
    unexport(one, "cost", "web").await
}

/// Waits until no cluster gets a write of the hub between two looks: status follows the slices.
async fn settle(lab: &Lab) -> atoll_lab::Result<()> {
    until(Deadline::after(Duration::from_secs(30), "the hub writes nothing more"), async || {
        let recorders = lab.clusters().iter().map(Recorder::of).collect::<atoll_lab::Result<Vec<_>>>()?;
        let quiet = Duration::from_secs(1);
        let since = std::time::Instant::now();
        while since.elapsed() < quiet {
            for recorder in &recorders {
                let writes = recorder.requests().await?;
                let busy = |recorded: &Recorded| {
                    of_a_hub(recorded) && !matches!(&*recorded.request.verb, "get" | "list" | "watch")
                };
                if let Some(write) = writes.into_iter().find(busy) {
                    return Ok(Err(format!("{write:?}")));
                }
            }
        }
        Ok(Ok(()))
    })
    .await
}

async fn in_zone(cluster: &Cluster, zone: &str) -> anyhow::Result<()> {
    let label = format!("topology.kubernetes.io/zone={zone}");
    let output =
        cluster.kubectl().args(["label", "node", cluster.name(), &label, "--overwrite"]).output().await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

async fn same_zone(lab: &Lab) -> Outcome {
    for (cluster, zone) in lab.clusters().iter().zip(["a", "b", "a"]) {
        in_zone(cluster, zone).await?;
        cluster.namespace("zones").await?;
    }
    let distribution = json!({"trafficDistribution": "PreferSameZone"});
    for cluster in lab.clusters() {
        cluster
            .apply(&[deployment(cluster, "zones", "web", 1), service("zones", "web", &distribution)])
            .await?;
        cluster.pods_ready("zones", "app=web", 1).await?;
        export(cluster, "zones", "web").await?;
    }
    let client = lab.member(3);
    client.tools("zones", "tools").await?;
    endpoints_are(client, "zones", "web", "IPv4", 3).await?;
    let come_true = async |what: &str, want: &[&str]| {
        until(Deadline::after(Duration::from_secs(60), what), async || {
            Ok(match who_answers(client, "zones", "web", 30).await {
                Ok(who) if who.keys().eq(want) => Ok(()),
                Ok(who) => Err(format!("{who:?}")),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
    };
    come_true("only zone a answers, from both its clusters", &["member1", "member3"]).await?;
    for cluster in [lab.member(1), lab.member(3)] {
        cluster.apply(&[deployment(cluster, "zones", "web", 0)]).await?;
    }
    come_true("zone b answers when a has no endpoints", &["member2"]).await?;
    for cluster in lab.clusters() {
        unexport(cluster, "zones", "web").await?;
    }
    Ok(())
}
