//! The eight end-to-end cases of Karmada's own tests, by their numbers, and traffic, which those leave out.

use super::{Native, OURS, Shared, answers, dispatched, mcs, serve, service, serving, slices, web};
use crate::harness::Outcome;
use crate::mcs::deployment;
use crate::policies::{has, kubectl, lacks};
use anyhow::{Context, ensure};
use atoll_lab::{Deadline, until};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn tests(shared: &mut Shared<'_>) {
    shared.test("mcs_karmada_cases_1_and_2_export_and_import_through_the_hub_then_scale", through_the_hub);
    shared.test("mcs_karmada_case_3_from_member1_to_member2", async |native| {
        case(native, 3, &["member1"], &["member2"]).await
    });
    shared.test("mcs_karmada_case_4_from_member1_and_member2_to_member2", async |native| {
        case(native, 4, &["member1", "member2"], &["member2"]).await
    });
    shared.test("mcs_karmada_case_5_turned_round_then_with_a_provider_that_does_not_exist", turned_round);
    shared.test("mcs_karmada_case_6_from_all_to_member2", async |native| {
        case(native, 6, &[], &["member2"]).await
    });
    shared.test("mcs_karmada_case_7_from_member1_to_all", async |native| {
        case(native, 7, &["member1"], &[]).await
    });
    shared.test("mcs_karmada_case_8_from_all_to_all", async |native| case(native, 8, &[], &[]).await);
}

const CASES: &str = "cases";
const ALL: [&str; 3] = ["member1", "member2", "member3"];

/// The pods that all cases use; each has a Service of its own.
async fn pods(native: &Native) -> Outcome {
    native.namespace(CASES).await?;
    for number in [1, 2] {
        serve(native.member(number), CASES, 1).await?;
    }
    Ok(())
}

/// No names at all mean every cluster.
fn or_all<'a>(names: &[&'a str]) -> Vec<&'a str> {
    if names.is_empty() { ALL.to_vec() } else { names.to_vec() }
}

/// Every provider's slices are in every consumer, and nothing else is anywhere.
async fn spread(native: &Native, name: &str, providers: &[&str], consumers: &[&str]) -> Outcome {
    let (providers, consumers) = (or_all(providers), or_all(consumers));
    let clusters = native.world.lab.clusters();
    for consumer in clusters {
        let from = providers.iter().filter(|name| **name != consumer.name());
        let from: Vec<_> = from.filter(|_| consumers.contains(&consumer.name())).copied().collect();
        for provider in clusters.iter().filter(|provider| from.contains(&provider.name())) {
            dispatched(provider, consumer, CASES, name).await?;
        }
        let of_service = format!("{OURS},kubernetes.io/service-name={name}");
        until(
            Deadline::after(Duration::from_secs(60), format!("{name} in {}", consumer.name())),
            async || {
                let held = match slices(consumer, CASES, &of_service).await {
                    Ok(held) => held,
                    Err(error) => return Ok(Err(format!("{error:#}"))),
                };
                let expected =
                    |name: &str| from.iter().any(|provider| name.starts_with(&format!("{provider}-")));
                let as_many = held.len() == from.len() && held.iter().all(|(name, _)| expected(name));
                Ok(if as_many { Ok(()) } else { Err(format!("{held:?} from {from:?}")) })
            },
        )
        .await?;
    }
    Ok(())
}

/// One case: its conditions and events, its slices, its traffic, over a restart of the hub, and its end.
async fn case(native: &Native, number: u32, providers: &[&str], consumers: &[&str]) -> Outcome {
    pods(native).await?;
    let name = format!("case{number}");
    native.apply(&[service(CASES, &name, &serving()), mcs(CASES, &name, providers, consumers)]).await?;
    native.is_fine(CASES, &name).await?;
    for reason in ["SyncServiceSucceed", "DispatchEndpointSliceSucceed"] {
        native.told(CASES, "MultiClusterService", &name, reason).await?;
    }
    spread(native, &name, providers, consumers).await?;
    native.restart_hub().await?;
    spread(native, &name, providers, consumers).await?;
    answers(native.member(2), &format!("{name}.{CASES}.svc"), "member1").await?;
    if providers.is_empty() && consumers.is_empty() {
        answers(native.member(1), &format!("{name}.{CASES}.svc"), "member2").await?;
        answers(native.member(3), &format!("{name}.{CASES}.svc"), "member2").await?;
    }
    native.delete(CASES, &name).await?;
    has(native.member(2), &["-n", CASES, "service", &name], "the Service stays", |_| true).await.map(drop)
}

