//! Namespaces and their life cycle.

use serde_json::{Value, json};

use crate::fixtures::{Kind, core, map, maps, object};
use crate::suite::cases;
use crate::target::Target;

cases! {
    a_new_namespace_is_active,
    a_namespace_needs_a_dns_label,
    a_deleted_namespace_takes_everything_along,
    a_going_namespace_takes_nothing_new,
    a_finalizer_in_it_holds_a_namespace,
    custom_objects_go_with_their_namespace,
    the_default_namespaces_are_there,
    the_default_namespace_cannot_be_deleted,
    a_namespace_is_finalized_by_its_subresource,
    the_label_of_a_namespace_stays,
    a_namespace_has_a_status_of_its_own,
}

async fn a_new_namespace_is_active(api: Target) {
    let name = api.label();
    let answer = api.post("/api/v1/namespaces", json!({"metadata": {"name": name}})).await;
    answer.created();
    answer.has("/spec/finalizers", json!(["kubernetes"])).has("/status/phase", "Active");
    answer.has("/metadata/labels", json!({"kubernetes.io/metadata.name": name}));
}

async fn a_namespace_needs_a_dns_label(api: Target) {
    let answer = api.post("/api/v1/namespaces", json!({"metadata": {"name": "with.dot"}})).await;
    answer.refused(422, "Invalid", "Namespace \"with.dot\" is invalid: metadata.name: Invalid value: \"with.dot\": must not contain dots");
    let answer = api.post("/api/v1/namespaces", json!({"metadata": {"name": "Upper"}})).await;
    answer.refused_with(422, "Invalid", "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')");
    let answer = api.post("/api/v1/namespaces", json!({"metadata": {"name": "a".repeat(64)}})).await;
    answer.refused_with(422, "Invalid", "must be no more than 63 ");
}

async fn a_deleted_namespace_takes_everything_along(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    api.post(&core(&ns, "secrets"), json!({"metadata": {"name": "s"}})).await.created();
    let path = format!("/api/v1/namespaces/{ns}");
    let answer = api.delete(&path).await;
    answer.ok();
    answer.has("/kind", "Namespace").has("/status/phase", "Terminating");
    api.until_gone(&path).await;
    assert!(api.get(&maps(&ns)).await.names().is_empty());
    assert!(api.get(&core(&ns, "secrets")).await.names().is_empty());
}

/// A namespace that is being deleted and cannot end: the path of what holds it.
async fn held(api: &Target) -> (String, String) {
    let ns = api.namespace().await;
    let mut body = map("held", json!({}));
    body["metadata"]["finalizers"] = json!(["example.com/wait"]);
    api.post(&maps(&ns), body).await.created();
    api.delete(&format!("/api/v1/namespaces/{ns}")).await.ok();
    let holder = format!("{}/held", maps(&ns));
    (ns, holder)
}

async fn release(api: &Target, ns: &str, holder: &str) {
    api.merge(holder, json!({"metadata": {"finalizers": null}})).await;
    api.until_gone(&format!("/api/v1/namespaces/{ns}")).await;
}

async fn a_going_namespace_takes_nothing_new(api: Target) {
    let (ns, holder) = held(&api).await;
    let answer = api.post(&maps(&ns), map("late", json!({}))).await;
    answer.refused(403, "Forbidden", &format!("configmaps \"late\" is forbidden: unable to create new content in namespace {ns} because it is being terminated"));
    answer
        .has("/details/causes/0/reason", "NamespaceTerminating")
        .has("/details/causes/0/field", "metadata.namespace");
    // What is there may still change.
    api.merge(&holder, json!({"data": {"k": "v"}})).await.ok();
    release(&api, &ns, &holder).await;
}

async fn a_finalizer_in_it_holds_a_namespace(api: Target) {
    let (ns, holder) = held(&api).await;
    let path = format!("/api/v1/namespaces/{ns}");
    api.until(&holder, |held| held.at("/metadata/deletionTimestamp").is_string()).await;
    let said = |answer: &crate::answer::Answer| {
        let conditions = answer.at("/status/conditions");
        let conditions = conditions.as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "NamespaceFinalizersRemaining" && c["status"] == "True")
    };
    let answer = api.until(&path, said).await;
    answer.has("/status/phase", "Terminating").has("/spec/finalizers", json!(["kubernetes"]));
    release(&api, &ns, &holder).await;
}

async fn custom_objects_go_with_their_namespace(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({}))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    api.delete(&format!("/api/v1/namespaces/{ns}")).await.ok();
    api.until_gone(&format!("/api/v1/namespaces/{ns}")).await;
    assert!(api.get(&kind.path(&ns)).await.names().is_empty());
}

async fn the_default_namespaces_are_there(api: Target) {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        api.get(&format!("/api/v1/namespaces/{name}")).await.has("/status/phase", "Active");
    }
}

async fn the_default_namespace_cannot_be_deleted(api: Target) {
    for name in ["default", "kube-system", "kube-public"] {
        let answer = api.delete(&format!("/api/v1/namespaces/{name}")).await;
        answer.refused(
            403,
            "Forbidden",
            &format!("namespaces \"{name}\" is forbidden: this namespace may not be deleted"),
        );
    }
}

async fn a_namespace_is_finalized_by_its_subresource(api: Target) {
    let (ns, holder) = held(&api).await;
    let path = format!("/api/v1/namespaces/{ns}");
    // The spec's finalizers cannot be changed by an ordinary write.
    api.merge(&path, json!({"spec": {"finalizers": []}}))
        .await
        .has("/spec/finalizers", json!(["kubernetes"]));
    api.merge(&holder, json!({"metadata": {"finalizers": null}})).await;
    let mut body = api.get(&path).await.body;
    if body["kind"] == "Namespace" {
        body["spec"] = json!({});
        api.put(&format!("{path}/finalize"), body).await;
    }
    api.until_gone(&path).await;
}

async fn the_label_of_a_namespace_stays(api: Target) {
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    let answer = api.merge(&path, json!({"metadata": {"labels": null}})).await;
    answer.ok();
    answer.has("/metadata/labels", json!({"kubernetes.io/metadata.name": ns}));
    let answer =
        api.merge(&path, json!({"metadata": {"labels": {"kubernetes.io/metadata.name": "other"}}})).await;
    answer.has("/metadata/labels", json!({"kubernetes.io/metadata.name": ns}));
}

async fn a_namespace_has_a_status_of_its_own(api: Target) {
    let ns = api.namespace().await;
    let path = format!("/api/v1/namespaces/{ns}");
    api.merge(&path, json!({"status": {"conditions": [{"type": "X", "status": "True"}]}}))
        .await
        .has("/status/conditions", Value::Null);
    let answer = api.merge(&format!("{path}/status"), json!({"status": {"conditions": [{"type": "X", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}})).await;
    answer.has("/status/conditions/0/type", "X").has("/status/phase", "Active");
}
