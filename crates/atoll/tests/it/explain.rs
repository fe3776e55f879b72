//! `explain`, `status` and `version` against a server that answers as a hub does; and completion, and the plugin.

use std::io::BufRead;
use std::process::{Command, Stdio};

use atoll_api::explain::Metadata;
use atoll_api::explain::{
    ClusterPart, ClusterSetStatus, Endpoints, Export, Header, Import, Remark, ServiceExplanation,
    ServiceLine, ServiceList, Totals,
};
use atoll_api::names::code::Code;
use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, status};

const ROOT: &str = "/apis/explain.atoll.dev/v1alpha1";

fn web(ready: usize, code: Code) -> ServiceExplanation {
    let endpoints = Endpoints { ready, ..Endpoints::default() };
    let import = Import {
        present: false,
        service: None,
        endpoints: Endpoints::default(),
        remarks: Vec::new(),
        sources: Vec::new(),
    };
    ServiceExplanation {
        header: Header::new("ServiceExplanation", Some("shop"), "web"),
        at: format!("2026-11-18T10:00:0{ready}Z"),
        clusterset: "prod".to_owned(),
        verdict: Remark::of(code),
        pending: Vec::new(),
        names: Vec::new(),
        kind: None,
        ports: Vec::new(),
        conflicts: Vec::new(),
        clusters: vec![ClusterPart {
            cluster: "paris".to_owned(),
            member: Vec::new(),
            export: Some(Export {
                valid: true,
                precedence: Some(1),
                endpoints,
                remarks: vec![Remark::of(code)],
            }),
            import,
            dispatch: None,
        }],
        multi_cluster_service: None,
        template: None,
    }
}

fn value(of: impl serde::Serialize) -> Value {
    serde_json::to_value(of).unwrap()
}

/// A hub that knows `shop/web`, and a kubeconfig for it.
fn hub() -> (FakeHub, String) {
    let hub = FakeHub::start();
    let line = |name: &str| ServiceLine {
        metadata: Metadata { name: name.to_owned(), namespace: Some("shop".to_owned()) },
        code: Code::Exported,
        severity: Code::Exported.severity(),
        message: String::new(),
    };
    hub.answer(ROOT, 200, json!({"kind": "APIResourceList"}))
        .answer(&format!("{ROOT}/namespaces/shop/services/web"), 200, value(web(1, Code::Exported)))
        .answer(
            &format!("{ROOT}/services"),
            200,
            value(ServiceList::new(vec![line("web"), line("db")], None)),
        )
        .answer(
            &format!("{ROOT}/namespaces/shop/services"),
            200,
            value(ServiceList::new(vec![line("web"), line("db")], None)),
        );
    let file = hub.kubeconfig("config", &hub.url);
    (hub, file)
}

fn clusterset(code: Code) -> ClusterSetStatus {
    ClusterSetStatus {
        header: Header::new("ClusterSetStatus", None, "this"),
        at: "2026-11-18T10:00:00Z".to_owned(),
        clusterset: "prod".to_owned(),
        leader: "hub-1".to_owned(),
        version: "9.9.9".to_owned(),
        verdict: Remark::of(code),
        totals: Totals::default(),
        members: Vec::new(),
        troubles: Vec::new(),
        more_troubles: false,
    }
}

#[test]
fn every_way_to_write_a_service_leads_to_the_same_explanation() {
    let (hub, file) = hub();
    let env = [("KUBECONFIG", file.as_str())];
    let first = "✓ shop/web: Exported: The service is exported, and other clusters get its endpoints.\n";
    for words in [
        "web",
        "web -n shop",
        "shop/web",
        "web.shop",
        "web.shop.svc.clusterset.local",
        "paris.web.shop.svc.clusterset.local",
    ] {
        let (code, out, talk) = hub.run(&format!("explain {words}"), &env);
        assert_eq!(code, Some(0), "{words}: {talk}");
        assert!(
            out.starts_with(first) && out.contains(&format!("hub {} (context hub", hub.url)),
            "{words}: {out}"
        );
        assert!(!out.contains('\u{1b}'), "no color in a pipe: {out}");
    }
    let (_, out, _) = hub.run("explain web --color always", &env);
    assert!(out.starts_with("\u{1b}[32m✓"), "{out}");
    let (_, out, _) = hub.run("explain web -o json", &env);
    assert_eq!(serde_json::from_str::<Value>(&out).unwrap(), value(web(1, Code::Exported)));
    let (_, out, _) = hub.run("explain web --in paris", &env);
    assert!(out.contains("  export: valid, precedence 1, 1 ready\n"), "{out}");

    let address = json!({"apiVersion": "explain.atoll.dev/v1alpha1", "kind": "AddressExplanation", "metadata": {"name": "10.12.0.7"},
        "verdict": value(Remark::of(Code::OwnedByMember))});
    hub.answer(&format!("{ROOT}/addresses/10.12.0.7"), 200, address);
    let (code, out, talk) = hub.run("explain 10.12.0.7", &env);
    assert_eq!(
        (code, out.as_str()),
        (Some(0), "✓ 10.12.0.7: OwnedByMember: The address is in a range of a member.\n"),
        "{talk}"
    );
}

