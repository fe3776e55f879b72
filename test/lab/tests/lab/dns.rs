//! Names of the clusterset, as pods see them: through CoreDNS, which forwards to `atoll dns`; and through CoreDNS's own option.

use crate::harness::{Outcome, Set, Suite};
use crate::mcs::{SOON, addresses, deployment, endpoints_are, export, serve, service, unexport};
use anyhow::ensure;
use atoll_lab::pods::addresses_of;
use atoll_lab::{Cluster, Component, Deadline, Lab, until};
use k8s_openapi::api::core::v1::Service;
use kube::api::Api;
use serde_json::{Value, json};

pub(crate) fn tests(suite: &mut Suite) {
    suite.dns_test("an_exported_service_has_a_name_everywhere", a_name_everywhere);
    suite.dns_test("cluster_local_names_stay_as_they_were", cluster_local);
    suite.dns_test("a_headless_service_gives_all_endpoints_of_three_clusters", headless);
    suite.dns_test("hostnames_that_clash_are_told_apart_by_their_cluster", hostnames);
    suite.dns_test("an_import_without_ports_has_addresses_and_no_srv_records", no_ports);
    suite.dns_test("what_is_not_exported_has_no_name", not_exported);
    suite.dns_test("names_outlive_the_hub", hub_gone);
    suite.dns_test("names_outlive_the_api_server_and_say_how_old_they_are", api_gone);
    suite.dns_test("coredns_own_option_reads_our_objects", multicluster);
    suite.dns_test("the_setup_is_shown_applied_missed_and_undone", setup);
}

pub(crate) async fn namespaces(lab: &Lab, namespace: &str) -> Outcome {
    for cluster in lab.clusters() {
        cluster.namespace(namespace).await?;
    }
    Ok(())
}

/// A pod `tools` in every cluster.
async fn tools(lab: &Lab, namespace: &str) -> Outcome {
    namespaces(lab, namespace).await?;
    for cluster in lab.clusters() {
        cluster.tools(namespace, "tools").await?;
    }
    Ok(())
}

/// Waits until `dig +short` in the pod `tools` says these lines, in any order.
async fn resolves<T: AsRef<str>>(from: &Cluster, namespace: &str, question: &str, want: &[T]) -> Outcome {
    let mut want: Vec<&str> = want.iter().map(AsRef::as_ref).collect();
    want.sort_unstable();
    let what = format!("`dig {question}` in {} says {want:?}", from.name());
    until(Deadline::after(SOON, what), async || {
        let ask = ["dig", "+short", "+tries=1", "+time=2"].into_iter().chain(question.split(' '));
        let said = match from.exec(namespace, "tools", &ask.collect::<Vec<_>>()).await {
            Ok(said) => said,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let mut lines: Vec<&str> = said.lines().collect();
        lines.sort_unstable();
        Ok(if lines == want { Ok(()) } else { Err(said) })
    })
    .await?;
    Ok(())
}

/// Addresses of one family, and how DNS asks for them.
fn by_family(all: &[String]) -> [(&'static str, Vec<String>); 2] {
    let of = |six: bool| all.iter().filter(|address| address.contains(':') == six).cloned().collect();
    [("A", of(false)), ("AAAA", of(true))]
}

async fn a_name_everywhere(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "names").await?;
    serve(lab.member(1), "names", "web").await?;
    export(lab.member(1), "names", "web").await?;
    let name = "web.names.svc.clusterset.local";
    for cluster in lab.clusters() {
        let ips = addresses(cluster, "names", "web").await?;
        ensure!(ips.len() == 2, "both families: {ips:?}");
        for (rtype, want) in by_family(&ips) {
            resolves(cluster, "names", &format!("{rtype} {name}."), &want).await?;
        }
        resolves(cluster, "names", &format!("SRV _http._tcp.{name}."), &[format!("0 1 80 {name}.")]).await?;
        resolves(cluster, "names", &format!("SRV _udp._udp.{name}."), &[format!("0 1 81 {name}.")]).await?;
        let both = [format!("0 1 80 {name}."), format!("0 1 81 {name}.")];
        resolves(cluster, "names", &format!("SRV {name}."), &both).await?;
        resolves(cluster, "names", "TXT dns-version.clusterset.local.", &["\"1.0.0\""]).await?;
        // And what stands behind the name answers, by the name.
        let ask = format!("printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 {name} 80");
        cluster.exec_until("names", "tools", &ask, |said| said.contains("member1")).await?;
    }
    unexport(lab.member(1), "names", "web").await?;
    for cluster in lab.clusters() {
        resolves::<&str>(cluster, "names", &format!("A {name}."), &[]).await?;
    }
    Ok(())
}

async fn cluster_local(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "local").await?;
    serve(lab.member(1), "local", "web").await?;
    let services: Api<Service> = Api::namespaced(lab.member(1).client().await?, "local");
    let own = services.get("web").await?.spec.unwrap_or_default().cluster_ips.unwrap_or_default();
    export(lab.member(1), "local", "web").await?;
    addresses(lab.member(2), "local", "web").await?;
    for (rtype, want) in by_family(&own) {
        resolves(lab.member(1), "local", &format!("{rtype} web.local.svc.cluster.local."), &want).await?;
    }
    resolves::<&str>(lab.member(2), "local", "A web.local.svc.cluster.local.", &[]).await?;
    unexport(lab.member(1), "local", "web").await
}

