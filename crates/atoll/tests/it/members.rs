//! What a person does with members through their hub: looks into them, labels and taints them, promotes what runs there. On a
//! sandbox of two members, which are reached with the hub's credentials because KUBECONFIG leads to the hub alone.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

fn deployment(name: &str, script: &str) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": {
            "metadata": {"labels": {"app": name}},
            "spec": {"containers": [{"name": "main", "image": "process:sh", "args": ["-c", script]}]}}}})
}

#[test]
fn members_are_looked_into_with_the_credentials_of_the_hub() {
    let sandbox = Sandbox::start();
    let web = deployment("web", "echo one; echo two; exec sleep 1000");
    sandbox.apply("member1", std::slice::from_ref(&web));
    sandbox.apply("member2", &[web]);

    // Several clusters side by side, and one alone.
    let ready = |out: &str| out.matches("1/1").count() == 2;
    let table = sandbox.until("get -C member1,member2 deployments", ready);
    let words: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().take(3).collect()).collect();
    assert_eq!(words, [["CLUSTER", "NAME", "READY"], ["member1", "web", "1/1"], ["member2", "web", "1/1"]]);
    let both = sandbox.ok("get -C member1 -C member2 deployments,services -o name");
    let want = "member1 deployment.apps/web\nmember2 deployment.apps/web\nmember1 service/kubernetes\nmember2 service/kubernetes\n";
    assert_eq!(both, want);
    assert_eq!(sandbox.ok("get -C all deployments,services -o name"), want);
    assert_eq!(sandbox.ok("clusters -o name"), "member1\nmember2\n");
    let json: Value =
        serde_json::from_str(&sandbox.ok("get -C member1,member2 deployment web -o json")).unwrap();
    let from = |index: usize| &json["items"][index]["metadata"]["annotations"]["resource.karmada.io/cached-from-cluster"];
    assert_eq!((from(0), from(1)), (&"member1".into(), &"member2".into()));
    assert_eq!(sandbox.ok("get -C member1 deployment -o name"), "deployment.apps/web\n");
    assert!(sandbox.run("get deployments").2.starts_with("No resources found"), "the hub has none");
    let (code, _, talk) = sandbox.run("get -C member1,member2 pods -w");
    assert_eq!((code, talk.lines().next()), (Some(2), Some("error: only one cluster can be watched")));

    let told = sandbox.ok("describe -C member1 deployment/web");
    assert!(told.starts_with("Name:         web\nNamespace:    default\nCluster:      member1\n"), "{told}");
    assert!(
        told.contains("Kind:         Deployment (apps/v1)\n") && told.contains("\n  replicas: 1\n"),
        "{told}"
    );
    assert!(told.contains("Conditions:\n  TYPE ") && told.contains("\nEvents:"), "{told}");

    // What a container prints, and a command in it.
    sandbox.until("logs -C member1 deployment/web", |out| out == "one\ntwo\n");
    assert_eq!(sandbox.ok("logs -C member2 deploy/web --tail 1 -c main"), "two\n");
    let (code, _, talk) = sandbox.run("logs -C member1 deployment/web -c other");
    assert_eq!((code, talk.contains("hint: valid containers are main")), (Some(2), true), "{talk}");
    assert_eq!(sandbox.ok("exec -C member1 deployment/web -- echo hello"), "hello\n");
    let script =
        ["exec", "-C", "member1", "-i", "deployment/web", "--", "sh", "-c", "cat; echo bad >&2; exit 3"];
    let long = "0123456789abcdef".repeat(20_000);
    let (code, out, talk) = sandbox.atoll(&script, Some(&long));
    assert_eq!((code, talk.as_str()), (Some(3), "bad\nerror: command terminated with exit code 3\n"));
    assert!(out == long, "{} of {} bytes came back", out.len(), long.len());
    let (code, _, talk) = sandbox.run("exec -C member1 deployment/web -- /nonexistent/program");
    assert_eq!((code, talk.contains("/nonexistent/program")), (Some(126), true), "{talk}");

    refusals(&sandbox);
}

