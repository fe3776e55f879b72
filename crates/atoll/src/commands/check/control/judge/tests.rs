use std::collections::BTreeSet;

use serde_json::json;

use super::super::facts::LeaseFact;
use super::*;
use crate::commands::check::path::facts::Dns;
use crate::commands::check::report::Mark;

const VERSION: &str = "1.2.3";

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn after(seconds: i64) -> Timestamp {
    Timestamp::from_second(now().as_second() + seconds).unwrap()
}

fn api() -> ApiFact {
    ApiFact { version: "v1.36.0".to_owned(), ahead: Some(1) }
}

fn cluster(name: &str, pods: &str, ready: &str, reason: &str) -> Cluster {
    serde_json::from_value(json!({
        "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
        "metadata": {"name": name, "annotations": {"atoll.dev/pod-cidrs": pods}},
        "spec": {"syncMode": "Push"},
        "status": {"conditions": [{"type": "Ready", "status": ready, "reason": reason, "message": "said so",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]},
    }))
    .unwrap()
}

fn hub() -> HubFacts {
    let lease = LeaseFact { holder: Some("hub-1".to_owned()), renewed: Some(after(-3)), seconds: 10 };
    HubFacts {
        at: now(),
        api: Ok(api()),
        missing: Vec::new(),
        lease: Ok(lease),
        hub_version: Some(VERSION.to_owned()),
        status: None,
        clusters: Ok(Vec::new()),
        secrets: Ok(Vec::new()),
        explicit: BTreeSet::new(),
    }
}

fn member(name: &str, pods: &str) -> MemberFacts {
    let properties = [(property::CLUSTER_ID, name), (property::CLUSTERSET, "set")];
    MemberFacts {
        name: name.to_owned(),
        cluster: cluster(name, pods, "True", "ClusterReady"),
        no_way: None,
        api: Ok(api()),
        lacks: Ok(Vec::new()),
        crds: vec![("serviceexports.multicluster.x-k8s.io".to_owned(), Crd::Fine)],
        token_ends: Ok(Some(after(30 * 24 * 3600))),
        properties: Ok(properties.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        exports: vec![("shop".to_owned(), "web".to_owned())],
        namespaces: Some(["shop".to_owned(), "default".to_owned()].into()),
        dns: Dns { led: Led::InPlace, servers: Some(true) },
    }
}

type Change = fn(&mut HubFacts, &mut Vec<MemberFacts>);

fn checked(change: Change) -> Vec<Check> {
    let mut hub = hub();
    let mut members = vec![member("paris", "10.1.0.0/16"), member("tokyo", "10.2.0.0/16")];
    change(&mut hub, &mut members);
    let all: Vec<Cluster> = members.iter().map(|one| one.cluster.clone()).collect();
    judge(&hub, &all, &members, VERSION)
}

/// Check, code and cluster of everything that is not fine.
fn found(change: Change) -> Vec<String> {
    let checks = checked(change);
    let each = checks.iter().flat_map(|check| check.findings.iter().map(move |one| (check, one)));
    each.map(|(check, one)| format!("{} {} {}", check.id, one.code, one.cluster.as_deref().unwrap_or("-")))
        .collect()
}

#[test]
fn a_healthy_clusterset_has_nothing_wrong() {
    let checks = checked(|_, _| ());
    assert!(checks.iter().all(|check| check.mark == Mark::Passed && check.findings.is_empty()), "{checks:?}");
    let ids: Vec<&str> = checks.iter().map(|check| check.id).collect();
    assert_eq!(ids.len(), ids.iter().collect::<BTreeSet<_>>().len(), "{ids:?}");
}

#[test]
fn each_fault_has_its_code_and_its_cluster() {
    let cases: [(Change, &[&str]); 21] = [
        (
            |hub, _| hub.missing = vec!["clusters (cluster.karmada.io/v1alpha1)".to_owned()],
            &["hub-crds HubKindMissing -"],
        ),
        (|hub, _| hub.lease = Err(Trouble::Missing), &["hub-lease NoLeader -"]),
        (
            |hub, _| hub.lease = Err(Trouble::Forbidden("no".to_owned())),
            &["hub-rights NotChecked -", "hub-lease NotChecked -"],
        ),
        (|hub, _| hub.lease.as_mut().unwrap().holder = None, &["hub-lease NoLeader -"]),
        (|hub, _| hub.lease.as_mut().unwrap().renewed = Some(after(-60)), &["hub-lease NoLeader -"]),
        (
            |hub, _| hub.api.as_mut().unwrap().ahead = Some(3600),
            &["hub-lease NoLeader -", "hub-clock ClockSkew -"],
        ),
        (|hub, _| hub.hub_version = Some("1.2.2".to_owned()), &["hub-version VersionsDiffer -"]),
        (
            |_, all| all[0].cluster = cluster("paris", "", "False", "ClusterNotReachable"),
            &["member-ready MemberLost paris"],
        ),
        (
            |_, all| all[0].cluster = cluster("paris", "", "False", "IdentityMismatch"),
            &["member-ready MemberBlocked paris"],
        ),
        (
            |_, all| {
                all[1].api = Err(Trouble::Silent("no route".to_owned()));
                all[1].lacks = Err(Trouble::Silent("no route".to_owned()));
                all[1].crds = vec![("a".to_owned(), Crd::Unknown)];
                all[1].properties = Err(Trouble::Silent("no route".to_owned()));
                all[1].namespaces = None;
                all[1].dns = Dns { led: Led::Unknown("no route".to_owned()), servers: None };
            },
            &[
                "member-api MemberUnreachable tokyo",
                "member-rights NotChecked tokyo",
                "member-crds NotChecked tokyo",
                "member-properties NotChecked tokyo",
                "member-clock NotChecked tokyo",
                "member-namespaces NotChecked tokyo",
                "dns-led NotChecked tokyo",
                "dns-servers NotChecked tokyo",
            ],
        ),
        (|_, all| all[1].lacks = Ok(vec!["list services".to_owned()]), &["member-rights Forbidden tokyo"]),
        (
            |_, all| all[1].crds[0].1 = Crd::Missing("is not installed".to_owned()),
            &["member-crds KindMissing tokyo"],
        ),
        (|_, all| all[1].crds[0].1 = Crd::Older, &["member-crds CrdOutdated tokyo"]),
        (
            |_, all| all[1].properties = Ok(BTreeMap::new()),
            &["member-properties OtherClusterProperty tokyo", "member-properties OtherClusterProperty tokyo"],
        ),
        (|_, all| all[1].token_ends = Ok(Some(after(-1))), &["member-token CredentialsEnded tokyo"]),
        (|_, all| all[1].token_ends = Ok(Some(after(600))), &["member-token CredentialsEndSoon tokyo"]),
        (|_, all| all[1].api.as_mut().unwrap().ahead = Some(-30), &["member-clock ClockSkew tokyo"]),
        (
            |_, all| all[1].cluster = cluster("tokyo", "10.1.128.0/17", "True", "ClusterReady"),
            &["member-networks NetworksOverlap paris"],
        ),
        (|_, all| all[1].namespaces = Some(BTreeSet::new()), &["member-namespaces NoNamespace tokyo"]),
        (|_, all| all[1].dns.led = Led::Reverted("then".to_owned()), &["dns-led DnsNotLed tokyo"]),
        (|_, all| all[1].dns.servers = Some(false), &["dns-servers DnsServerDown tokyo"]),
    ];
    for (i, (change, want)) in cases.into_iter().enumerate() {
        assert_eq!(found(change), want, "case {i}");
    }
}

#[test]
fn nothing_is_fine_of_members_that_are_not_known() {
    let silent: Change = |hub, all| {
        hub.api = Err(Trouble::Silent("no route".to_owned()));
        hub.clusters = Err(Trouble::Silent("no route".to_owned()));
        all.clear();
    };
    let refused: Change = |hub, all| {
        hub.api = Err(Trouble::Forbidden("401".to_owned()));
        hub.clusters = Err(Trouble::Forbidden("401".to_owned()));
        all.clear();
    };
    for (change, want) in [(silent, Code::HubUnreachable), (refused, Code::CredentialsEnded)] {
        let checks = checked(change);
        let first = &checks[0].findings[0];
        assert_eq!((checks[0].id, first.code), ("hub-api", want.as_str()));
        assert_eq!(first.next.contains("get a new kubeconfig"), want == Code::CredentialsEnded, "{first:?}");
        assert!(checks.iter().skip(1).all(|check| check.mark == Mark::Skipped), "{checks:?}");
        assert!(checks.len() > 10, "{checks:?}");
    }
}

#[test]
fn what_was_chosen_is_not_wrong() {
    // A namespace whose imports are explicit, and a cluster that uses no DNS of ours.
    assert!(
        found(|hub, all| {
            hub.explicit = ["shop".to_owned()].into();
            all[1].namespaces = Some(BTreeSet::new());
        })
        .is_empty()
    );
    let checks = checked(|_, all| all[1].dns = Dns { led: Led::Absent, servers: None });
    assert!(checks.iter().all(|check| check.mark <= Mark::Skipped), "{checks:?}");
}

#[test]
fn every_check_has_its_place_in_the_document() {
    let document = include_str!("../../../../../../../docs/check.md");
    for check in checked(|_, _| ()) {
        assert!(
            document.contains(&format!("\n### {}\n", check.id)),
            "docs/check.md has no heading `{}`",
            check.id
        );
    }
    assert!(document.contains("\n### data-path\n"));
}
