//! Propagation policies in `atoll up`: what a person does to a hub shows in its members, where pods really run.

use serde_json::{Value, json};

use crate::sandbox::Sandbox;

/// How to look into a cluster: the hub is what KUBECONFIG leads to.
fn get(cluster: &str) -> String {
    if cluster == "hub" { "get".to_owned() } else { format!("get -C {cluster}") }
}

/// Waits until the object is so in a cluster.
fn has(sandbox: &Sandbox, cluster: &str, object: &str, is: impl Fn(&Value) -> bool) {
    sandbox.until(&format!("{} -n shop {object} -o json", get(cluster)), |out| {
        serde_json::from_str(out).is_ok_and(|found| is(&found))
    });
}

/// Waits until a cluster has no such object.
fn lacks(sandbox: &Sandbox, cluster: &str, kind: &str, name: &str) {
    let line = format!("{} -n shop {kind} -o name", get(cluster));
    sandbox.until(&line, |out| !out.lines().any(|line| line.ends_with(&format!("/{name}"))));
}

fn web(replicas: u32) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "main", "image": "process:sh", "args": ["-c", "exec sleep 1000"],
                "envFrom": [{"configMapRef": {"name": "settings"}}]}]}}}})
}

fn settings(colour: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"},
        "data": {"colour": colour}})
}

fn policy(name: &str, selected: &Value, spec: &Value) -> Value {
    let mut whole = spec.clone();
    whole["resourceSelectors"] = json!([selected]);
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": name, "namespace": "shop"}, "spec": whole})
}

/// Two to one over `clusters`, with what it needs.
fn divided(clusters: &[&str]) -> Value {
    let weight =
        |cluster: &str, weight: u32| json!({"targetCluster": {"clusterNames": [cluster]}, "weight": weight});
    let selected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"});
    policy(
        "web",
        &selected,
        &json!({"propagateDeps": true, "placement": {
            "clusterAffinity": {"clusterNames": clusters},
            "replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": [weight("member1", 2), weight("member2", 1)]}},
        }}),
    )
}

#[test]
fn a_deployment_is_divided_moved_and_taken_away_and_a_member_that_was_down_catches_up() {
    let sandbox = Sandbox::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    sandbox.apply("hub", &[namespace, settings("blue"), web(3), divided(&["member1", "member2"])]);
    let replicas = |want: u32| move |found: &Value| found["spec"]["replicas"] == want;
    let ready = |want: u32| move |found: &Value| found["status"]["readyReplicas"] == want;
    has(&sandbox, "member1", "deployment web", ready(2));
    has(&sandbox, "member2", "deployment web", ready(1));
    has(&sandbox, "member2", "configmap settings", |found| found["data"]["colour"] == "blue");
    sandbox.apply("hub", &[web(6)]);
    has(&sandbox, "member1", "deployment web", ready(4));
    has(&sandbox, "member2", "deployment web", ready(2));
    has(&sandbox, "hub", "deployment web", ready(6));

    // What changes while a member is off reaches it when it is on again.
    sandbox.ok(&format!("member stop member2 --dir {}", sandbox.path("up")));
    sandbox.apply("hub", &[web(3), settings("red")]);
    has(&sandbox, "member1", "deployment web", replicas(2));
    has(&sandbox, "hub", "resourcebinding web-deployment", |found| {
        found["status"]["conditions"].to_string().contains("member2: the member can't be reached")
    });
    sandbox.ok(&format!("member start member2 --dir {}", sandbox.path("up")));
    has(&sandbox, "member2", "deployment web", replicas(1));
    has(&sandbox, "member2", "configmap settings", |found| found["data"]["colour"] == "red");

    // The policy changes its clusters, the policy goes, the template goes.
    sandbox.apply("hub", &[divided(&["member2"])]);
    lacks(&sandbox, "member1", "deployments", "web");
    lacks(&sandbox, "member1", "configmaps", "settings");
    has(&sandbox, "member2", "deployment web", ready(3));
    sandbox.ok("delete -n shop propagationpolicy web");
    sandbox.apply("hub", &[web(2)]);
    has(&sandbox, "member2", "deployment web", ready(2));
    sandbox.ok("delete -n shop deployment web");
    lacks(&sandbox, "member2", "deployments", "web");
    lacks(&sandbox, "member2", "configmaps", "settings");
}

#[test]
fn one_member_differs_by_overrides_and_what_was_there_before_is_left_alone_unless_asked() {
    let sandbox = Sandbox::start();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    let plain = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "plain", "namespace": "shop"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "plain"}}, "template": {
            "metadata": {"labels": {"app": "plain"}}, "spec": {"containers": [{"name": "main", "image": "web:1"}]}}}});
    let selected = json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "plain"});
    let everywhere = json!({"placement": {"clusterAffinity": {"clusterNames": ["member1", "member2"]}}});
    let overrides = json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
    "metadata": {"name": "tokyo", "namespace": "shop"}, "spec": {
        "resourceSelectors": [selected],
        "overrideRules": [{"targetCluster": {"clusterNames": ["member2"]}, "overriders": {
            "imageOverrider": [{"component": "Registry", "operator": "add", "value": "mirror.example"}],
            "commandOverrider": [{"containerName": "main", "operator": "add", "value": ["serve"]}],
            "argsOverrider": [{"containerName": "main", "operator": "add", "value": ["--quiet"]}],
            "labelsOverrider": [{"operator": "add", "value": {"place": "tokyo"}}],
            "annotationsOverrider": [{"operator": "add", "value": {"shop/floor": "second"}}],
            "plaintext": [{"path": "/spec/minReadySeconds", "operator": "add", "value": 7}],
        }}]}});
    sandbox.apply("hub", &[namespace.clone(), overrides, plain, policy("plain", &selected, &everywhere)]);
    let differs = |found: &Value| {
        let container = &found["spec"]["template"]["spec"]["containers"][0];
        [
            container["image"] == "mirror.example/web:1",
            container["command"] == json!(["serve"]),
            container["args"] == json!(["--quiet"]),
            found["metadata"]["labels"]["place"] == "tokyo",
            found["metadata"]["annotations"]["shop/floor"] == "second",
            found["spec"]["minReadySeconds"] == 7,
        ]
    };
    has(&sandbox, "member2", "deployment plain", |found| differs(found) == [true; 6]);
    has(&sandbox, "member1", "deployment plain", |found| differs(found) == [false; 6]);

    // Something of its owner stands in a member.
    let taken = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "taken", "namespace": "shop"}, "data": data});
    sandbox.apply("member1", &[namespace, taken(json!({"theirs": "1"}))]);
    let selected = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "taken"});
    let resolved = |conflict: &str| {
        let spec = json!({"conflictResolution": conflict, "placement": {"clusterAffinity": {"clusterNames": ["member1"]}}});
        policy("taken", &selected, &spec)
    };
    sandbox.apply("hub", &[taken(json!({"ours": "1"})), resolved("Abort")]);
    has(&sandbox, "hub", "resourcebinding taken-configmap", |found| {
        found["status"].to_string().contains("which is not managed by the hub")
    });
    has(&sandbox, "member1", "configmap taken", |found| found["data"] == json!({"theirs": "1"}));
    sandbox.apply("hub", &[resolved("Overwrite")]);
    has(&sandbox, "member1", "configmap taken", |found| found["data"]["ours"] == "1");
    // It was its owner's before: it stays when the template goes.
    sandbox.ok("delete -n shop configmap taken");
    lacks(&sandbox, "hub", "resourcebindings", "taken-configmap");
    has(&sandbox, "member1", "configmap taken", |_| true);
}
