//! Deleting: finalizers, preconditions, grace, propagation.

use serde_json::{Value, json};

use crate::fixtures::{container, core, deployment, grouped, map, maps};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_delete_answers_with_success,
    a_missing_object_cannot_be_deleted,
    a_finalizer_keeps_the_object,
    a_deleted_object_takes_no_new_finalizers,
    a_deletion_cannot_be_taken_back,
    the_last_finalizer_removed_ends_it,
    a_second_delete_of_a_finalized_object_changes_nothing,
    a_delete_of_another_uid_conflicts,
    a_delete_of_another_version_conflicts,
    a_delete_with_fitting_preconditions_happens,
    an_unknown_propagation_is_refused,
    orphans_and_propagation_exclude_each_other,
    a_negative_grace_is_the_shortest,
    delete_options_may_be_a_query,
    delete_options_of_another_kind_are_refused,
    broken_delete_options_are_refused,
    a_collection_is_deleted,
    a_collection_keeps_what_has_finalizers,
    a_finalized_object_grows_in_generation,
    a_foreground_delete_waits_for_its_finalizer,
    an_orphaning_delete_waits_for_its_finalizer,
    a_deleted_name_is_free_again,
    kube_deletes,
}

async fn one(api: &Target, finalizers: &[&str]) -> String {
    let ns = api.namespace().await;
    let mut body = map("a", json!({}));
    if !finalizers.is_empty() {
        body["metadata"]["finalizers"] = json!(finalizers);
    }
    api.post(&maps(&ns), body).await.created();
    format!("{}/a", maps(&ns))
}

async fn free(api: &Target, path: &str) {
    api.merge(path, json!({"metadata": {"finalizers": null}})).await;
}

async fn a_delete_answers_with_success(api: Target) {
    let path = one(&api, &[]).await;
    let uid = api.get(&path).await.at("/metadata/uid");
    let answer = api.delete(&path).await;
    assert_eq!(
        answer.ok(),
        json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": {"name": "a", "kind": "configmaps", "uid": uid}})
    );
    api.get(&path).await.is(404);
}

async fn a_missing_object_cannot_be_deleted(api: Target) {
    let ns = api.namespace().await;
    api.delete(&format!("{}/a", maps(&ns))).await.refused(404, "NotFound", "configmaps \"a\" not found");
}

async fn a_finalizer_keeps_the_object(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    let answer = api.delete(&path).await;
    answer.ok();
    answer.has("/kind", "ConfigMap").has("/metadata/deletionGracePeriodSeconds", 0);
    assert!(answer.at("/metadata/deletionTimestamp").is_string(), "{answer}");
    assert_eq!(api.get(&path).await.ok(), answer.body);
    free(&api, &path).await;
}

async fn a_deleted_object_takes_no_new_finalizers(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    api.delete(&path).await.ok();
    let answer =
        api.merge(&path, json!({"metadata": {"finalizers": ["example.com/wait", "example.com/more"]}})).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"example.com/more\"}");
    free(&api, &path).await;
}

async fn a_deletion_cannot_be_taken_back(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    let deleted = api.delete(&path).await;
    let answer =
        api.merge(&path, json!({"metadata": {"deletionTimestamp": null, "labels": {"a": "b"}}})).await;
    answer.ok();
    answer.has("/metadata/deletionTimestamp", deleted.at("/metadata/deletionTimestamp"));
    free(&api, &path).await;
}

async fn the_last_finalizer_removed_ends_it(api: Target) {
    let path = one(&api, &["example.com/one", "example.com/two"]).await;
    api.delete(&path).await.ok();
    api.merge(&path, json!({"metadata": {"finalizers": ["example.com/two"]}})).await.ok();
    api.get(&path).await.ok();
    let last = api.merge(&path, json!({"metadata": {"finalizers": null}})).await;
    last.ok();
    last.has("/metadata/finalizers", Value::Null);
    api.get(&path).await.is(404);
}

async fn a_second_delete_of_a_finalized_object_changes_nothing(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    let first = api.delete(&path).await.ok();
    assert_eq!(api.delete(&path).await.ok(), first);
    free(&api, &path).await;
}

fn preconditions(preconditions: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": preconditions})
}

async fn a_delete_of_another_uid_conflicts(api: Target) {
    let path = one(&api, &[]).await;
    let uid = api.get(&path).await.at("/metadata/uid");
    let answer =
        api.delete_with(&path, preconditions(json!({"uid": "11111111-2222-3333-4444-555555555555"}))).await;
    answer.refused(409, "Conflict", &format!("Operation cannot be fulfilled on ConfigMap \"a\": the UID in the precondition (11111111-2222-3333-4444-555555555555) does not match the UID in record ({}). The object might have been deleted and then recreated", uid.as_str().unwrap_or_default()));
    api.get(&path).await.ok();
}

async fn a_delete_of_another_version_conflicts(api: Target) {
    let path = one(&api, &[]).await;
    let version = api.get(&path).await.version();
    let answer = api.delete_with(&path, preconditions(json!({"resourceVersion": "1"}))).await;
    answer.refused(409, "Conflict", &format!("Operation cannot be fulfilled on ConfigMap \"a\": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({version}). The object might have been modified"));
}

