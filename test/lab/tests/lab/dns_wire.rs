//! `atoll dns` at the wire, by `dig` and `dnsperf`: programs that are not ours.

use crate::dns::namespaces;
use crate::harness::{Outcome, Set, Suite};
use crate::mcs::{SOON, addresses, export, serve, unexport};
use anyhow::{Context, ensure};
use atoll_lab::naming::PORT;
use atoll_lab::{Cluster, Deadline, Lab, until};
use serde_json::json;

pub(crate) fn tests(suite: &mut Suite) {
    suite.dns_test("negative_answers_are_told_apart_at_the_wire", negatives);
    suite.dns_test("case_families_and_edns_at_the_wire", forms);
    suite.dns_test("five_hundred_endpoints_are_cut_over_udp_and_whole_over_tcp", five_hundred);
    suite.dns_test("dnsperf_loses_no_question", dnsperf);
}

/// What `dig` says of one question to `atoll dns` itself.
async fn dig(cluster: &Cluster, question: &str) -> atoll_lab::Result<String> {
    cluster.dig_atoll(&format!("+tries=1 +time=5 {question}")).await
}

async fn served(lab: &Lab, namespace: &str) -> anyhow::Result<Vec<String>> {
    namespaces(lab, namespace).await?;
    serve(lab.member(1), namespace, "web").await?;
    export(lab.member(1), namespace, "web").await?;
    let ips = addresses(lab.member(2), namespace, "web").await?;
    let name = format!("web.{namespace}.svc.clusterset.local");
    until(Deadline::after(SOON, "atoll dns knows the service"), async || {
        let said = dig(lab.member(2), &format!("+short A {name}")).await?;
        Ok(if said.trim() == ips[0] { Ok(()) } else { Err(said) })
    })
    .await?;
    Ok(ips)
}

async fn negatives(lab: &Lab, _: &Set) -> Outcome {
    served(lab, "wire").await?;
    let zone = "clusterset.local";
    for (question, status, negative) in [
        (format!("TXT web.wire.svc.{zone}"), "NOERROR", true),
        (format!("TYPE65280 web.wire.svc.{zone}"), "NOERROR", true),
        (format!("A wire.svc.{zone}"), "NOERROR", true),
        (format!("A none.wire.svc.{zone}"), "NXDOMAIN", true),
        (format!("A member1.web.wire.svc.{zone}"), "NXDOMAIN", true),
        (format!("SRV _none._tcp.web.wire.svc.{zone}"), "NXDOMAIN", true),
        (format!("A web.wire.pod.{zone}"), "NXDOMAIN", true),
        ("A example.org".to_owned(), "REFUSED", false),
        ("-c CH TXT version.bind".to_owned(), "REFUSED", false),
        (format!("+opcode=NOTIFY SOA {zone}"), "NOTIMP", false),
    ] {
        let said = dig(lab.member(2), &question).await?;
        ensure!(said.contains(&format!("status: {status},")), "{question}: {said}");
        ensure!(said.contains("ANSWER: 0,"), "{question}: {said}");
        let soa = said.contains("AUTHORITY SECTION") && said.contains("SOA\tns.dns.clusterset.local.");
        ensure!(soa == negative, "{question}: {said}");
    }
    let transfer = dig(lab.member(2), &format!("AXFR {zone}")).await?;
    ensure!(transfer.contains("Transfer failed"), "{transfer}");
    unexport(lab.member(1), "wire", "web").await
}

