//! What Karmada's own cases leave out: names, what is there already, what is not there yet, headless Services, locality, leaving.

use super::{
    Native, OURS, RIGHTS, Shared, annotated, answers, dispatched, endpoints, mcs, serve, service, slice,
    slices, web,
};
use crate::harness::Outcome;
use crate::mcs::export;
use crate::policies::{has, kubectl, lacks};
use anyhow::{Context, ensure};
use atoll_lab::{Deadline, until};
use serde_json::{Value, json};
use std::time::Duration;

pub(super) fn tests(shared: &mut Shared<'_>) {
    shared.test("mcs_slices_of_one_name_long_names_and_empty_slices_are_kept_apart", names);
    shared.test("mcs_a_service_that_is_exported_and_crosses_has_no_endpoint_twice", both);
    shared.test("mcs_an_existing_service_keeps_its_node_port_and_is_given_back", node_port);
    shared.test("mcs_a_service_that_comes_later_is_awaited", later);
    shared.test("mcs_a_headless_stateful_set_is_reached_by_name_and_its_hosts_only_where_asked", headless);
    shared.test("mcs_local_endpoints_are_used_first_while_any_is_ready", local_first);
    shared.test("mcs_a_provider_that_leaves_takes_its_slices_along", leaving);
}

async fn names(native: &Native) -> Outcome {
    let (ns, three) = ("names", native.member(3));
    native.namespace(ns).await?;
    // With the provider's name before it one fits into what an API takes, and the other does not.
    let (long, longest) = (format!("web-{}", "x".repeat(236)), format!("web-{}", "x".repeat(246)));
    native
        .member(1)
        .apply(&[
            slice(ns, "web", "web-1", &["10.11.9.1"]),
            slice(ns, "web", &long, &["10.11.9.2"]),
            slice(ns, "web", &longest, &["10.11.9.3", "10.11.9.4"]),
        ])
        .await?;
    native
        .member(2)
        .apply(&[slice(ns, "web", "web-1", &["10.12.9.1"]), slice(ns, "web", "empty", &[])])
        .await?;
    native
        .apply(&[
            service(ns, "web", &json!({"ports": [{"port": 80}]})),
            mcs(ns, "web", &["member1", "member2"], &["member3"]),
        ])
        .await?;
    native.is_fine(ns, "web").await?;
    let held = async || {
        let mut held = slices(three, ns, OURS).await?;
        held.sort();
        Ok::<_, anyhow::Error>(held)
    };
    let before = held().await?;
    let plain = |name: &str, count: usize| (name.to_owned(), count);
    for one in [
        plain("member1-web-1", 1),
        plain(&format!("member1-{long}"), 1),
        plain("member2-web-1", 1),
        plain("member2-empty", 0),
    ] {
        ensure!(before.contains(&one), "{one:?} is not in {before:?}");
    }
    let hashed = |(name, count): &(String, usize)| name.starts_with("member1.") && *count == 2;
    ensure!(before.len() == 5 && before.iter().any(hashed), "{before:?}");
    native.restart_hub().await?;
    ensure!(held().await? == before, "a restart changed {before:?}");
    // A change finds its way to the right one of two that are called the same.
    native.member(2).apply(&[slice(ns, "web", "web-1", &["10.12.9.1", "10.12.9.2"])]).await?;
    has(three, &["-n", ns, "endpointslice", "member2-web-1"], "two endpoints", |found| endpoints(found) == 2)
        .await?;
    ensure!(held().await?.contains(&plain("member1-web-1", 1)));
    native.delete(ns, "web").await
}