async fn a_delete_with_fitting_preconditions_happens(api: Target) {
    let path = one(&api, &[]).await;
    let object = api.get(&path).await;
    let fitting = json!({"uid": object.at("/metadata/uid"), "resourceVersion": object.version()});
    api.delete_with(&path, preconditions(fitting)).await.ok();
    api.get(&path).await.is(404);
}

async fn an_unknown_propagation_is_refused(api: Target) {
    let path = one(&api, &[]).await;
    let answer = api.delete_with(&path, json!({"propagationPolicy": "Sideways"})).await;
    answer.refused(422, "Invalid", "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: \"Sideways\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
}

async fn orphans_and_propagation_exclude_each_other(api: Target) {
    let path = one(&api, &[]).await;
    let answer =
        api.delete_with(&path, json!({"propagationPolicy": "Background", "orphanDependents": true})).await;
    answer.refused_with(422, "Invalid", "orphanDependents and deletionPropagation cannot be both set");
}

async fn a_negative_grace_is_the_shortest(api: Target) {
    let path = one(&api, &[]).await;
    // A negative grace means "as short as can be".
    let answer = api.delete_with(&path, json!({"gracePeriodSeconds": -5})).await;
    answer.ok();
}

async fn delete_options_may_be_a_query(api: Target) {
    let path = one(&api, &[]).await;
    let answer = api.delete(&format!("{path}?propagationPolicy=Sideways")).await;
    answer.refused_with(422, "Invalid", "propagationPolicy: Unsupported value: \"Sideways\"");
    api.delete(&format!("{path}?propagationPolicy=Background&gracePeriodSeconds=0")).await.ok();
}

async fn delete_options_of_another_kind_are_refused(api: Target) {
    let path = one(&api, &[]).await;
    let answer = api.delete_with(&path, json!({"apiVersion": "v1", "kind": "ConfigMap"})).await;
    assert!((400..500).contains(&answer.code), "{answer}");
    api.get(&path).await.ok();
}

async fn broken_delete_options_are_refused(api: Target) {
    let path = one(&api, &[]).await;
    let answer = api.send(Call::delete(&path).body("application/json", "{\"propagation")).await;
    answer.is(400);
    api.get(&path).await.ok();
}

async fn a_collection_is_deleted(api: Target) {
    let ns = api.namespace().await;
    for name in ["a", "b"] {
        api.post(&core(&ns, "secrets"), json!({"metadata": {"name": name}})).await.created();
    }
    let answer = api.delete(&core(&ns, "secrets")).await;
    answer.ok();
    answer.has("/kind", "SecretList");
    assert_eq!(answer.names(), ["a", "b"]);
    assert!(api.get(&core(&ns, "secrets")).await.names().is_empty());
}

async fn a_collection_keeps_what_has_finalizers(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    let all = path.trim_end_matches("/a").to_owned();
    api.post(&all, map("b", json!({}))).await.created();
    api.delete(&all).await.ok();
    let left = api.get(&all).await;
    assert_eq!(left.names(), ["a"]);
    assert!(left.at("/items/0/metadata/deletionTimestamp").is_string());
    free(&api, &path).await;
}

async fn a_finalized_object_grows_in_generation(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let mut body = deployment("d", json!([container("c", "i:1")]));
    body["metadata"]["finalizers"] = json!(["example.com/wait"]);
    api.post(&path, body).await.created();
    let answer = api.delete(&format!("{path}/d")).await;
    answer.ok();
    answer.has("/metadata/generation", 2);
    free(&api, &format!("{path}/d")).await;
}

async fn a_foreground_delete_waits_for_its_finalizer(api: Target) {
    // A finalizer of ours too, so that no controller is done before we look.
    let path = one(&api, &["example.com/wait"]).await;
    let answer = api.delete_with(&path, json!({"propagationPolicy": "Foreground"})).await;
    answer.ok();
    answer.has("/metadata/finalizers", json!(["example.com/wait", "foregroundDeletion"]));
    free(&api, &path).await;
}

async fn an_orphaning_delete_waits_for_its_finalizer(api: Target) {
    let path = one(&api, &["example.com/wait"]).await;
    let answer = api.delete_with(&path, json!({"propagationPolicy": "Orphan"})).await;
    answer.ok();
    answer.has("/metadata/finalizers", json!(["example.com/wait", "orphan"]));
    free(&api, &path).await;
}

async fn a_deleted_name_is_free_again(api: Target) {
    let path = one(&api, &[]).await;
    let before = api.get(&path).await;
    api.delete(&path).await.ok();
    let again = api.post(path.trim_end_matches("/a"), map("a", json!({}))).await;
    again.created();
    assert_ne!(again.at("/metadata/uid"), before.at("/metadata/uid"));
    let stale = api.put(&path, before.body.clone()).await;
    stale.is(409);
}

async fn kube_deletes(api: Target) {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, DeleteParams, Preconditions};
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let maps: Api<ConfigMap> = Api::namespaced(api.client.clone(), &ns);
    let other = DeleteParams {
        preconditions: Some(Preconditions { uid: Some("x".to_owned()), ..Default::default() }),
        ..Default::default()
    };
    let refused = maps.delete("a", &other).await;
    assert!(matches!(&refused, Err(kube::Error::Api(status)) if status.code == 409), "{refused:?}");
    let gone = maps.delete("a", &DeleteParams::foreground()).await.expect("it can be deleted");
    assert!(gone.is_left() || gone.is_right());
}
