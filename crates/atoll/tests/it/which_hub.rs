//! Which hub a command asks, and what it says of it.

use serde_json::{Value, json};

use crate::fake_hub::{FakeHub, status};

const CLUSTERS: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";

fn list(names: &[&str]) -> Value {
    let items: Vec<Value> = names
        .iter()
        .map(|name| {
            json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name},
                "spec": {"syncMode": "Push"}})
        })
        .collect();
    json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "ClusterList", "metadata": {}, "items": items})
}

#[test]
fn the_exported_kubeconfig_comes_before_the_data_directory_and_stderr_says_so() {
    let (exported, own) = (FakeHub::start(), FakeHub::start());
    exported.answer(CLUSTERS, 200, list(&["paris"]));
    own.answer(CLUSTERS, 200, list(&["tokyo"]));
    let file = exported.kubeconfig("exported.yaml", &exported.url);
    let in_dir = exported.kubeconfig(".atoll/kubeconfig", &own.url);

    let (code, out, talk) = exported.run("clusters", &[("KUBECONFIG", &file)]);
    assert_eq!(code, Some(0), "{talk}");
    assert!(out.contains("paris") && !out.contains("tokyo"), "{out}");
    assert_eq!(
        talk,
        format!("hub: {} (context hub of {file}, from $KUBECONFIG); not that of {in_dir}\n", exported.url)
    );
    // Without it, the data directory's is meant; a flag comes before both, and then there is no doubt.
    let (_, out, talk) = exported.run("clusters", &[]);
    assert!(out.contains("tokyo") && talk.is_empty(), "{out}{talk}");
    let env = [("KUBECONFIG", file.as_str()), ("ATOLL_DATA_DIR", "/nonexistent")];
    let (_, out, talk) = exported.run(&format!("clusters --kubeconfig {in_dir}"), &env);
    assert!(out.contains("tokyo") && talk.is_empty(), "{out}{talk}");
}

#[test]
fn a_hub_that_can_not_be_asked_is_named_with_the_next_step() {
    let hub = FakeHub::start();
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let file = hub.kubeconfig("closed.yaml", &format!("http://{closed}"));
    let (code, _, talk) = hub.run("clusters", &[("KUBECONFIG", &file)]);
    let want = format!(
        "error: cannot list members
  hub: http://{closed} (context hub of {file}, from $KUBECONFIG)
  why: Connection refused (os error 111)
  hint: check that the hub runs and that this host reaches it; to ask another hub, use --kubeconfig and --context
"
    );
    assert_eq!((code, talk), (Some(1), want));

    hub.kubeconfig(".atoll/up/kubeconfig", &format!("http://{closed}"));
    let (_, _, talk) = hub.run("clusters", &[]);
    assert!(talk.ends_with("hint: the sandbox does not run: start it with `atoll up`\n"), "{talk}");

    let file = hub.kubeconfig("open.yaml", &hub.url);
    hub.answer(CLUSTERS, 401, status(401, "Unauthorized", "Unauthorized"));
    let (_, _, talk) = hub.run("cluster label paris a=b", &[("KUBECONFIG", &file)]);
    assert!(talk.contains(&format!("hub: {} (context hub of {file}", hub.url)), "{talk}");
}

#[test]
fn an_api_that_is_no_hub_is_told_from_a_hub_without_members() {
    let hub = FakeHub::start();
    let file = hub.kubeconfig("config", &hub.url);
    let env = [("KUBECONFIG", file.as_str())];
    let (code, _, talk) = hub.run("clusters", &env);
    assert_eq!(code, Some(1));
    assert!(
        talk.starts_with("error: this API is not that of a hub\n")
            && talk.contains("clusters.cluster.karmada.io"),
        "{talk}"
    );
    hub.answer(
        "/apis/about.k8s.io/v1beta1/clusterproperties/cluster.clusterset.k8s.io",
        200,
        json!({"spec": {"value": "paris"}}),
    );
    let (_, _, talk) = hub.run("clusters", &env);
    assert!(
        talk.contains("why: it is that of a cluster that is a member of a clusterset, as `paris`"),
        "{talk}"
    );
    hub.answer(CLUSTERS, 200, list(&[]));
    let (code, out, talk) = hub.run("clusters", &env);
    assert_eq!((code, out.as_str()), (Some(0), ""));
    assert!(talk.starts_with(&format!("No members found in the hub {} (context hub", hub.url)), "{talk}");
}