#[test]
fn what_can_not_be_explained_says_why_and_what_to_do() {
    let (hub, file) = hub();
    let env = [("KUBECONFIG", file.as_str())];
    let (code, _, talk) = hub.run("explain shop/wbe", &env);
    assert_eq!(code, Some(1));
    let want = format!(
        "error: the hub knows no service shop/wbe\n  hub: {} (context hub of {file}, from $KUBECONFIG)\n  hint: did you mean `atoll explain shop/web`?\n",
        hub.url
    );
    assert_eq!(talk, want);

    for (line, says) in [
        (
            "explain web --in tokyo",
            "error: `tokyo` is not a member of the clusterset prod\n  hint: the members are paris\n",
        ),
        (
            "explain shop/web -n other",
            "error: `shop/web` is in the namespace shop, and --namespace is other\n",
        ),
        ("explain a/b/c", "error: \"a/b/c\" is no service, DNS name or address"),
    ] {
        let (code, _, talk) = hub.run(line, &env);
        assert!(code == Some(2) && talk.starts_with(says), "{line}: {code:?} {talk}");
    }

    hub.answer(
        &format!("{ROOT}/namespaces/shop/services/web"),
        403,
        status(403, "Forbidden", "User \"u\" cannot get it"),
    );
    let (_, _, talk) = hub.run("explain web", &env);
    assert!(talk.contains("why: User \"u\" cannot get it (403)\n"), "{talk}");
    assert!(talk.contains("`kubectl create role atoll-explain --verb=get,list --resource=services.explain.atoll.dev -n shop`"), "{talk}");

    hub.answer(
        &format!("{ROOT}/namespaces/shop/services/web"),
        503,
        status(503, "ServiceUnavailable", "no leader"),
    );
    let (_, _, talk) = hub.run("explain web", &env);
    assert!(talk.contains("hint: no hub leads at the moment"), "{talk}");

    let old = FakeHub::start();
    old.answer(
        "/apis/cluster.karmada.io/v1alpha1/clusters",
        200,
        json!({"kind": "ClusterList", "items": []}),
    );
    let file = old.kubeconfig("config", &old.url);
    for line in ["explain web", "status"] {
        let (code, _, talk) = old.run(line, &[("KUBECONFIG", &file)]);
        assert_eq!(code, Some(1), "{talk}");
        assert!(
            talk.contains(
                "why: the hub does not serve explain.atoll.dev/v1alpha1\n  hint: it is older than this atoll"
            ),
            "{talk}"
        );
    }
}

#[test]
fn the_exit_code_of_status_says_whether_something_is_wrong() {
    let (hub, file) = hub();
    let path = format!("{ROOT}/clustersets/this");
    for (code, exit, mark) in
        [(Code::Healthy, 0, '✓'), (Code::NoReadyEndpoints, 1, '!'), (Code::MemberLost, 1, '✗')]
    {
        hub.answer(&path, 200, value(clusterset(code)));
        let (got, out, talk) = hub.run("status", &[("KUBECONFIG", &file)]);
        assert_eq!((got, talk.as_str()), (Some(exit), ""), "{code:?}");
        assert!(out.starts_with(&format!("{mark} clusterset prod: {}: ", code.as_str())), "{out}");
        assert!(out.contains("  leader   hub-1, version 9.9.9, at "), "{out}");
        let (got, out, _) = hub.run("status -o yaml", &[("KUBECONFIG", &file)]);
        assert_eq!((got, out.contains("clusterset: prod\n")), (Some(exit), true), "{out}");
    }
}

#[test]
fn the_versions_of_both_sides_are_printed() {
    let (hub, file) = hub();
    let env = [("KUBECONFIG", file.as_str())];
    let own = env!("CARGO_PKG_VERSION");
    assert_eq!(hub.run("version --client", &[]).1, format!("client  {own}\n"));
    hub.answer("/version", 200, json!({"gitVersion": "v1.36.0"}));
    hub.answer(&format!("{ROOT}/clustersets/this"), 200, value(clusterset(Code::Healthy)));
    let (code, out, _) = hub.run("version", &env);
    assert_eq!(code, Some(0));
    assert_eq!(
        out,
        format!(
            "client  {own}\nhub     9.9.9, led by hub-1, Kubernetes v1.36.0, {} (context hub of {file}, from $KUBECONFIG)\n",
            hub.url
        )
    );
    let (_, out, _) = hub.run("version -o json", &env);
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        json,
        json!({"client": own, "hub": {"url": format!("{}/", hub.url), "version": "9.9.9", "leader": "hub-1", "kubernetes": "v1.36.0"}})
    );
    // The client's own version is printed whatever the hub does.
    let (code, out, talk) = hub.run("version --kubeconfig /nonexistent", &[]);
    assert_eq!((code, out), (Some(2), format!("client  {own}\n")), "{talk}");
}

