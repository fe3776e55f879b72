//! Logs and sessions of pods, as far as an API server answers by itself: nobody runs pods behind the real one here.

use serde_json::{Value, json};

use crate::fixtures::{account, core};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    streams_are_listed,
    a_pod_that_is_nowhere_has_no_log,
    a_pod_that_is_nowhere_runs_no_command,
    a_pod_that_is_not_there_has_no_streams,
    a_container_that_is_not_there_is_refused,
    one_of_several_containers_has_to_be_named,
    options_of_a_log_are_checked,
    who_may_look_may_not_run,
    a_log_is_read_only,
}

fn pod(name: &str, containers: &[&str]) -> Value {
    let containers: Vec<Value> =
        containers.iter().map(|name| json!({"name": name, "image": "example/web:1"})).collect();
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
        "spec": {"containers": containers, "automountServiceAccountToken": false},
    })
}

/// A pod that no node has, and its path.
async fn waiting(api: &Target, containers: &[&str]) -> String {
    let ns = api.namespace().await;
    // No controller makes it here, and a real server wants it for pods.
    api.post(&core(&ns, "serviceaccounts"), json!({"metadata": {"name": "default"}})).await.created();
    api.post(&core(&ns, "pods"), pod("p", containers)).await.created();
    format!("{}/p", core(&ns, "pods"))
}

async fn streams_are_listed(api: Target) {
    let list = api.get("/api/v1").await.ok();
    let all = list["resources"].as_array().cloned().unwrap_or_default();
    for (name, kind, verbs) in [
        ("pods/log", "Pod", json!(["get"])),
        ("pods/exec", "PodExecOptions", json!(["create", "get"])),
        ("pods/attach", "PodAttachOptions", json!(["create", "get"])),
    ] {
        let found = all.iter().find(|one| one["name"] == name);
        let want =
            json!({"name": name, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs});
        assert_eq!(found, Some(&want));
    }
}

async fn a_pod_that_is_nowhere_has_no_log(api: Target) {
    let path = waiting(&api, &["main"]).await;
    let answer = api.get(&format!("{path}/log")).await;
    assert_eq!((answer.code, answer.text().as_str()), (204, ""), "{answer}");
}

async fn a_pod_that_is_nowhere_runs_no_command(api: Target) {
    let path = waiting(&api, &["main"]).await;
    for what in ["exec?command=ls&stdout=true", "attach?stdout=true"] {
        let why = "pod p does not have a host assigned";
        api.get(&format!("{path}/{what}")).await.refused(400, "BadRequest", why);
        api.post(&format!("{path}/{what}"), json!({})).await.refused(400, "BadRequest", why);
    }
}

async fn a_pod_that_is_not_there_has_no_streams(api: Target) {
    let ns = api.namespace().await;
    for what in ["log", "exec?command=ls&stdout=true", "attach?stdout=true"] {
        let answer = api.get(&format!("{}/none/{what}", core(&ns, "pods"))).await;
        answer.refused(404, "NotFound", "pods \"none\" not found");
    }
}

async fn a_container_that_is_not_there_is_refused(api: Target) {
    let path = waiting(&api, &["main"]).await;
    for what in ["log?", "exec?command=ls&", "attach?"] {
        let answer = api.get(&format!("{path}/{what}container=other")).await;
        answer.refused(400, "BadRequest", "container other is not valid for pod p");
    }
}

async fn one_of_several_containers_has_to_be_named(api: Target) {
    let path = waiting(&api, &["one", "two"]).await;
    for what in ["log", "exec?command=ls", "attach"] {
        let why = "a container name must be specified for pod p, choose one of: [one two]";
        api.get(&format!("{path}/{what}")).await.refused(400, "BadRequest", why);
    }
    assert_eq!(api.get(&format!("{path}/log?container=two")).await.code, 204);
}

async fn options_of_a_log_are_checked(api: Target) {
    let path = waiting(&api, &["main"]).await;
    for (query, why) in [
        ("tailLines=-1", "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ("limitBytes=0", "limitBytes: Invalid value: 0: must be greater than 0"),
        ("sinceSeconds=0", "sinceSeconds: Invalid value: 0: must be greater than 0"),
    ] {
        let answer = api.get(&format!("{path}/log?{query}")).await;
        answer.refused(422, "Invalid", &format!("PodLogOptions \"p\" is invalid: {why}"));
    }
    let answer = api.get(&format!("{path}/log?tailLines=many")).await;
    answer.refused_with(400, "BadRequest", "parsing \"many\": invalid syntax");
    let answer = api.get(&format!("{path}/log?sinceSeconds=5&sinceTime=2026-01-01T00:00:00Z")).await;
    answer.refused_with(422, "Invalid", "at most one of `sinceTime` or `sinceSeconds` may be specified");
}

async fn who_may_look_may_not_run(api: Target) {
    let path = waiting(&api, &["main"]).await;
    let ns = api.label();
    let token = account(&api, &ns, "joe").await;
    let rbac = format!("/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}");
    let rules = json!([{"apiGroups": [""], "resources": ["pods/exec", "pods/log"], "verbs": ["get"]}]);
    api.post(&format!("{rbac}/roles"), json!({"metadata": {"name": "r"}, "rules": rules})).await.created();
    let binding = json!({
        "metadata": {"name": "b"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "name": "joe", "namespace": ns}],
    });
    api.post(&format!("{rbac}/rolebindings"), binding).await.created();
    let log = Call::get(&format!("{path}/log")).bearer(&token);
    api.until_answered(&log, |answer| answer.code == 204).await;
    let exec = Call::get(&format!("{path}/exec?command=ls&stdout=true")).bearer(&token);
    api.send(exec).await.refused_with(403, "Forbidden", "pods \"p\" is forbidden: ");
}

async fn a_log_is_read_only(api: Target) {
    let path = waiting(&api, &["main"]).await;
    for call in [Call::put(&format!("{path}/log"), &json!({})), Call::delete(&format!("{path}/exec"))] {
        assert_eq!(api.send(call).await.code, 405);
    }
}
