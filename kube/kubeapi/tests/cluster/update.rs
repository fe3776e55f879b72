//! Replacing whole objects.

use serde_json::{Value, json};

use crate::fixtures::{Kind, container, core, deployment, grouped, map, maps, object, with};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_put_replaces_the_object,
    an_old_version_conflicts,
    a_put_without_version_wins,
    a_custom_object_must_be_put_with_a_version,
    a_put_of_the_same_changes_nothing,
    a_missing_object_cannot_be_put,
    a_put_makes_a_lease_that_is_missing,
    a_put_needs_the_name_of_its_path,
    a_put_needs_the_namespace_of_its_path,
    a_put_with_another_uid_conflicts,
    a_put_on_a_collection_is_not_allowed,
    generation_grows_with_the_spec_alone,
    the_status_of_a_put_is_ignored,
    a_put_to_status_changes_only_that,
    what_the_server_set_stays,
    an_immutable_config_map_stays,
    a_secret_keeps_its_type,
    a_deployment_keeps_its_selector,
    a_put_can_be_retried_until_it_fits,
    of_many_writers_with_one_version_one_wins,
    a_replica_count_below_zero_is_refused,
    kube_replaces_and_sees_conflicts,
}

async fn a_put_replaces_the_object(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"old": "1"}))).await;
    let mut body = map("a", json!({"new": "2"}));
    body["metadata"]["resourceVersion"] = json!(made.version());
    let put = api.put(&format!("{}/a", maps(&ns)), body).await;
    put.ok();
    put.has("/data", json!({"new": "2"})).has("/metadata/uid", made.at("/metadata/uid"));
    put.has("/metadata/creationTimestamp", made.at("/metadata/creationTimestamp"));
    assert_ne!(put.version(), made.version());
}

const MODIFIED: &str =
    "the object has been modified; please apply your changes to the latest version and try again";

async fn an_old_version_conflicts(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    api.merge(&path, json!({"data": {"k": "v"}})).await.ok();
    let answer = api.put(&path, made.body.clone()).await;
    answer.refused(
        409,
        "Conflict",
        &format!("Operation cannot be fulfilled on configmaps \"a\": {MODIFIED}"),
    );
    answer.has("/details", json!({"name": "a", "kind": "configmaps"}));
}

async fn a_put_without_version_wins(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    api.put(&path, map("a", json!({"k": "v"}))).await.has("/data/k", "v");
}

async fn a_custom_object_must_be_put_with_a_version(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await.created();
    let answer = api.put(&format!("{}/a", kind.path(&ns)), kind.object("a", json!({"size": 2}))).await;
    let text = format!(
        "widgets.{} \"a\" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update",
        kind.group
    );
    answer.refused(422, "Invalid", &text);
}

async fn a_put_of_the_same_changes_nothing(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let put = api.put(&format!("{}/a", maps(&ns)), made.body.clone()).await;
    assert_eq!(put.ok(), made.body);
}

async fn a_missing_object_cannot_be_put(api: Target) {
    let ns = api.namespace().await;
    let answer = api.put(&format!("{}/a", maps(&ns)), map("a", json!({}))).await;
    answer.refused(404, "NotFound", "configmaps \"a\" not found");
}

async fn a_put_makes_a_lease_that_is_missing(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", grouped("coordination.k8s.io/v1", &ns, "leases"));
    let body = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "a"},
        "spec": {"holderIdentity": "me"},
    });
    api.put(&path, body).await.created();
    api.get(&path).await.has("/spec/holderIdentity", "me");
}

async fn a_put_needs_the_name_of_its_path(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let answer = api.put(&format!("{}/a", maps(&ns)), map("b", json!({}))).await;
    answer.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");
}

async fn a_put_needs_the_namespace_of_its_path(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let mut body = map("a", json!({}));
    body["metadata"]["namespace"] = json!("other");
    let answer = api.put(&format!("{}/a", maps(&ns)), body).await;
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    answer.refused(400, "BadRequest", text);
}

async fn a_put_with_another_uid_conflicts(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    let mut body = map("a", json!({}));
    body["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    let answer = api.put(&format!("{}/a", maps(&ns)), body).await;
    let uid = made.at("/metadata/uid");
    // A real server says much about its storage in between.
    answer.refused_with(409, "Conflict", "Operation cannot be fulfilled on configmaps \"a\": ");
    answer.refused_with(409, "Conflict", &format!("Precondition failed: UID in precondition: 11111111-2222-3333-4444-555555555555, UID in object meta: {}", uid.as_str().unwrap_or_default()));
}

async fn a_put_on_a_collection_is_not_allowed(api: Target) {
    let answer = api.put(&maps("default"), map("a", json!({}))).await;
    answer.refused(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
}

async fn generation_grows_with_the_spec_alone(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([container("c", "i:1")]))).await.created();
    let one = format!("{path}/d");
    api.merge(&one, json!({"metadata": {"labels": {"a": "b"}}})).await.has("/metadata/generation", 1);
    api.merge(&one, json!({"spec": {"replicas": 3}})).await.has("/metadata/generation", 2);
    api.merge(&format!("{one}/status"), json!({"status": {"replicas": 3}}))
        .await
        .has("/metadata/generation", 2);
}

async fn the_status_of_a_put_is_ignored(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let made = api.post(&path, deployment("d", json!([container("c", "i:1")]))).await;
    api.merge(&format!("{path}/d/status"), json!({"status": {"replicas": 2}})).await.ok();
    let body = with(deployment("d", json!([container("c", "i:2")])), json!({"status": {"replicas": 9}}));
    let put = api.put(&format!("{path}/d"), body).await;
    put.ok();
    put.has("/status", json!({"replicas": 2})).has("/spec/template/spec/containers/0/image", "i:2");
    put.has("/metadata/uid", made.at("/metadata/uid"));
}