async fn headless(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "headless-dns").await?;
    let mut all = Vec::new();
    for cluster in lab.clusters() {
        cluster
            .apply(&[
                deployment(cluster, "headless-dns", "web", 2),
                service("headless-dns", "web", &json!({"clusterIP": "None"})),
            ])
            .await?;
        for pod in cluster.pods_ready("headless-dns", "app=web", 2).await? {
            all.extend(addresses_of(&pod)?.into_iter().map(|address| (cluster.name(), address)));
        }
        export(cluster, "headless-dns", "web").await?;
    }
    ensure!(all.len() == 12, "two families of two pods in three clusters: {all:?}");
    let name = "web.headless-dns.svc.clusterset.local";
    let addresses: Vec<String> = all.iter().map(|(_, address)| address.clone()).collect();
    let targets = all
        .iter()
        .map(|(cluster, address)| format!("0 1 8080 {}.{cluster}.{name}.", address.replace(['.', ':'], "-")));
    let targets: Vec<String> = targets.collect();
    for cluster in lab.clusters() {
        for (rtype, want) in by_family(&addresses) {
            resolves(cluster, "headless-dns", &format!("{rtype} {name}."), &want).await?;
        }
        resolves(cluster, "headless-dns", &format!("SRV _http._tcp.{name}."), &targets).await?;
        // Every named port; more than a datagram holds, so that this is over TCP.
        let both: Vec<String> =
            targets.iter().flat_map(|target| [target.clone(), target.replacen("8080", "8081", 1)]).collect();
        resolves(cluster, "headless-dns", &format!("SRV {name}."), &both).await?;
    }
    // One is not ready any more: it goes, and nothing else does.
    let (gone, kept) = (lab.member(2), lab.member(3));
    gone.apply(&[deployment(gone, "headless-dns", "web", 1)]).await?;
    endpoints_are(kept, "headless-dns", "web", "IPv4", 5).await?;
    let left = gone.pods_ready("headless-dns", "app=web", 1).await?;
    let left = addresses_of(&left[0])?;
    let still = all.iter().filter(|(cluster, address)| *cluster != gone.name() || left.contains(address));
    let still: Vec<String> = still.map(|(_, address)| address.clone()).collect();
    for (rtype, want) in by_family(&still) {
        resolves(kept, "headless-dns", &format!("{rtype} {name}."), &want).await?;
    }
    for cluster in lab.clusters() {
        unexport(cluster, "headless-dns", "web").await?;
    }
    Ok(())
}

fn stateful_set(cluster: &Cluster, namespace: &str, name: &str) -> Value {
    let mut set = deployment(cluster, namespace, name, 1);
    set["kind"] = json!("StatefulSet");
    set["spec"]["serviceName"] = json!(name);
    set
}

async fn hostnames(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "hosts").await?;
    let mut hosts = Vec::new();
    for cluster in [lab.member(1), lab.member(2)] {
        let headless = service("hosts", "db", &json!({"clusterIP": "None"}));
        cluster.apply(&[headless, stateful_set(cluster, "hosts", "db")]).await?;
        let pods = cluster.pods_ready("hosts", "app=db", 1).await?;
        hosts.push((cluster.name(), addresses_of(&pods[0])?));
        export(cluster, "hosts", "db").await?;
    }
    let name = "db.hosts.svc.clusterset.local";
    for cluster in lab.clusters() {
        for (source, addresses) in &hosts {
            for (rtype, want) in by_family(addresses) {
                resolves(cluster, "hosts", &format!("{rtype} db-0.{source}.{name}."), &want).await?;
            }
            // The name of the cluster alone is never served.
            for rtype in ["A", "AAAA", "SRV"] {
                resolves::<&str>(cluster, "hosts", &format!("{rtype} {source}.{name}."), &[]).await?;
            }
        }
        let targets = hosts.iter().map(|(source, _)| format!("0 1 8080 db-0.{source}.{name}."));
        let targets: Vec<_> = targets.collect();
        resolves(cluster, "hosts", &format!("SRV _http._tcp.{name}."), &targets).await?;
    }
    for cluster in [lab.member(1), lab.member(2)] {
        unexport(cluster, "hosts", "db").await?;
    }
    Ok(())
}

