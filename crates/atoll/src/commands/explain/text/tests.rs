use super::*;
use atoll_api::explain::{Candidate, Header, Port, Source};

/// A service of three clusters: one is well, one has no ready pods, one lacks the namespace.
pub(in super::super) fn sample() -> ServiceExplanation {
    let ready = |ready, not_ready| Endpoints { ready, not_ready, refused: 0 };
    let candidate = |address: &str, code: Code| Candidate {
        address: address.to_owned(),
        slice: "web-abc".to_owned(),
        used: code == Code::Used,
        remark: Remark::of(code),
        detail: None,
    };
    let none = Import {
        present: false,
        service: None,
        endpoints: Endpoints::default(),
        remarks: Vec::new(),
        sources: Vec::new(),
    };
    let source = |cluster: &str, remarks: Vec<Remark>, candidates: Vec<Candidate>| Source {
        cluster: cluster.to_owned(),
        remarks,
        candidates,
        more: false,
    };
    let of_paris = vec![candidate("10.12.0.7:80", Code::Used), candidate("10.12.0.8:80", Code::NotReady)];
    ServiceExplanation {
        header: Header::new("ServiceExplanation", Some("shop"), "web"),
        at: "2026-11-18T10:02:00Z".to_owned(),
        clusterset: "prod".to_owned(),
        verdict: Remark::new(Code::NoNamespace, "oslo does not have the namespace shop."),
        pending: vec![Remark::of(Code::NotPlannedYet)],
        names: vec!["web.shop.svc.clusterset.local".to_owned()],
        kind: Some("ClusterSetIP".to_owned()),
        ports: vec![Port { name: "http".to_owned(), protocol: "TCP".to_owned(), port: 80 }],
        conflicts: vec![Remark::new(Code::PortConflict, "berlin has http 81/TCP; paris wins.")],
        clusters: vec![
            ClusterPart {
                cluster: "berlin".to_owned(),
                member: Vec::new(),
                export: Some(Export {
                    valid: true,
                    precedence: Some(2),
                    endpoints: ready(0, 2),
                    remarks: vec![Remark::of(Code::NoReadyEndpoints)],
                }),
                import: Import {
                    present: true,
                    service: Some("derived-1".to_owned()),
                    endpoints: ready(1, 1),
                    ..none.clone()
                },
                dispatch: None,
            },
            ClusterPart {
                cluster: "oslo".to_owned(),
                member: Vec::new(),
                export: None,
                import: Import {
                    remarks: vec![Remark::new(Code::NoNamespace, "oslo does not have the namespace shop.")],
                    ..none.clone()
                },
                dispatch: None,
            },
            ClusterPart {
                cluster: "paris".to_owned(),
                member: Vec::new(),
                export: Some(Export {
                    valid: true,
                    precedence: Some(1),
                    endpoints: ready(1, 1),
                    remarks: vec![Remark::of(Code::Exported)],
                }),
                import: none.clone(),
                dispatch: None,
            },
            ClusterPart {
                cluster: "tokyo".to_owned(),
                member: vec![Remark::of(Code::MemberSilent).since("2026-11-18T10:01:00Z")],
                export: None,
                import: Import {
                    present: true,
                    service: Some("derived-1".to_owned()),
                    endpoints: ready(1, 1),
                    remarks: vec![Remark::of(Code::Imported)],
                    sources: vec![
                        source("paris", Vec::new(), of_paris),
                        source("berlin", vec![Remark::of(Code::KeptByPolicy)], Vec::new()),
                    ],
                },
                dispatch: None,
            },
        ],
        multi_cluster_service: None,
        template: None,
    }
}

fn shown(answer: &ServiceExplanation, full: bool) -> String {
    text(answer, How { full, paint: Paint::default(), hub: "https://10.0.0.1:6443 (context hub)" })
}

#[test]
fn the_verdict_comes_first_then_a_line_per_cluster() {
    let want = "\
✗ shop/web: NoNamespace: oslo does not have the namespace shop.
    next: Create the namespace in that cluster. Creating it in the hub creates it in every member (unless `--namespace-sync=false`).
  ✓ NotPlannedYet: A change is not planned yet.
  ! PortConflict: berlin has http 81/TCP; paris wins.
      next: Make spec.ports the same in all exporting clusters.
  service     ClusterSetIP, http 80/TCP
  names       web.shop.svc.clusterset.local
  clusterset  prod at 2026-11-18T10:02:00Z, hub https://10.0.0.1:6443 (context hub)
  CLUSTER   EXPORT                           IMPORT
! berlin    exported, 0 ready, 2 not ready   1 ready, 1 not ready
    NoReadyEndpoints: The exported Service has endpoints, and none of them is ready.
    next: Check the readiness probes of its pods.
✗ oslo      -                                not imported (NoNamespace)
    NoNamespace: oslo does not have the namespace shop.
✓ paris     exported, 1 ready, 1 not ready   -
! tokyo     -                                1 ready, 1 not ready
    MemberSilent: The member does not answer at the moment. It counts as lost when its lease ends. (since 2026-11-18T10:01:00Z)
    next: Check the cluster: `atoll clusters`.
    KeptByPolicy: The source is lost. Its endpoints are kept, since the liveness policy is Retain.
    next: Check the cluster: `atoll clusters`. To remove endpoints of lost clusters, set the liveness policy of the export to Withdraw.
";
    assert_eq!(shown(&sample(), false), want);
}