async fn both(native: &Native) -> Outcome {
    let ns = "both";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    serve(one, ns, 1).await?;
    native.apply(&[web(ns), mcs(ns, "web", &["member1"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    export(one, ns, "web").await?;
    let alone = async |service: &str| {
        let labels = format!("kubernetes.io/service-name={service}");
        let what = format!("one endpoint of {service} in member2");
        until(Deadline::after(Duration::from_secs(60), what), async || {
            Ok(match slices(two, ns, &labels).await {
                Ok(found) if found.iter().map(|(_, count)| count).sum::<usize>() == 1 => Ok(()),
                Ok(found) => Err(format!("{found:?}")),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await
    };
    alone("derived-web").await?;
    alone("web").await?;
    native.restart_hub().await?;
    alone("derived-web").await?;
    alone("web").await?;
    for name in [format!("web.{ns}.svc"), format!("derived-web.{ns}.svc")] {
        answers(two, &name, "member1").await?;
    }
    // One goes, the other stays.
    crate::mcs::unexport(one, ns, "web").await?;
    lacks(two, &["-n", ns, "service", "derived-web"]).await?;
    answers(two, &format!("web.{ns}.svc"), "member1").await?;
    native.delete(ns, "web").await
}

async fn node_port(native: &Native) -> Outcome {
    let ns = "ports";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    serve(one, ns, 1).await?;
    let of_type = |kind: &str| {
        let mut service = web(ns);
        service["spec"]["type"] = kind.into();
        service
    };
    let mut theirs = annotated(of_type("NodePort"), "team", "blue");
    theirs["spec"]["ports"][0]["nodePort"] = 31080.into();
    two.apply(&[theirs]).await?;
    let there = ["-n", ns, "service", "web"];
    let before = has(two, &there, "theirs", |_| true).await?;
    native.apply(&[of_type("NodePort"), mcs(ns, "web", &["member1"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    native.restart_hub().await?;
    let during = has(two, &there, "it is taken over", |found| {
        found["metadata"]["annotations"]["atoll.dev/adopted"] == "true"
    })
    .await?;
    for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "ports"] {
        ensure!(during["spec"][field] == before["spec"][field], "{field}: {during:#}");
    }
    ensure!(during["metadata"]["annotations"]["team"] == "blue", "{during:#}");
    answers(two, &format!("web.{ns}.svc"), "member1").await?;
    // By the node port that its owner chose.
    let ask = format!("workload fetch --timeout=2s --address={}:31080", two.addresses().node().v4);
    two.exec_until("default", "tools", &ask, |said| said.starts_with("member1")).await?;
    // Off the list: what we made goes, what was theirs is theirs again.
    has(one, &there, "ours", |_| true).await?;
    native.apply(&[mcs(ns, "web", &["member3"], &["member3"])]).await?;
    lacks(one, &there).await?;
    let after = has(two, &there, "it is given back", |found| {
        found["metadata"]["labels"]["atoll.dev/propagated-by"].is_null()
    })
    .await?;
    ensure!(after["metadata"]["uid"] == before["metadata"]["uid"], "{after:#}");
    ensure!(after["spec"]["ports"][0]["nodePort"] == 31080, "{after:#}");
    native.delete(ns, "web").await
}

async fn later(native: &Native) -> Outcome {
    let ns = "later";
    native.namespace(ns).await?;
    serve(native.member(1), ns, 1).await?;
    native.apply(&[mcs(ns, "web", &["member1"], &["member2"])]).await?;
    let said = |found: &Value| found["status"]["conditions"].to_string().contains("there is no Service web");
    native.becomes(ns, "web", "the missing Service is said", said).await?;
    native.told(ns, "MultiClusterService", "web", "SyncServiceFailed").await?;
    native.restart_hub().await?;
    native.apply(&[web(ns)]).await?;
    native.is_fine(ns, "web").await?;
    dispatched(native.member(1), native.member(2), ns, "web").await?;
    answers(native.member(2), &format!("web.{ns}.svc"), "member1").await?;
    native.delete(ns, "web").await
}

async fn headless(native: &Native) -> Outcome {
    let ns = "heads";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    let mut set = crate::mcs::deployment(one, ns, "web", 2);
    (set["kind"], set["spec"]["serviceName"]) = ("StatefulSet".into(), "web".into());
    one.apply(&[set]).await?;
    let mut service = web(ns);
    service["spec"]["clusterIP"] = "None".into();
    native.apply(&[service, mcs(ns, "web", &["member1"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    let pods = one.pods_ready(ns, "app=web", 2).await?;
    let mut theirs =
        pods.iter().map(atoll_lab::pods::addresses_of).collect::<atoll_lab::Result<Vec<_>>>()?.concat();
    theirs.retain(|address| !address.contains(':'));
    theirs.sort();
    let ask = format!("dig +short web.{ns}.svc.cluster.local | sort");
    let all = theirs.join("\n");
    two.exec_until("default", "tools", &ask, |said| said.trim() == all).await?;
    native.restart_hub().await?;
    // A headless Service has no address of its own: the pods' ports are asked.
    let fetch = |host: &str| format!("workload fetch --timeout=2s --address={host}:8080");
    two.exec_until("default", "tools", &fetch(&format!("web.{ns}.svc")), |said| said.starts_with("member1"))
        .await?;
    // Hosts are known in their own cluster, and elsewhere only where that is asked for.
    let host = format!("web-0.web.{ns}.svc");
    one.exec_until("default", "tools", &fetch(&host), |said| said.trim() == "member1 web-0").await?;
    let lookup = format!("dig +short {host}.cluster.local");
    ensure!(
        two.exec("default", "tools", &["sh", "-c", &lookup]).await?.trim().is_empty(),
        "{host} has an address"
    );
    let asks = annotated(mcs(ns, "web", &["member1"], &["member2"]), "atoll.dev/hostnames", "true");
    native.apply(&[asks]).await?;
    two.exec_until("default", "tools", &fetch(&host), |said| said.trim() == "member1 web-0").await?;
    native.delete(ns, "web").await
}

/// Who answers twenty requests, by the first word.
async fn who(
    client: &atoll_lab::Cluster,
    native: &str,
) -> anyhow::Result<std::collections::BTreeSet<String>> {
    let ask = format!(
        "for i in $(seq 20); do workload fetch --timeout=2s --address={native}:80 || echo nobody; done"
    );
    let said = client.exec("default", "tools", &["sh", "-c", &ask]).await?;
    Ok(said.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect())
}

async fn local_first(native: &Native) -> Outcome {
    let ns = "near";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    serve(one, ns, 1).await?;
    serve(two, ns, 1).await?;
    let name = format!("web.{ns}.svc");
    let until_all_from = async |want: &str| {
        until(
            Deadline::after(Duration::from_secs(60), format!("{name} is answered by {want} alone")),
            async || {
                Ok(match who(two, &name).await {
                    Ok(who) if who.len() == 1 && who.contains(want) => Ok(()),
                    Ok(who) => Err(format!("{who:?}")),
                    Err(error) => Err(format!("{error:#}")),
                })
            },
        )
        .await
    };
    // Anywhere, unless it is asked for.
    native.apply(&[web(ns), mcs(ns, "web", &["member1", "member2"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    until(Deadline::after(Duration::from_secs(60), "both clusters answer"), async || {
        Ok(match who(two, &name).await {
            Ok(who) if who.len() == 2 && !who.contains("nobody") => Ok(()),
            Ok(who) => Err(format!("{who:?}")),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    let asked = mcs(ns, "web", &["member1", "member2"], &["member2"]);
    native.apply(&[annotated(asked, "atoll.dev/locality", "local-first")]).await?;
    until_all_from("member2").await?;
    native.restart_hub().await?;
    until_all_from("member2").await?;
    kubectl(two, &["-n", ns, "scale", "deployment", "web", "--replicas=0"]).await?;
    until_all_from("member1").await?;
    kubectl(two, &["-n", ns, "scale", "deployment", "web", "--replicas=1"]).await?;
    until_all_from("member2").await?;
    native.delete(ns, "web").await
}

async fn leaving(native: &Native) -> Outcome {
    let ns = "leave";
    let (one, two) = (native.member(1), native.member(2));
    native.namespace(ns).await?;
    serve(one, ns, 1).await?;
    native.apply(&[web(ns), mcs(ns, "web", &["member1", "member3"], &["member2"])]).await?;
    native.is_fine(ns, "web").await?;
    native.restart_hub().await?;
    answers(two, &format!("web.{ns}.svc"), "member1").await?;
    native.world.atoll.must(&["unjoin", "member1"]).await?;
    let left = until(Deadline::after(Duration::from_secs(60), "only what member3 has is left"), async || {
        Ok(match slices(two, ns, OURS).await {
            Ok(found) if found.iter().all(|(name, _)| name.starts_with("member3-")) => Ok(found),
            Ok(found) => Err(format!("{found:?}")),
            Err(error) => Err(format!("{error:#}")),
        })
    })
    .await?;
    ensure!(!left.is_empty(), "member3 has a slice without endpoints");
    lacks(one, &["-A", "endpointslices", "-l", OURS]).await?;
    native
        .becomes(ns, "web", "the one that left is named", |found| {
            found["status"]["conditions"].to_string().contains("cluster \\\"member1\\\" is not a member")
        })
        .await?;
    // It joins again, and all is as it was.
    native.world.join(1, &[RIGHTS]).await.context("member1 joins again")?;
    native.is_fine(ns, "web").await?;
    answers(two, &format!("web.{ns}.svc"), "member1").await?;
    native.delete(ns, "web").await
}