/// An import with an address and no ports: it can't come of a Service, but of another controller.
fn without_ports(namespace: &str, address: &str) -> Value {
    json!({
        "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport",
        "metadata": {"name": "foreign", "namespace": namespace},
        "spec": {"type": "ClusterSetIP", "ports": [], "ips": [address], "ipFamilies": ["IPv4"]},
    })
}

async fn no_ports(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "no-ports").await?;
    let one = lab.member(1);
    let without = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "no-ports"},
        "spec": {"clusterIP": "None", "selector": {"app": "web"}},
    });
    one.apply(&[deployment(one, "no-ports", "web", 1), without]).await?;
    let pods = one.pods_ready("no-ports", "app=web", 1).await?;
    export(one, "no-ports", "web").await?;
    lab.member(2).apply(&[without_ports("no-ports", "10.112.200.1")]).await?;
    let name = "no-ports.svc.clusterset.local.";
    resolves(lab.member(2), "no-ports", &format!("A web.{name}"), &addresses_of(&pods[0])?[..1]).await?;
    resolves::<&str>(lab.member(2), "no-ports", &format!("SRV web.{name}"), &[]).await?;
    resolves(lab.member(2), "no-ports", &format!("A foreign.{name}"), &["10.112.200.1"]).await?;
    resolves::<&str>(lab.member(2), "no-ports", &format!("SRV foreign.{name}"), &[]).await?;
    unexport(one, "no-ports", "web").await
}

async fn not_exported(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "unnamed").await?;
    serve(lab.member(1), "unnamed", "public").await?;
    serve(lab.member(1), "unnamed", "secret").await?;
    export(lab.member(1), "unnamed", "public").await?;
    for cluster in lab.clusters() {
        let ips = addresses(cluster, "unnamed", "public").await?;
        resolves(cluster, "unnamed", "A public.unnamed.svc.clusterset.local.", &ips[..1]).await?;
        resolves::<&str>(cluster, "unnamed", "A secret.unnamed.svc.clusterset.local.", &[]).await?;
    }
    unexport(lab.member(1), "unnamed", "public").await
}

async fn hub_gone(lab: &Lab, set: &Set) -> Outcome {
    tools(lab, "hubless").await?;
    serve(lab.member(1), "hubless", "web").await?;
    export(lab.member(1), "hubless", "web").await?;
    let two = lab.member(2);
    let ips = addresses(two, "hubless", "web").await?;
    let ask = "A web.hubless.svc.clusterset.local.";
    resolves(two, "hubless", ask, &ips[..1]).await?;
    set.hub().kill()?;
    let hubless = async {
        ensure!(!set.hub().alive(), "the fault bites");
        resolves(two, "hubless", ask, &ips[..1]).await?;
        // A server that is started now knows as much.
        set.restart_dns(two).await?;
        resolves(two, "hubless", ask, &ips[..1]).await
    };
    let outcome = hubless.await;
    set.start_hub()?;
    outcome?;
    set.atoll.all_ready(lab.clusters()).await?;
    unexport(lab.member(1), "hubless", "web").await
}

/// The value of a metric of `atoll dns`.
async fn metric(cluster: &Cluster, name: &str) -> atoll_lab::Result<f64> {
    let page = cluster.dns_page("/metrics").await?;
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
    Ok(line.unwrap_or(f64::NAN))
}

async fn age_is(cluster: &Cluster, what: &str, want: impl Fn(f64) -> bool) -> Outcome {
    until(Deadline::after(SOON * 2, format!("the snapshot of {} {what}", cluster.name())), async || {
        let age = metric(cluster, "atoll_dns_snapshot_age_seconds ").await?;
        Ok(if want(age) { Ok(()) } else { Err(age.to_string()) })
    })
    .await?;
    Ok(())
}

