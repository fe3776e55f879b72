//! `atoll check`: each fault of the data path is made for real, and its cause has to come first, within ten seconds.

use crate::dns::namespaces;
use crate::harness::{Outcome, Set, Suite};
use crate::mcs::{SOON, deployment, endpoints_are, export, serve, service};
use anyhow::{Context, ensure};
use atoll_lab::fault::cut::{Cut, Traffic};
use atoll_lab::image::TOOLS;
use atoll_lab::pods::addresses_of;
use atoll_lab::{Cluster, Component, Deadline, Lab, until};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "check";
/// How long a check of the control plane, and of the data path, may take.
const CONTROL: Duration = Duration::from_secs(2);
const DATA_PATH: Duration = Duration::from_secs(10);

pub(crate) fn tests(suite: &mut Suite) {
    suite.dns_test("check_says_nothing_wrong_of_a_healthy_clusterset", healthy);
    suite.dns_test("check_finds_a_pod_network_without_a_route", no_route);
    suite.dns_test("check_finds_the_policy_that_drops", policy);
    suite.dns_test("check_finds_wrong_ports_and_empty_selectors", ports);
    suite.dns_test("check_finds_a_corefile_that_was_reverted", corefile);
    suite.dns_test("check_finds_a_kube_proxy_that_stopped", kube_proxy);
}

/// A service `web` of the first cluster, which the second has.
async fn shop(lab: &Lab) -> Outcome {
    namespaces(lab, NAMESPACE).await?;
    serve(lab.member(1), NAMESPACE, "web").await?;
    export(lab.member(1), NAMESPACE, "web").await?;
    endpoints_are(lab.member(2), NAMESPACE, "web", "IPv4", 1).await?;
    Ok(())
}

/// Runs a check; its report, exit code, and how long it took.
async fn check(lab: &Lab, set: &Set, more: &[&str]) -> anyhow::Result<(Value, Option<i32>, Duration)> {
    let contexts = lab.layout().kubeconfig().display().to_string();
    let words =
        [&["check", "-o", "json", "--image", TOOLS, "--cluster-kubeconfig", &contexts][..], more].concat();
    let begun = Instant::now();
    let output = set.atoll.run(&words).await?;
    let took = begun.elapsed();
    let report = serde_json::from_slice(&output.stdout)
        .with_context(|| format!("no report: {}", String::from_utf8_lossy(&output.stderr)))?;
    Ok((report, output.status.code(), took))
}

/// Checks a service from the second cluster: this code and cluster have to come first, within ten seconds.
async fn first(lab: &Lab, set: &Set, name: &str, code: &str, cluster: &str) -> Outcome {
    let service = format!("{NAMESPACE}/{name}");
    let (report, exit, took) = check(lab, set, &["--service", &service, "--from", "member2"]).await?;
    let cause = &report["causes"][0];
    ensure!(
        cause["code"] == code && cause["cluster"] == cluster,
        "{code} in {cluster} is not first: {report:#}"
    );
    ensure!(exit == Some(1) && took < DATA_PATH, "exit code {exit:?} after {took:?}");
    Ok(())
}

/// No Job and no pod of a check is left.
async fn nothing_is_left(cluster: &Cluster) -> Outcome {
    let (jobs, pods): (Api<Job>, Api<Pod>) = (
        Api::namespaced(cluster.client().await?, NAMESPACE),
        Api::namespaced(cluster.client().await?, NAMESPACE),
    );
    let ours = ListParams::default().labels("atoll.dev/check");
    until(Deadline::after(SOON, "nothing is left of a check"), async || {
        let left = async {
            Ok::<_, kube::Error>((jobs.list(&ours).await?.items.len(), pods.list(&ours).await?.items.len()))
        };
        Ok(match left.await {
            Ok((0, 0)) => Ok(()),
            other => Err(format!("{other:?}")),
        })
    })
    .await?;
    Ok(())
}

async fn healthy(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let (report, exit, took) = check(lab, set, &[]).await?;
    ensure!(exit == Some(0) && report["causes"] == json!([]), "{report:#}");
    ensure!(took < CONTROL, "the control plane took {took:?}");
    // A pod that has just started may answer over IPv6 a moment later than over IPv4: until then it is not healthy.
    let give_up = Instant::now() + SOON;
    let (report, took) = loop {
        let (report, exit, took) = check(lab, set, &["--service", "check/web"]).await?;
        if exit == Some(0) && report["causes"] == json!([]) {
            break (report, took);
        }
        ensure!(Instant::now() < give_up, "{report:#}");
    };
    ensure!(took < DATA_PATH, "the data path took {took:?}");
    let checks = report["checks"].as_array().context("checks")?;
    let probed = checks.iter().filter(|one| one["id"] == "data-path" && one["mark"] == "passed").count();
    ensure!(probed == 3, "from each of three clusters: {report:#}");
    for cluster in lab.clusters() {
        nothing_is_left(cluster).await?;
    }
    // With the hub's own rights less can be seen: nothing is called wrong, and nothing is called proven.
    let output =
        set.atoll.run(&["check", "-o", "json", "--service", "check/web", "--from", "member2"]).await?;
    let report: Value = serde_json::from_slice(&output.stdout)?;
    ensure!(output.status.code() == Some(1) && report["causes"] == json!([]), "{report:#}");
    ensure!(report.to_string().contains("create and delete jobs.batch"), "what it needs is told: {report:#}");
    Ok(())
}