#[test]
fn a_member_of_the_sandbox_is_not_taken_for_its_hub() {
    let hub = FakeHub::start();
    let file = hub.kubeconfig("up/members/member1/kubeconfig", &hub.url);
    std::fs::write(hub.home.path().join("up/state.json"), "{}").unwrap();
    let (code, _, talk) = hub.run("clusters", &[("KUBECONFIG", &file)]);
    assert_eq!(code, Some(2), "{talk}");
    assert!(
        talk.starts_with("error: `member1` is a member of the sandbox, not its hub\n  hub: context hub of "),
        "{talk}"
    );
}

#[test]
fn a_context_that_the_sandbox_does_not_have_is_no_member_of_it() {
    let hub = FakeHub::start();
    let file = hub.kubeconfig("up/kubeconfig", &hub.url);
    std::fs::write(hub.home.path().join("up/state.json"), "{}").unwrap();
    let (code, _, talk) = hub.run("status --context nope", &[("KUBECONFIG", &file)]);
    assert_eq!(code, Some(2), "{talk}");
    assert!(talk.contains("  why: there is no context `nope` in it; there are hub\n"), "{talk}");
}

#[test]
fn no_command_prints_the_text_of_a_kubeconfig() {
    let hub = FakeHub::start();
    let good = hub.kubeconfig("good.yaml", &hub.url);
    hub.answer(CLUSTERS, 200, list(&["paris"]));
    let bad = hub.kubeconfig("bad.yaml", &hub.url);
    std::fs::write(&bad, "users:\n- name: a\n  user:\n    token: SECRET\n   bad: [\n").unwrap();
    for (line, env) in [
        (format!("status --kubeconfig {bad}"), None),
        (format!("get pods --kubeconfig {bad}"), None),
        (format!("get pods -C paris --kubeconfig {bad}"), None),
        ("clusters".to_owned(), Some(("KUBECONFIG", bad.as_str()))),
        ("get pods".to_owned(), Some(("KUBECONFIG", bad.as_str()))),
        ("get pods".to_owned(), Some(("KUBECONFIG", &format!("{bad}:{good}")))),
        ("clusters".to_owned(), Some(("KUBECONFIG", &format!("{bad}:{good}")))),
        (format!("check --kubeconfig {good} --cluster-kubeconfig {bad}"), None),
        (format!("join tokyo --kubeconfig {good} --cluster-kubeconfig {bad}"), None),
        (format!("join tokyo --kubeconfig {bad} --cluster-kubeconfig {good}"), None),
        (format!("lb --hub {bad}"), None),
    ] {
        let (code, out, talk) = hub.run(&line, &env.into_iter().collect::<Vec<_>>());
        assert!(code != Some(0) && !talk.contains("SECRET") && !out.contains("SECRET"), "{line}: {talk}");
        assert!(talk.contains("it is not a valid kubeconfig: see line 5 column "), "{line}: {talk}");
    }
}

#[test]
fn without_any_kubeconfig_no_hub_was_found() {
    let hub = FakeHub::start();
    let (code, _, talk) = hub.run("status", &[]);
    assert_eq!(code, Some(1), "{talk}");
    assert!(
        talk.contains(
            ".kube/config, and this is not a pod of a cluster\n  hint: no hub was found on this host"
        ),
        "{talk}"
    );
}

#[test]
fn a_program_that_gives_no_credentials_is_named() {
    let hub = FakeHub::start();
    let file = hub.kubeconfig("config", &hub.url);
    let mut config: Value = serde_saphyr::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    config["users"][0]["user"] = json!({"exec": {
        "apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/login", "interactiveMode": "Never"}});
    std::fs::write(&file, config.to_string()).unwrap();
    let (code, _, talk) = hub.run("clusters", &[("KUBECONFIG", &file)]);
    assert_eq!(code, Some(1), "{talk}");
    assert!(
        talk.contains("  hub: http://") && talk.contains("program `/nonexistent/login`: run it by hand"),
        "{talk}"
    );
}