async fn api_gone(lab: &Lab, _: &Set) -> Outcome {
    namespaces(lab, "apiless").await?;
    serve(lab.member(1), "apiless", "web").await?;
    export(lab.member(1), "apiless", "web").await?;
    let three = lab.member(3);
    let ips = addresses(three, "apiless", "web").await?;
    let ask = format!("@{} +short A web.apiless.svc.clusterset.local", three.addresses().node().v4);
    let answers = async || {
        let want = format!("{}\n", ips[0]);
        until(Deadline::after(SOON, "the name is answered"), async || {
            let said = three.dig(&ask).await?;
            Ok(if said == want { Ok(()) } else { Err(said) })
        })
        .await
    };
    answers().await?;
    age_is(three, "is watched", |age| age == 0.0).await?;
    let stopped = three.stop(Component::ApiServer)?;
    age_is(three, "grows old", |age| age > 2.0).await?;
    answers().await?;
    stopped.heal()?;
    three.ready().await?;
    age_is(three, "is watched again", |age| age == 0.0).await?;
    unexport(lab.member(1), "apiless", "web").await?;
    until(Deadline::after(SOON * 2, "a change shows"), async || {
        let said = three.dig(&ask).await?;
        Ok(if said.is_empty() { Ok(()) } else { Err(said) })
    })
    .await?;
    Ok(())
}

async fn multicluster(lab: &Lab, _: &Set) -> Outcome {
    tools(lab, "option").await?;
    let one = lab.member(1);
    serve(one, "option", "web").await?;
    one.apply(&[service("option", "db", &json!({"clusterIP": "None"})), stateful_set(one, "option", "db")])
        .await?;
    let pods = one.pods_ready("option", "app=db", 1).await?;
    let host = addresses_of(&pods[0])?;
    for name in ["web", "db"] {
        export(one, "option", name).await?;
    }
    let three = lab.member(3);
    three.apply(&[without_ports("option", "10.113.200.1")]).await?;
    let without_ports = "A foreign.option.svc.clusterset.local.";
    resolves(three, "option", without_ports, &["10.113.200.1"]).await?;
    let ours = three.corefile()?;
    three.use_multicluster().await?;
    let checked = async {
        // What it can't, as docs/dns.md says; its schema's version is what `use_multicluster` waits for.
        resolves::<&str>(three, "option", without_ports, &[]).await?;
        let ips = addresses(three, "option", "web").await?;
        for (rtype, want) in by_family(&ips) {
            resolves(three, "option", &format!("{rtype} web.option.svc.clusterset.local."), &want).await?;
        }
        for (rtype, want) in by_family(&host) {
            resolves(three, "option", &format!("{rtype} db.option.svc.clusterset.local."), &want).await?;
            let name = "db-0.member1.db.option.svc.clusterset.local.";
            resolves(three, "option", &format!("{rtype} {name}"), &want).await?;
        }
        Outcome::Ok(())
    };
    let outcome = checked.await;
    three.write_corefile(&ours)?;
    resolves(three, "option", "TXT dns-version.clusterset.local.", &["\"1.0.0\""]).await?;
    outcome?;
    for name in ["web", "db"] {
        unexport(one, "option", name).await?;
    }
    Ok(())
}

async fn setup(lab: &Lab, set: &Set) -> Outcome {
    let two = lab.member(2);
    let run = async |flags: &[&str]| {
        let arguments = [&["dns", "setup"], flags].concat();
        let output = set.atoll.must_on(two, &arguments).await?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        anyhow::Ok((text(&output.stdout), text(&output.stderr)))
    };
    let (stub, said) = run(&[]).await?;
    ensure!(said.starts_with("set up:"), "the lab has applied it: {said}");
    let with = two.offered_corefile().await?;
    ensure!(with.contains(&stub) && with.contains("kubernetes cluster.local"), "{with}");

    // Something writes the Corefile anew, as an upgrade of the cluster does.
    let plain = with.replace(&stub, "");
    let map = |text: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": text}})
    };
    two.apply(&[map(&plain)]).await?;
    let (_, said) = run(&[]).await?;
    ensure!(said.starts_with("reverted: it was added at 2"), "{said}");
    ensure!(two.offered_corefile().await? == plain, "looking changes nothing");
    run(&["--apply"]).await?;
    ensure!(two.offered_corefile().await? == with);

    run(&["--undo"]).await?;
    ensure!(two.offered_corefile().await? == plain, "what was there before, to the byte");
    let (_, said) = run(&[]).await?;
    ensure!(said.starts_with("not set up"), "undone is not reverted: {said}");
    run(&["--apply"]).await?;
    ensure!(two.offered_corefile().await? == with);

    // A block that another wrote for the zone is neither overwritten nor doubled.
    two.apply(&[map(&format!("{plain}clusterset.local {{\n    forward . 10.0.0.1\n}}\n"))]).await?;
    let refused = set.atoll.must_on(two, &["dns", "setup", "--apply"]).await;
    ensure!(refused.is_err_and(|error| error.to_string().contains("that atoll did not write")));
    two.apply(&[map(&with)]).await?;
    Ok(())
}