/// What may not be done is told with what to do about it.
fn refusals(sandbox: &Sandbox) {
    let (code, _, talk) = sandbox.run("get -C paris pods");
    // The second line names the hub.
    assert!(talk.contains("\n  hub: https://127.") && talk.contains(&sandbox.kubeconfig("hub")), "{talk}");
    let talk: String = talk.split_inclusive('\n').filter(|line| !line.starts_with("  hub: ")).collect();
    let want = "\
error: cannot reach `paris`: the hub has no such member
  why: its members are member1, member2
  hint: list the members with `atoll clusters`; select the hub with --kubeconfig and --context
";
    assert_eq!((code, talk.as_str()), (Some(2), want));

    // Another join takes rights away only where that is said.
    let file = sandbox.kubeconfig("member2");
    let again = format!("join member2 --cluster-kubeconfig {file}");
    let (code, _, talk) = sandbox.run(&again);
    assert_eq!(code, Some(0), "{talk}");
    assert!(talk.contains("\nkept from the earlier join: *; ") && talk.contains("\nnext: `atoll "), "{talk}");
    assert_eq!(sandbox.ok("get -C member2 deployments -o name"), "deployment.apps/web\n", "it may still");
    let (code, _, talk) = sandbox.run(&format!("{again} --revoke-propagation=secrets"));
    assert_eq!((code, talk.contains("granted all kinds")), (Some(2), true), "{talk}");
    let (_, _, talk) = sandbox.run(&format!("{again} --revoke-propagation --allow-propagation=configmaps"));
    assert!(
        talk.contains("\nrevoked: the hub may no longer write objects of these kinds in `member2`: *\n"),
        "{talk}"
    );
    let (_, _, talk) = sandbox.run(&again);
    assert!(talk.contains("\nkept from the earlier join: configmaps; "), "{talk}");
    let (code, out, talk) = sandbox.run("get -C member1,member2 deployments -o name");
    assert_eq!((code, out.as_str()), (Some(1), "member1 deployment.apps/web\n"), "{talk}");
    assert!(talk.starts_with("error: member2: cannot list deployments\n  why: "), "{talk}");
    assert!(
        talk.contains("atoll join member2 --cluster-kubeconfig FILE --allow-propagation=deployments.apps`"),
        "{talk}"
    );
    let (_, _, talk) = sandbox.run("exec -C member2 web-0 -- true");
    assert!(talk.contains("--allow-propagation=pods,pods/exec`"), "{talk}");

    // A user who may look at members, and not at Secrets.
    let role = |rules: Value| json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "looks"}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "looks"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"},
        "subjects": [{"kind": "ServiceAccount", "name": "looks", "namespace": "default"}]});
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "looks", "namespace": "default"}});
    let may =
        role(json!([{"apiGroups": ["cluster.karmada.io"], "resources": ["clusters"], "verbs": ["get"]}]));
    sandbox.apply("hub", &[may, binding, account]);
    let limited = limited_kubeconfig(sandbox);
    let (code, _, talk) = sandbox.run(&format!("get -C member1 pods --kubeconfig {limited}"));
    assert_eq!(code, Some(1), "{talk}");
    assert!(
        talk.starts_with(
            "error: cannot reach `member1`: this user may not read the hub's credentials for this member\n  hub: "
        ),
        "{talk}"
    );
    assert!(
        talk.contains(
            "  hint: ask an administrator of the hub for the right to get the Secret `member1` in the namespace `atoll-system`"
        ),
        "{talk}"
    );
}

/// A kubeconfig of the hub for the service account `looks`.
fn limited_kubeconfig(sandbox: &Sandbox) -> String {
    let text = std::fs::read_to_string(sandbox.kubeconfig("hub")).unwrap();
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let token = runtime.block_on(async {
        let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let read = kube::Config::from_custom_kubeconfig(read, &Default::default()).await.unwrap();
        let client = kube::Client::try_from(read).unwrap();
        let accounts = kube::Api::<k8s_openapi::api::core::v1::ServiceAccount>::namespaced(client, "default");
        let request = k8s_openapi::api::authentication::v1::TokenRequest::default();
        let made = accounts.create_token_request("looks", &Default::default(), &request).await.unwrap();
        made.status.unwrap().token.unwrap()
    });
    config["users"][0]["user"] = json!({ "token": token });
    let path = sandbox.path("limited.kubeconfig");
    std::fs::write(&path, config.to_string()).unwrap();
    path
}

