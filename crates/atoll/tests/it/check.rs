//! `atoll check` on a sandbox of two members: healthy, and with one fault after the other.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

const PATIENCE: Duration = Duration::from_secs(60);

fn report(sandbox: &Sandbox, more: &[&str]) -> (Option<i32>, Value) {
    let contexts = sandbox.path("up/kubeconfig");
    let words = [&["check", "-o", "json", "--cluster-kubeconfig", &contexts][..], more].concat();
    let (code, out, talk) = sandbox.atoll(&words, None);
    let report = serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}{talk}"));
    (code, report)
}

/// Checks until the first cause is this one: code and cluster.
fn until_first(sandbox: &Sandbox, more: &[&str], want: Option<(&str, &str)>) -> (Option<i32>, Value) {
    let begun = Instant::now();
    loop {
        let (code, report) = report(sandbox, more);
        let first = report["causes"].get(0);
        let first = first.map(|one| (one["code"].as_str().unwrap(), one["cluster"].as_str().unwrap_or("-")));
        if first == want {
            return (code, report);
        }
        assert!(begun.elapsed() < PATIENCE, "{want:?} is not first: {report:#}");
        std::thread::sleep(Duration::from_millis(200));
    }
}

#[test]
fn a_healthy_sandbox_has_nothing_wrong_and_each_fault_is_named_first() {
    let sandbox = Sandbox::start();
    let (code, report) = until_first(&sandbox, &[], None);
    assert_eq!((code, &report["ok"], &report["causes"]), (Some(0), &json!(true), &json!([])), "{report:#}");
    let checks = report["checks"].as_array().unwrap();
    let mark = |id: &str| checks.iter().find(|one| one["id"] == id).unwrap()["mark"].clone();
    for id in [
        "hub-api",
        "hub-crds",
        "hub-lease",
        "hub-clock",
        "member-api",
        "member-rights",
        "member-crds",
        "member-properties",
        "member-clock",
    ] {
        assert_eq!(mark(id), "passed", "{id}: {report:#}");
    }
    assert_eq!(mark("dns-led"), "skipped", "a sandbox has no Corefile");
    let begun = Instant::now();
    let plain = sandbox.ok("check --color never");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(
        plain.is_ascii() && plain.contains("\nverdict: ok\n"),
        "with the hub's credentials alone: {plain}"
    );
    let (code, _, talk) = sandbox.run("check --from paris --service web");
    assert_eq!(
        (code, talk.as_str()),
        (Some(2), "error: the hub has no member `paris`\n  hint: its members are member1, member2\n")
    );

    // A service that nobody exports, and a namespace that the importer lacks.
    let (code, _) = until_first(
        &sandbox,
        &["--service", "shop/web", "--from", "member2"],
        Some(("NotExported", "member2")),
    );
    assert_eq!(code, Some(1));
    let service = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}});
    let export = json!({"apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceExport", "metadata": {"name": "web", "namespace": "shop"}});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    sandbox.apply("member1", &[namespace.clone(), service, export]);
    let (code, _) = until_first(&sandbox, &[], Some(("NoNamespace", "member2")));
    assert_eq!(code, Some(0), "a namespace may be left out by intent");
    let (code, _) = until_first(
        &sandbox,
        &["--service", "shop/web", "--from", "member2"],
        Some(("NoNamespace", "member2")),
    );
    assert_eq!(code, Some(1), "a service that was asked for is not reached");
    sandbox.apply("member2", &[namespace]);
    // No pod has the labels that it selects: known without a probe.
    let (code, _) = until_first(
        &sandbox,
        &["--service", "shop/web", "--from", "member2"],
        Some(("SelectorEmpty", "member1")),
    );
    assert_eq!(code, Some(1));
    until_first(&sandbox, &[], None);

    let file = sandbox.kubeconfig("member2");
    sandbox.ok(&format!("delete crd serviceexports.multicluster.x-k8s.io --kubeconfig {file}"));
    let (code, _) = until_first(&sandbox, &[], Some(("KindMissing", "member2")));
    assert_eq!(code, Some(1));
    let up = sandbox.path("up");
    sandbox.ok(&format!("member --dir {up} stop member2"));
    let (code, report) = until_first(&sandbox, &[], Some(("MemberUnreachable", "member2")));
    assert_eq!(code, Some(1));
    let others =
        report["causes"].as_array().unwrap().iter().filter(|one| one["cluster"] == "member1").count();
    assert_eq!(others, 0, "{report:#}");
}