async fn turned_round(native: &Native) -> Outcome {
    pods(native).await?;
    native
        .apply(&[
            service(CASES, "case5", &serving()),
            mcs(CASES, "case5", &["member1", "member2"], &["member2"]),
        ])
        .await?;
    native.is_fine(CASES, "case5").await?;
    spread(native, "case5", &["member1", "member2"], &["member2"]).await?;
    native.apply(&[mcs(CASES, "case5", &["member2"], &["member1"])]).await?;
    spread(native, "case5", &["member2"], &["member1"]).await?;
    native.is_fine(CASES, "case5").await?;
    answers(native.member(1), &format!("case5.{CASES}.svc"), "member2").await?;
    native.restart_hub().await?;
    native.apply(&[mcs(CASES, "case5", &["member2", "member9"], &["member1"])]).await?;
    native.told(CASES, "MultiClusterService", "case5", "ClusterNotFound").await?;
    native
        .becomes(CASES, "case5", "the stranger is named", |found| {
            found["status"]["conditions"].to_string().contains("cluster \\\"member9\\\" is not a member")
        })
        .await?;
    // The others are served all the same.
    answers(native.member(1), &format!("case5.{CASES}.svc"), "member2").await?;
    native.delete(CASES, "case5").await
}

const THROUGH: &str = "through";

fn policy(name: &str, kind: &str, cluster: &str) -> Value {
    let api = if kind == "Service" { "v1" } else { "multicluster.x-k8s.io/v1alpha1" };
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": THROUGH},
        "spec": {"resourceSelectors": [{"apiVersion": api, "kind": kind, "name": "web"}],
            "placement": {"clusterAffinity": {"clusterNames": [cluster]}}}})
}

/// With `atoll.dev/import: explicit` on the namespace, so that member3 imports nothing, as with Karmada.
async fn through_the_hub(native: &Native) -> Outcome {
    native.namespace(THROUGH).await?;
    native.world.kubectl(&["annotate", "namespace", THROUGH, "atoll.dev/import=explicit"], "").await?;
    let (one, two, three) = (native.member(1), native.member(2), native.member(3));
    one.apply(&[deployment(one, THROUGH, "web", 1)]).await?;
    one.pods_ready(THROUGH, "app=web", 1).await?;
    let object = |kind: &str| {
        json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": kind,
            "metadata": {"name": "web", "namespace": THROUGH}})
    };
    let mut import = object("ServiceImport");
    import["spec"] = json!({"type": "ClusterSetIP", "ports": [
        {"name": "http", "port": 80, "protocol": "TCP"}, {"name": "udp", "port": 81, "protocol": "UDP"}]});
    native.apply(&[web(THROUGH), policy("service", "Service", "member1")]).await?;
    native.apply(&[object("ServiceExport"), policy("export", "ServiceExport", "member1")]).await?;
    has(one, &["-n", THROUGH, "serviceexport", "web"], "it is exported", |found| {
        found["status"].to_string().contains("Exported")
    })
    .await?;
    for cluster in [one, two, three] {
        lacks(cluster, &["-n", THROUGH, "service", "derived-web"]).await?;
    }
    native.apply(&[import.clone(), policy("import", "ServiceImport", "member2")]).await?;
    let derived = has(two, &["-n", THROUGH, "service", "derived-web"], "the derived Service", |found| {
        found["spec"]["clusterIP"].as_str().is_some_and(|ip| ip != "None")
    })
    .await?;
    let address = derived["spec"]["clusterIP"].as_str().context("an address")?;
    native.told(THROUGH, "ServiceImport", "web", "SyncDerivedServiceSucceed").await?;
    native.restart_hub().await?;

    // As many endpoints in the hub and in member2 as there are pods: one, then two.
    let of_derived = ["-n", THROUGH, "endpointslices", "-l", "kubernetes.io/service-name=derived-web"];
    for replicas in [1, 2] {
        kubectl(one, &["-n", THROUGH, "scale", "deployment", "web", &format!("--replicas={replicas}")])
            .await?;
        let as_many = |found: &Value| {
            let slices = found["items"].as_array().into_iter().flatten();
            slices.map(super::endpoints).sum::<usize>() == replicas
        };
        native.world.hub_has(&of_derived, "endpoints are in the hub", as_many).await?;
        has(two, &of_derived, "endpoints are in member2", as_many).await?;
        answers(two, address, "member1").await?;
    }
    for cluster in [one, three] {
        lacks(cluster, &["-n", THROUGH, "serviceimport", "web"]).await?;
        lacks(cluster, &["-n", THROUGH, "service", "derived-web"]).await?;
    }
    let again = has(two, &["-n", THROUGH, "service", "derived-web"], "it is there", |_| true).await?;
    ensure!(again["metadata"]["uid"] == derived["metadata"]["uid"], "it was made anew");

    // Without the template no cluster imports; why one does not come is told.
    native.world.kubectl(&["-n", THROUGH, "delete", "serviceimport", "web"], "").await?;
    lacks(two, &["-n", THROUGH, "service", "derived-web"]).await?;
    native.world.kubectl(&["-n", THROUGH, "delete", "serviceexport", "web"], "").await?;
    lacks(one, &["-n", THROUGH, "serviceexport", "web"]).await?;
    native.apply(&[import]).await?;
    native.told(THROUGH, "ServiceImport", "web", "SyncDerivedServiceFailed").await
}