#[test]
fn changes_are_followed_with_their_times() {
    let (hub, file) = hub();
    let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
    command
        .args(["explain", "web", "--watch", "--kubeconfig", &file])
        .env_clear()
        .env("HOME", hub.home.path());
    let mut child =
        command.stdout(Stdio::piped()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
    let mut lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("✓ paris")), "what is there comes first");
    // The hub is away for a moment, and then something else is true.
    let path = format!("{ROOT}/namespaces/shop/services/web");
    hub.answer(&path, 503, status(503, "ServiceUnavailable", "no leader"));
    hub.answer(&path, 200, value(web(2, Code::Exported)));
    assert_eq!(
        lines.next().as_deref(),
        Some(
            "10:00:02.000  paris: export: 2 ready, 0 not ready, 0 refused, Exported (was 1 ready, 0 not ready, 0 refused, Exported)"
        )
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn names_are_completed_and_a_hub_that_does_not_answer_completes_nothing() {
    let (hub, file) = hub();
    let named = |name: &str| json!({"metadata": {"name": name}});
    hub.answer(
        "/apis/cluster.karmada.io/v1alpha1/clusters",
        200,
        json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [named("paris"), named("tokyo")]}),
    );
    hub.answer(
        "/api/v1/namespaces",
        200,
        json!({"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {}, "items": [named("shop")]}),
    );
    let complete = |words: &[&str], file: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_atoll"));
        let index = words.len().to_string();
        command
            .args(["--", "atoll"])
            .args(words)
            .env_clear()
            .env("HOME", hub.home.path())
            .env("KUBECONFIG", file);
        command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", &index).env("_CLAP_IFS", "\n");
        command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true").stdin(Stdio::null());
        crate::said(command, None)
    };
    for (words, want) in [
        (&["explain", ""][..], &["shop/web", "shop/db"][..]),
        (&["explain", "-n", "shop", "we"], &["web"]),
        (&["explain", "web", "--in", "t"], &["tokyo"]),
        (&["explain", "-n", ""], &["shop"]),
        (&["unjoin", ""], &["paris", "tokyo"]),
        (&["sta"], &["status"]),
    ] {
        let (code, out, talk) = complete(words, &file);
        assert_eq!((code, talk.as_str()), (Some(0), ""), "{words:?}");
        let got: Vec<&str> = out.lines().collect();
        assert!(want.iter().all(|name| got.contains(name)), "{words:?}: {got:?}");
    }
    // One that accepts the connection and is silent.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let file = hub.kubeconfig("silent", &format!("http://{}", silent.local_addr().unwrap()));
    let begun = std::time::Instant::now();
    let (code, out, talk) = complete(&["unjoin", "x"], &file);
    assert_eq!((code, out.trim(), talk.as_str()), (Some(0), "", ""));
    assert!(begun.elapsed() < std::time::Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
fn as_a_plugin_of_kubectl_it_is_called_so_and_takes_kubectls_kubeconfig() {
    let (hub, file) = hub();
    let plugin = hub.home.path().join("kubectl-atoll");
    let completer = hub.home.path().join("kubectl_complete-atoll");
    for link in [&plugin, &completer] {
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_atoll"), link).unwrap();
    }
    let (_, help, _) = hub.run_as(&plugin, "explain --help", &[]);
    assert!(
        help.contains("Usage: kubectl atoll explain")
            && help.contains("\n  kubectl atoll explain web -n shop\n"),
        "{help}"
    );
    assert!(!help.contains("\n  atoll "), "{help}");
    // ~/.kube/config is what kubectl takes, and flags may stand before the command.
    std::fs::create_dir(hub.home.path().join(".kube")).unwrap();
    std::fs::copy(&file, hub.home.path().join(".kube/config")).unwrap();
    hub.kubeconfig(".atoll/kubeconfig", "http://127.0.0.1:1");
    let (code, out, talk) = hub.run_as(&plugin, "--namespace shop explain web", &[]);
    assert!(code == Some(0) && out.starts_with("✓ shop/web: Exported"), "{out}{talk}");
    let (code, out, talk) = hub.run_as(&completer, "explain shop/w", &[]);
    assert_eq!((code, out.as_str(), talk.as_str()), (Some(0), "shop/web\n:4\n", ""));
}