#[test]
fn labels_attract_taints_drive_out_and_what_runs_is_promoted() {
    let sandbox = Sandbox::start();
    let policy = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "settings", "namespace": "default"},
        "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"}],
            "placement": {"clusterAffinity": {"labelSelector": {"matchLabels": {"tier": "gold"}}}}}});
    let settings = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "default"}, "data": {"a": "b"}});
    sandbox.apply("hub", &[policy, settings]);

    assert_eq!(
        sandbox.ok("cluster label member1 tier=gold --dry-run"),
        "cluster/member1 labelled (server dry run)\n"
    );
    assert_eq!(sandbox.ok("cluster label member1 tier=gold"), "cluster/member1 labelled\n");
    assert_eq!(sandbox.ok("cluster label member1 tier=gold"), "cluster/member1 unchanged\n");
    let has = |name: &'static str| move |out: &str| out.contains(name);
    sandbox.until("get -C member1 configmaps -o name", has("configmap/settings\n"));
    assert_eq!(sandbox.ok("cluster taint member1 maintenance:NoExecute"), "cluster/member1 tainted\n");
    sandbox.until("get -C member1 configmaps -o name", |out| !out.contains("settings"));
    assert_eq!(sandbox.ok("cluster taint member1 maintenance:NoExecute-"), "cluster/member1 untainted\n");
    sandbox.until("get -C member1 configmaps -o name", has("configmap/settings\n"));
    let shown: Value =
        serde_json::from_str(&sandbox.ok("cluster taint member1 a=1:NoSchedule b:NoExecute -o json"))
            .unwrap();
    let want =
        json!([{"key": "a", "value": "1", "effect": "NoSchedule"}, {"key": "b", "effect": "NoExecute"}]);
    assert_eq!(shown["spec"]["taints"], want);
    sandbox.ok("cluster taint member1 a- b-");
    assert!(sandbox.ok("cluster list").contains("member1"));
    for (line, code, says) in [
        (
            "cluster label member1 tier=silver",
            1,
            "error: the member already has the label tier=gold\n  hint: use --overwrite",
        ),
        (
            "cluster taint member1 x:Sometimes",
            2,
            "error: invalid effect `Sometimes` in `x:Sometimes`\n  hint: ",
        ),
        ("cluster label paris a=b", 1, "error: cannot update member `paris`\n  hub: "),
        (
            "promote deployment none -C member1",
            1,
            "error: cannot get deployment.apps/none in `member1`\n  why: ",
        ),
    ] {
        let (got, _, talk) = sandbox.run(line);
        assert!(got == Some(code) && talk.starts_with(says), "{line}: {got:?} {talk}");
    }
    promotion(&sandbox);
}

/// An object without what counts its states, and without our marks. (An annotation of a Deployment raises its generation.)
fn own_parts(text: &str) -> Value {
    let mut object: Value = serde_json::from_str(text).unwrap();
    object["status"].as_object_mut().unwrap().remove("observedGeneration");
    let meta = object["metadata"].as_object_mut().unwrap();
    assert!(!meta["uid"].as_str().unwrap().is_empty());
    meta.remove("resourceVersion");
    meta.remove("generation");
    for (map, mark) in [("labels", "atoll.dev/propagated-by"), ("annotations", "atoll.dev/adopted")] {
        if let Some(Value::Object(all)) = meta.get_mut(map) {
            all.remove(mark);
            if all.is_empty() {
                meta.remove(map);
            }
        }
    }
    object
}

fn promotion(sandbox: &Sandbox) {
    sandbox.apply("member2", &[deployment("legacy", "exec sleep 1000")]);
    let ask = "get -C member2 deployment legacy -o json";
    // Once its pod runs and its controller has seen that, nobody but us would change it.
    let settled = |out: &str| {
        let found: Value = serde_json::from_str(out).unwrap();
        found["status"]["availableReplicas"] == 1
    };
    let before = own_parts(&sandbox.until(ask, settled));
    let pods = sandbox.ok("get -C member2 pods -l app=legacy -o name");

    let shown = sandbox.ok("promote deployment legacy -C member2 --dry-run");
    assert!(shown.contains("kind: PropagationPolicy") && shown.contains("\n---\n"), "{shown}");
    assert!(shown.contains("conflictResolution: Overwrite") && !shown.contains("uid:"), "{shown}");
    assert!(sandbox.run("get deployments").2.starts_with("No resources found"), "nothing was made");

    let made =
        "propagationpolicy.policy.karmada.io/legacy-deployment created\ndeployment.apps/legacy created\n";
    assert_eq!(sandbox.ok("promote deployment legacy -C member2"), made);
    sandbox.until("get resourcebinding legacy-deployment -o conditions", |out| {
        out.lines().any(|line| line.starts_with("FullyApplied") && line.contains("True"))
    });
    let marked = |out: &str| out.contains("atoll.dev/adopted") && out.contains("atoll.dev/propagated-by");
    let after = own_parts(&sandbox.until(ask, marked));
    assert_eq!(after, before, "the member's object is as it was");
    assert_eq!(sandbox.ok("get -C member2 pods -l app=legacy -o name"), pods, "and so are its pods");
    let (code, _, talk) = sandbox.run("promote deployment legacy -C member2");
    assert_eq!(code, Some(1));
    assert!(talk.contains("why: it already is a copy of a template of a hub"), "{talk}");
    let (_, _, talk) = sandbox.run(&format!("promote {} -C member2", pods.trim()));
    assert!(talk.contains("why: it is managed by replicaset/legacy-"), "{talk}");

    // What was there before the template outlives it.
    sandbox.ok("delete deployment legacy");
    sandbox.until("get resourcebindings -o name", |out| !out.contains("legacy"));
    let left = sandbox.until(ask, |out| !out.contains("atoll.dev/"));
    assert_eq!(own_parts(&left), before);
}
