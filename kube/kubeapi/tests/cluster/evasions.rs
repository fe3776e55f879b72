//! What an enemy tries so that a policy is not asked, and with owners that are not his. The honest use is beside each.

use serde_json::{Value, json};

use crate::answer::Answer;
use crate::fixtures::{core, map, maps, pod};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    no_way_of_writing_evades_a_policy,
    a_policy_on_tokens_is_asked,
    a_policy_on_sessions_is_asked,
    an_owner_in_another_namespace_keeps_nothing,
    an_object_of_no_namespace_is_not_collected_for_an_owner_in_one,
}

const RBAC: &str = "rbac.authorization.k8s.io";
const CLUSTER_ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const POLICY_BINDINGS: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings";

/// Puts a policy into force in a namespace, and waits until `probe` is refused by it.
async fn enforce(api: &Target, ns: &str, resources: &str, operation: &str, expression: &str, probe: Call) {
    let name = api.label();
    let rules = json!([{"apiGroups": [""], "apiVersions": ["v1"], "operations": [operation], "resources": [resources]}]);
    let spec = json!({"failurePolicy": "Fail", "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": expression, "message": "evil"}]});
    api.post(POLICIES, json!({"metadata": {"name": name}, "spec": spec})).await.created();
    let only = json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": ns}}});
    let spec = json!({"policyName": name, "validationActions": ["Deny"], "matchResources": only});
    api.post(POLICY_BINDINGS, json!({"metadata": {"name": name}, "spec": spec})).await.created();
    api.until_answered(&probe, |answer| answer.code == 422).await.refused_with(422, "Invalid", "evil");
}

async fn no_way_of_writing_evades_a_policy(api: Target) {
    let ns = api.namespace().await;
    let evil = json!({"data": {"evil": "yes"}});
    api.post(&maps(&ns), map("a", json!({"k": "v"}))).await.created();
    let path = format!("{}/a", maps(&ns));
    let probe = Call::post(&maps(&ns), &map("b", json!({"evil": "yes"}))).query("dryRun", "All");
    enforce(&api, &ns, "configmaps", "*", "!has(object.data) || !('evil' in object.data)", probe).await;
    for call in [
        Call::post(&maps(&ns), &map("b", json!({"evil": "yes"}))),
        Call::post(&maps(&ns), &json!({"metadata": {"generateName": "b-"}, "data": {"evil": "yes"}})),
        Call::put(&path, &map("a", json!({"evil": "yes"}))),
        Call::patch(&path, Patch::Merge, &evil),
        Call::patch(&path, Patch::Strategic, &evil),
        Call::patch(&path, Patch::Json, &json!([{"op": "add", "path": "/data/evil", "value": "yes"}])),
        Call::patch(&path, Patch::Json, &json!([{"op": "move", "from": "/data/k", "path": "/data/evil"}])),
        Call::apply(&path, "joe", &map("a", json!({"evil": "yes"}))).force(),
        Call::apply(&format!("{}/c", maps(&ns)), "joe", &map("c", json!({"evil": "yes"}))),
        Call::patch(&path, Patch::Merge, &evil).query("fieldValidation", "Ignore"),
    ] {
        api.send(call).await.refused_with(422, "Invalid", "evil");
    }
    // Nor does taking the namespace's own label away, by which the policy is bound.
    let unlabelled = json!({"metadata": {"labels": {"kubernetes.io/metadata.name": null}}});
    api.merge(&format!("/api/v1/namespaces/{ns}"), unlabelled).await;
    api.merge(&path, evil).await.refused_with(422, "Invalid", "evil");
    api.merge(&path, json!({"data": {"good": "yes"}})).await.ok();
}

async fn a_policy_on_tokens_is_asked(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "serviceaccounts"), json!({"metadata": {"name": "joe"}})).await.created();
    let path = format!("{}/joe/token", core(&ns, "serviceaccounts"));
    let request = |seconds: u64| json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": seconds}});
    let probe = Call::post(&path, &request(7200));
    enforce(&api, &ns, "serviceaccounts/token", "CREATE", "object.spec.expirationSeconds <= 3600", probe)
        .await;
    api.post(&path, request(3600)).await.created();
}

async fn a_policy_on_sessions_is_asked(api: Target) {
    let ns = api.namespace().await;
    api.post(&core(&ns, "serviceaccounts"), json!({"metadata": {"name": "joe"}})).await.created();
    api.post(&core(&ns, "pods"), pod("p", "joe")).await.created();
    let path = format!("{}/p/exec?command=sh&stdout=true", core(&ns, "pods"));
    let probe = Call::post(&path, &json!({}));
    enforce(&api, &ns, "pods/exec", "CONNECT", "false", probe).await;
    api.get(&format!("{}/p", core(&ns, "pods"))).await.ok();
}

fn owned_by(owner: &Answer, name: &str) -> Value {
    let mut body = map(name, json!({}));
    body["metadata"]["ownerReferences"] = json!([{
        "apiVersion": owner.at("/apiVersion"), "kind": owner.at("/kind"), "name": owner.at("/metadata/name"), "uid": owner.at("/metadata/uid"),
    }]);
    body
}

async fn an_owner_in_another_namespace_keeps_nothing(api: Target) {
    let ns = api.namespace().await;
    let other = format!("{}-x", &ns[..ns.len().min(60)]);
    api.post("/api/v1/namespaces", json!({"metadata": {"name": other}})).await.created();
    let owner = api.post(&maps(&ns), map("owner", json!({}))).await;
    owner.created();
    // The uid is right, the namespace is not: there is no such owner where it must be.
    api.post(&maps(&other), owned_by(&owner, "child")).await.created();
    api.until_gone(&format!("{}/child", maps(&other))).await;
    api.get(&format!("{}/owner", maps(&ns))).await.ok();
    // What is in the owner's namespace stays with it.
    api.post(&maps(&ns), owned_by(&owner, "child")).await.created();
    api.get(&format!("{}/child", maps(&ns))).await.ok();
}

async fn an_object_of_no_namespace_is_not_collected_for_an_owner_in_one(api: Target) {
    let (ns, name) = (api.namespace().await, api.label());
    let owner = api.post(&maps(&ns), map("owner", json!({}))).await;
    let mut role = owned_by(&owner, &name);
    role["kind"] = "ClusterRole".into();
    role["apiVersion"] = format!("{RBAC}/v1").into();
    if let Some(fields) = role.as_object_mut() {
        fields.remove("data");
    }
    role["rules"] = json!([]);
    api.post(CLUSTER_ROLES, role).await.created();
    let honest = api.post(&maps(&ns), owned_by(&owner, "child")).await;
    honest.created();
    api.delete(&format!("{}/owner", maps(&ns))).await.ok();
    // When the one is collected, the other was looked at too.
    api.until_gone(&format!("{}/child", maps(&ns))).await;
    api.get(&format!("{CLUSTER_ROLES}/{name}")).await.ok();
}