async fn no_route(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let cut = lab.member(1).cut(&Cut::of(Traffic::Pods).with(lab.member(2)))?;
    first(lab, set, "web", "NoRoute", "member1").await?;
    cut.heal()?;
    Ok(())
}

/// The lab has no enforcer of NetworkPolicies: the packet filter drops what the policy beside it would.
async fn policy(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let one = lab.member(1);
    let policy = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "own-pods-only", "namespace": NAMESPACE},
        "spec": {"podSelector": {"matchLabels": {"app": "web"}}, "ingress": [{"from": [{"podSelector": {}}]}]},
    });
    one.apply(&[policy]).await?;
    let pods = one.pods_ready(NAMESPACE, "app=web", 1).await?;
    let cut = one.cut(&Cut::of(Traffic::Pods).pods(&addresses_of(&pods[0])?).with(lab.member(2)))?;
    let found = first(lab, set, "web", "NetworkPolicyDrops", "member1").await;
    cut.heal()?;
    let policies: Api<k8s_openapi::api::networking::v1::NetworkPolicy> =
        Api::namespaced(one.client().await?, NAMESPACE);
    policies.delete("own-pods-only", &kube::api::DeleteParams::default()).await?;
    found
}

async fn ports(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let one = lab.member(1);
    let leads_to = |name: &str, app: &str, port: u16| {
        let ports = json!([{"name": "http", "port": 80, "targetPort": port}]);
        service(NAMESPACE, name, &json!({"selector": {"app": app}, "ports": ports}))
    };
    let mut listing = deployment(one, NAMESPACE, "listing", 1);
    listing["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 8080}]);
    one.apply(&[
        leads_to("closed", "web", 9999),
        listing,
        leads_to("listing", "listing", 9999),
        leads_to("nothing", "nothing", 8080),
    ])
    .await?;
    one.pods_ready(NAMESPACE, "app=listing", 1).await?;
    for name in ["closed", "listing", "nothing"] {
        export(one, NAMESPACE, name).await?;
    }
    for name in ["closed", "listing"] {
        endpoints_are(lab.member(2), NAMESPACE, name, "IPv4", 1).await?;
    }
    crate::mcs::addresses(lab.member(2), NAMESPACE, "nothing").await?;
    first(lab, set, "closed", "PortClosed", "member1").await?;
    first(lab, set, "listing", "TargetPortWrong", "member1").await?;
    first(lab, set, "nothing", "SelectorEmpty", "member1").await?;
    for name in ["closed", "listing", "nothing"] {
        crate::mcs::unexport(one, NAMESPACE, name).await?;
    }
    Ok(())
}

async fn corefile(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let two = lab.member(2);
    let with = two.offered_corefile().await?;
    let (before, rest) = with.split_once("# BEGIN atoll").context("it is set up")?;
    let after = rest.split_once("# END atoll\n").context("our part has an end")?.1;
    let offer = async |text: &str| {
        two.write_corefile(text)?;
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": text}});
        two.apply(&[map]).await
    };
    // Something writes the Corefile anew, as an upgrade of the cluster does.
    offer(&format!("{before}{after}")).await?;
    let found = async {
        let ask = format!(
            "@{} +short +tries=1 +time=1 A web.{NAMESPACE}.svc.clusterset.local",
            two.addresses().node().v4
        );
        until(Deadline::after(SOON, "CoreDNS has read it"), async || {
            let said = two.dig(&ask).await?;
            Ok(if said.is_empty() { Ok(()) } else { Err(said) })
        })
        .await?;
        first(lab, set, "web", "DnsNotLed", "member2").await
    };
    let found = found.await;
    offer(&with).await?;
    found
}

async fn kube_proxy(lab: &Lab, set: &Set) -> Outcome {
    shop(lab).await?;
    let two = lab.member(2);
    let stopped = two.stop(Component::KubeProxy)?;
    // What comes now has no rules there.
    lab.member(1).apply(&[service(NAMESPACE, "late", &json!({"selector": {"app": "web"}}))]).await?;
    export(lab.member(1), NAMESPACE, "late").await?;
    endpoints_are(two, NAMESPACE, "late", "IPv4", 1).await?;
    crate::mcs::addresses(two, NAMESPACE, "late").await?;
    let found = first(lab, set, "late", "KubeProxyStopped", "member2").await;
    stopped.heal()?;
    two.ready().await?;
    crate::mcs::unexport(lab.member(1), NAMESPACE, "late").await?;
    found
}