async fn forms(lab: &Lab, _: &Set) -> Outcome {
    let ips = served(lab, "forms").await?;
    let two = lab.member(2);
    let said = dig(two, "+noall +question +answer A WeB.fOrMs.SVC.ClusterSet.Local").await?;
    ensure!(said.matches("WeB.fOrMs.SVC.ClusterSet.Local.").count() == 2, "letters keep their case: {said}");
    let six = two.addresses().node().v6;
    let said = two.dig(&format!("@{six} -p {PORT} +short AAAA web.forms.svc.clusterset.local")).await?;
    ensure!(said.trim() == ips[1], "over IPv6: {said}");
    let said = dig(two, "+noedns A web.forms.svc.clusterset.local").await?;
    ensure!(!said.contains("OPT PSEUDOSECTION") && !said.contains("WARNING: EDNS"), "{said}");
    let said = dig(two, "+edns=1 +noednsneg A web.forms.svc.clusterset.local").await?;
    ensure!(said.contains("status: BADVERS"), "{said}");
    let said = dig(two, "+tcp +short A web.forms.svc.clusterset.local").await?;
    ensure!(said.trim() == ips[0], "{said}");
    let said = dig(two, "+noall +answer A web.forms.svc.clusterset.local").await?;
    ensure!(said.split_whitespace().nth(1) == Some("5"), "the time to live: {said}");
    unexport(lab.member(1), "forms", "web").await
}

async fn five_hundred(lab: &Lab, _: &Set) -> Outcome {
    namespaces(lab, "crowd").await?;
    let one = lab.member(1);
    let endpoints: Vec<_> = (0..500)
        .map(|host| json!({"addresses": [format!("10.11.{}.{}", 1 + host / 250, 1 + host % 250)]}))
        .collect();
    one.apply(&[
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "crowd"},
            "spec": {"clusterIP": "None", "ports": [{"name": "http", "port": 80}]},
        }),
        json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {"name": "web", "namespace": "crowd", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": endpoints, "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        }),
    ])
    .await?;
    export(one, "crowd", "web").await?;
    let (two, ask) = (lab.member(2), "A web.crowd.svc.clusterset.local");
    until(Deadline::after(SOON, "all five hundred are there"), async || {
        let said = dig(two, &format!("+tcp +short {ask}")).await?;
        let count = said.lines().count();
        Ok(if count == 500 { Ok(()) } else { Err(count.to_string()) })
    })
    .await?;
    for (flags, at_most) in [("+noedns", 512), ("+bufsize=512", 512), ("+bufsize=4096", 1232)] {
        let said = dig(two, &format!("+ignore {flags} {ask}")).await?;
        let head = said.lines().find(|line| line.contains("flags:")).context("a header")?;
        ensure!(head.contains(" tc"), "{flags}: {head}");
        let size = said.lines().find_map(|line| line.strip_prefix(";; MSG SIZE  rcvd: "));
        let size: u32 = size.context("a size")?.trim().parse()?;
        ensure!(size <= at_most, "{flags}: {size} bytes");
    }
    // As a client does it: over UDP, cut, and again over TCP; then the same through CoreDNS.
    let said = dig(two, &format!("+short {ask}")).await?;
    ensure!(said.lines().count() == 500, "{}", said.lines().count());
    let through = two.dig(&format!("@{} +short {ask}", two.addresses().node().v4)).await?;
    ensure!(through.lines().count() == 500, "{}", through.lines().count());
    unexport(one, "crowd", "web").await
}

async fn dnsperf(lab: &Lab, _: &Set) -> Outcome {
    served(lab, "perf").await?;
    let two = lab.member(2);
    let questions = two.dir().join("questions");
    std::fs::write(
        &questions,
        "web.perf.svc.clusterset.local A\nweb.perf.svc.clusterset.local AAAA\nweb.perf.svc.clusterset.local SRV\n",
    )?;
    let mut command = two.machine().command("dnsperf");
    command.args(["-s", &two.addresses().node().v4.to_string(), "-p", &PORT.to_string()]);
    // A thousand rounds, not as fast as possible: a busy machine must not make it lose packets.
    command.arg("-d").arg(&questions).args(["-n", "1000", "-Q", "2000", "-c", "4"]);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: String = said.split_whitespace().collect::<Vec<_>>().join(" ");
    ensure!(words.contains("Queries completed: 3000 (100.00%)"), "{said}");
    ensure!(words.contains("Response codes: NOERROR 3000 (100.00%)"), "{said}");
    unexport(lab.member(1), "perf", "web").await
}