#[test]
fn all_of_a_cluster_has_each_endpoint_and_the_deciding_fact() {
    let tokyo = super::super::narrow::to(sample(), Some("tokyo"), Some("paris")).unwrap();
    let got = shown(&tokyo, true);
    let want = "\
! shop/web: MemberSilent: The member does not answer at the moment. It counts as lost when its lease ends. (since 2026-11-18T10:01:00Z)
    next: Check the cluster: `atoll clusters`.
";
    assert!(got.starts_with(want), "{got}");
    let want = "\
✓ paris
  export: valid, precedence 1, 1 ready, 1 not ready
    ✓ Exported: The service is exported, and other clusters get its endpoints.
  import: none
! tokyo
  ! MemberSilent: The member does not answer at the moment. It counts as lost when its lease ends. (since 2026-11-18T10:01:00Z)
  import: 1 ready, 1 not ready, Service derived-1
    ✓ Imported: The service is imported.
    from paris: 1 of 2 used
      ✓ 10.12.0.7:80   web-abc   used       Used: The endpoint is used.
      ✓ 10.12.0.8:80   web-abc   not used   NotReady: The endpoint is passed on as not ready; clients do not use it.
";
    assert!(got.ends_with(want), "{got}");
}

#[test]
fn what_is_well_has_no_next_step_and_many_clusters_fit_a_screen() {
    let mut answer = sample();
    answer.verdict = Remark::of(Code::Imported);
    (answer.pending, answer.conflicts) = (Vec::new(), Vec::new());
    let well = answer.clusters[2].clone();
    let bad = answer.clusters[1].clone();
    answer.clusters =
        (0..60).map(|number| ClusterPart { cluster: format!("c{number:02}"), ..well.clone() }).collect();
    let got = shown(&answer, false);
    assert!(!got.contains("next: ") && got.lines().count() < 30, "{got}");
    assert!(got.ends_with("  … and 40 more clusters; --all shows them\n"), "{got}");
    // Those with trouble come first, however many are well.
    answer.clusters[59] = ClusterPart { cluster: "c59".to_owned(), ..bad };
    let got = shown(&answer, false);
    let first = got.lines().find(|line| line.starts_with(['✓', '!', '✗']) && line.contains(" c"));
    assert!(first.is_some_and(|line| line.starts_with("✗ c59")), "{got}");
}

#[test]
fn one_cluster_has_its_own_verdict_and_an_unknown_one_is_an_error() {
    let paris = super::super::narrow::to(sample(), Some("paris"), None).unwrap();
    assert_eq!(paris.verdict.code, Code::Exported, "what is wrong elsewhere is not wrong here");
    assert_eq!(paris.clusters.len(), 1);
    let from = super::super::narrow::to(sample(), None, Some("paris")).unwrap();
    let exporters: Vec<&str> =
        from.clusters.iter().filter(|part| part.export.is_some()).map(|part| part.cluster.as_str()).collect();
    assert_eq!(exporters, ["paris"]);
    assert!(
        from.clusters.iter().flat_map(|part| &part.import.sources).all(|source| source.cluster == "paris")
    );
    let error = super::super::narrow::to(sample(), Some("tokio"), None).unwrap_err();
    assert_eq!(error.to_string(), "`tokio` is not a member of the clusterset prod");
}

#[test]
fn every_line_with_trouble_has_a_next_step_and_color_changes_no_word() {
    let answer = sample();
    let plain = shown(&answer, true);
    let colored =
        text(&answer, How { full: true, paint: Paint::COLORED, hub: "https://10.0.0.1:6443 (context hub)" });
    assert!(colored.contains("\u{1b}[31m✗\u{1b}[0m"), "{colored}");
    let mut stripped = colored;
    for code in ["31", "32", "33", "1", "2", "0"] {
        stripped = stripped.replace(&format!("\u{1b}[{code}m"), "");
    }
    assert_eq!(stripped, plain);
    for remark in [
        Code::NoNamespace,
        Code::NoReadyEndpoints,
        Code::PortConflict,
        Code::MemberSilent,
        Code::KeptByPolicy,
    ] {
        assert!(plain.contains(remark.next()), "{remark:?}: {plain}");
    }
}