async fn a_put_to_status_changes_only_that(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let made = api.post(&path, deployment("d", json!([container("c", "i:1")]))).await;
    let mut body = with(made.body.clone(), json!({"status": {"replicas": 4, "observedGeneration": 1}}));
    body["spec"]["replicas"] = json!(9);
    body["metadata"]["labels"] = json!({"x": "y"});
    let put = api.put(&format!("{path}/d/status"), body).await;
    put.ok();
    put.has("/status/replicas", 4).has("/spec/replicas", 1).has("/metadata/labels", Value::Null);
    api.get(&format!("{path}/d/status")).await.has("/status/replicas", 4);
}

async fn what_the_server_set_stays(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    let mut body = map("a", json!({"k": "v"}));
    body["metadata"]["creationTimestamp"] = json!("2001-01-01T00:00:00Z");
    body["metadata"]["generation"] = json!(9);
    let put = api.put(&format!("{}/a", maps(&ns)), body).await;
    put.ok();
    put.has("/metadata/creationTimestamp", made.at("/metadata/creationTimestamp"));
    let mut body = map("a", json!({}));
    body["metadata"]["deletionTimestamp"] = json!("2001-01-01T00:00:00Z");
    let answer = api.put(&format!("{}/a", maps(&ns)), body).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: metadata.deletionTimestamp: Invalid value: \"2001-01-01T00:00:00Z\": field is immutable");
}

async fn an_immutable_config_map_stays(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    api.post(&maps(&ns), with(map("a", json!({"k": "v"})), json!({"immutable": true}))).await.created();
    let answer = api.merge(&path, json!({"data": {"k": "w"}})).await;
    answer.refused(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: data: Forbidden: field is immutable when `immutable` is set",
    );
    let answer = api.merge(&path, json!({"immutable": null})).await;
    answer.refused(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: immutable: Forbidden: field is immutable when `immutable` is set",
    );
    api.merge(&path, json!({"metadata": {"labels": {"a": "b"}}})).await.ok();
}

async fn a_secret_keeps_its_type(api: Target) {
    let ns = api.namespace().await;
    let path = core(&ns, "secrets");
    api.post(&path, json!({"metadata": {"name": "s"}, "type": "a/b"})).await.created();
    let answer = api.merge(&format!("{path}/s"), json!({"type": "c/d"})).await;
    answer.refused(
        422,
        "Invalid",
        "Secret \"s\" is invalid: type: Invalid value: \"c/d\": field is immutable",
    );
}

async fn a_deployment_keeps_its_selector(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([container("c", "i:1")]))).await.created();
    let change = json!({"spec": {
        "selector": {"matchLabels": {"app": "other"}}, "template": {"metadata": {"labels": {"app": "other"}}},
    }});
    let answer = api.merge(&format!("{path}/d"), change).await;
    answer.refused_with(422, "Invalid", "Deployment.apps \"d\" is invalid: spec.selector: Invalid value: ");
    answer.refused_with(422, "Invalid", "field is immutable");
}

async fn a_put_can_be_retried_until_it_fits(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    let made = api.post(&maps(&ns), map("a", json!({"n": "0"}))).await;
    api.merge(&path, json!({"data": {"n": "1"}})).await.ok();
    api.put(&path, made.body.clone()).await.is(409);
    let mut fresh = api.get(&path).await.ok();
    fresh["data"]["n"] = json!("2");
    api.put(&path, fresh).await.has("/data/n", "2");
}

async fn of_many_writers_with_one_version_one_wins(api: Target) {
    let ns = api.namespace().await;
    let path = format!("{}/a", maps(&ns));
    let made = api.post(&maps(&ns), map("a", json!({}))).await;
    let writers = (0..8).map(|n| {
        let mut body = made.body.clone();
        body["data"] = json!({"winner": n.to_string()});
        api.send(Call::put(&path, &body))
    });
    let answers = futures_util::future::join_all(writers).await;
    let codes: Vec<_> = answers.iter().map(|answer| answer.code).collect();
    let won = |code: &&u16| **code == 200;
    assert_eq!(
        (codes.iter().filter(won).count(), codes.iter().filter(|c| **c == 409).count()),
        (1, 7),
        "{codes:?}"
    );
    let winner = answers.iter().find(|answer| answer.code == 200).expect("one won");
    assert_eq!(api.get(&path).await.body, winner.body);
}

async fn a_replica_count_below_zero_is_refused(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([container("c", "i:1")]))).await.created();
    let answer = api.merge(&format!("{path}/d"), json!({"spec": {"replicas": -1}})).await;
    answer.refused(422, "Invalid", "Deployment.apps \"d\" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0");
}

async fn kube_replaces_and_sees_conflicts(api: Target) {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, PostParams};
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let maps: Api<ConfigMap> = Api::namespaced(api.client.clone(), &ns);
    let before = maps.get("a").await.expect("it is there");
    let mut wanted = before.clone();
    wanted.data = Some([("k".to_owned(), "v".to_owned())].into());
    maps.replace("a", &PostParams::default(), &wanted).await.expect("it is the newest");
    let stale = maps.replace("a", &PostParams::default(), &before).await;
    let Err(kube::Error::Api(status)) = stale else { panic!("{stale:?}") };
    assert!(status.code == 409 && status.reason == "Conflict", "{status:?}");
}
