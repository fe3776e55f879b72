//! JSON patch and merge patch.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{Kind, container, deployment, grouped, map, maps, object};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    json_operations_happen_in_order,
    json_paths_are_escaped,
    json_lists_are_edited_by_index,
    a_failed_json_test_changes_nothing,
    a_json_path_that_is_not_there_is_refused,
    a_malformed_json_patch_is_refused,
    an_unknown_json_operation_is_refused,
    a_json_patch_has_a_most_of_operations,
    a_json_patch_may_not_rename,
    a_merge_sets_and_removes,
    a_merge_replaces_lists,
    a_merge_with_an_old_version_conflicts,
    a_merge_of_no_object_is_refused,
    a_merge_may_not_rename,
    a_merge_may_not_change_the_kind,
    a_merge_of_nothing_keeps_the_version,
    a_merge_of_a_missing_object_is_refused,
    a_merge_that_makes_it_invalid_is_refused,
    a_patch_needs_a_known_content_type,
    custom_objects_take_no_strategic_patch,
    a_patch_of_a_collection_is_not_allowed,
    a_patch_may_not_set_a_uid,
    kube_patches,
}

async fn one(api: &Target, data: Value) -> String {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", data)).await.created();
    format!("{}/a", maps(&ns))
}

async fn json_operations_happen_in_order(api: Target) {
    let path = one(&api, json!({"a": "1", "b": "2"})).await;
    let patch = json!([
        {"op": "test", "path": "/data/a", "value": "1"},
        {"op": "add", "path": "/data/c", "value": "3"},
        {"op": "replace", "path": "/data/a", "value": "9"},
        {"op": "copy", "from": "/data/a", "path": "/data/d"},
        {"op": "move", "from": "/data/b", "path": "/data/e"},
        {"op": "remove", "path": "/data/c"},
    ]);
    let answer = api.patch(&path, Patch::Json, patch).await;
    answer.ok();
    answer.has("/data", json!({"a": "9", "d": "9", "e": "2"}));
}

async fn json_paths_are_escaped(api: Target) {
    let path = one(&api, json!({})).await;
    let patch = json!([
        {"op": "add", "path": "/metadata/annotations", "value": {}},
        {"op": "add", "path": "/metadata/annotations/example.com~1a", "value": "x"},
    ]);
    let answer = api.patch(&path, Patch::Json, patch).await;
    answer.ok();
    answer.has("/metadata/annotations", json!({"example.com/a": "x"}));
}

async fn json_lists_are_edited_by_index(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    api.post(&path, deployment("d", json!([container("a", "i:1"), container("b", "i:1")]))).await.created();
    let list = "/spec/template/spec/containers";
    let patch = json!([
        {"op": "add", "path": format!("{list}/0"), "value": container("first", "i:1")},
        {"op": "add", "path": format!("{list}/-"), "value": container("last", "i:1")},
        {"op": "remove", "path": format!("{list}/1")},
        {"op": "replace", "path": format!("{list}/1/image"), "value": "i:2"},
    ]);
    let answer = api.patch(&format!("{path}/d"), Patch::Json, patch).await;
    answer.ok();
    let containers = answer.at(list);
    let line = |c: &Value| {
        format!("{} {}", c["name"].as_str().unwrap_or_default(), c["image"].as_str().unwrap_or_default())
    };
    let lines: Vec<_> = containers.as_array().into_iter().flatten().map(line).collect();
    assert_eq!(lines, ["first i:1", "b i:2", "last i:1"]);
}

async fn a_failed_json_test_changes_nothing(api: Target) {
    let path = one(&api, json!({"a": "1"})).await;
    let patch = json!([
        {"op": "replace", "path": "/data/a", "value": "2"},
        {"op": "test", "path": "/data/a", "value": "other"},
    ]);
    let answer = api.patch(&path, Patch::Json, patch).await;
    answer.refused(422, "Invalid", "the server rejected our request due to an error in our request");
    api.get(&path).await.has("/data/a", "1");
}

async fn a_json_path_that_is_not_there_is_refused(api: Target) {
    let path = one(&api, json!({"a": "1"})).await;
    for patch in [
        json!([{"op": "remove", "path": "/data/nothing"}]),
        json!([{"op": "add", "path": "/nothing/here", "value": "x"}]),
    ] {
        let answer = api.patch(&path, Patch::Json, patch).await;
        answer.refused(422, "Invalid", "the server rejected our request due to an error in our request");
    }
    // But a replacement of what is not there is an addition.
    let patch = json!([{"op": "replace", "path": "/data/nothing", "value": "x"}]);
    api.patch(&path, Patch::Json, patch).await.has("/data/nothing", "x");
}

async fn a_malformed_json_patch_is_refused(api: Target) {
    let path = one(&api, json!({})).await;
    for body in ["{\"op\": \"add\"}", "[1]", "nonsense"] {
        let call = Call::new(Method::PATCH, &path).body("application/json-patch+json", body);
        api.send(call).await.refused_with(400, "BadRequest", "error decoding patch: ");
    }
}

async fn an_unknown_json_operation_is_refused(api: Target) {
    let path = one(&api, json!({})).await;
    let answer = api.patch(&path, Patch::Json, json!([{"op": "paint", "path": "/data/a"}])).await;
    answer.refused(422, "Invalid", "the server rejected our request due to an error in our request");
}

async fn a_json_patch_has_a_most_of_operations(api: Target) {
    let path = one(&api, json!({"a": "1"})).await;
    let operations = vec![json!({"op": "test", "path": "/data/a", "value": "1"}); 10_001];
    let answer = api.patch(&path, Patch::Json, json!(operations)).await;
    answer.refused(
        413,
        "RequestEntityTooLarge",
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001",
    );
}

async fn a_json_patch_may_not_rename(api: Target) {
    let path = one(&api, json!({})).await;
    let answer = api
        .patch(&path, Patch::Json, json!([{"op": "replace", "path": "/metadata/name", "value": "b"}]))
        .await;
    answer.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");
}

async fn a_merge_sets_and_removes(api: Target) {
    let path = one(&api, json!({"a": "1", "b": "2"})).await;
    let answer =
        api.merge(&path, json!({"data": {"a": null, "c": "3"}, "metadata": {"labels": {"x": "y"}}})).await;
    answer.ok();
    answer.has("/data", json!({"b": "2", "c": "3"})).has("/metadata/labels", json!({"x": "y"}));
    api.merge(&path, json!({"data": null})).await.has("/data", Value::Null);
}

async fn a_merge_replaces_lists(api: Target) {
    let path = one(&api, json!({})).await;
    api.merge(&path, json!({"metadata": {"finalizers": ["e.x/a", "e.x/b"]}})).await.ok();
    let answer = api.merge(&path, json!({"metadata": {"finalizers": ["e.x/c"]}})).await;
    answer.has("/metadata/finalizers", json!(["e.x/c"]));
    api.merge(&path, json!({"metadata": {"finalizers": null}}))
        .await
        .has("/metadata/finalizers", Value::Null);
}

async fn a_merge_with_an_old_version_conflicts(api: Target) {
    let path = one(&api, json!({})).await;
    let old = api.get(&path).await.version();
    let new = api.merge(&path, json!({"data": {"a": "1"}})).await.version();
    let with = |version: &str| json!({"metadata": {"resourceVersion": version}, "data": {"b": "2"}});
    let answer = api.merge(&path, with(&old)).await;
    answer.refused(409, "Conflict", "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your changes to the latest version and try again");
    api.merge(&path, with(&new)).await.ok();
}

async fn a_merge_of_no_object_is_refused(api: Target) {
    let path = one(&api, json!({})).await;
    for body in [json!([]), json!("text"), json!(5)] {
        let answer = api.merge(&path, body).await;
        assert!((400..500).contains(&answer.code), "{answer}");
    }
    let broken = Call::new(Method::PATCH, &path).body("application/merge-patch+json", "{\"data\": ");
    api.send(broken).await.refused_with(400, "BadRequest", "error decoding patch: ");
}

async fn a_merge_may_not_rename(api: Target) {
    let path = one(&api, json!({})).await;
    let answer = api.merge(&path, json!({"metadata": {"name": "b"}})).await;
    answer.refused(400, "BadRequest", "the name of the object (b) does not match the name on the URL (a)");
    let answer = api.merge(&path, json!({"metadata": {"namespace": "default"}})).await;
    let text = "the namespace of the provided object does not match the namespace sent on the request";
    answer.refused(400, "BadRequest", text);
}

async fn a_merge_may_not_change_the_kind(api: Target) {
    let path = one(&api, json!({})).await;
    let answer = api.merge(&path, json!({"kind": "Secret"})).await;
    answer.refused_with(422, "Invalid", " \"\" is invalid: patch: Invalid value: \"{");
}

async fn a_merge_of_nothing_keeps_the_version(api: Target) {
    let path = one(&api, json!({"a": "1"})).await;
    let before = api.get(&path).await;
    assert_eq!(api.merge(&path, json!({})).await.ok(), before.body);
    assert_eq!(api.merge(&path, json!({"data": {"a": "1"}})).await.ok(), before.body);
}

async fn a_merge_of_a_missing_object_is_refused(api: Target) {
    let ns = api.namespace().await;
    for kind in [Patch::Merge, Patch::Strategic] {
        let answer = api.patch(&format!("{}/a", maps(&ns)), kind, json!({"data": {}})).await;
        answer.refused(404, "NotFound", "configmaps \"a\" not found");
    }
}

async fn a_merge_that_makes_it_invalid_is_refused(api: Target) {
    let path = one(&api, json!({"a": "1"})).await;
    let answer = api.merge(&path, json!({"metadata": {"labels": {"a": "not a label"}}})).await;
    answer.refused_with(
        422,
        "Invalid",
        "ConfigMap \"a\" is invalid: metadata.labels: Invalid value: \"not a label\"",
    );
    let answer = api.merge(&path, json!({"data": {"a": 5}})).await;
    answer.refused_with(422, "Invalid", " \"\" is invalid: patch: Invalid value: \"{");
    answer.refused_with(
        422,
        "Invalid",
        "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
    );
    api.get(&path).await.has("/data/a", "1");
}

async fn a_patch_needs_a_known_content_type(api: Target) {
    let path = one(&api, json!({})).await;
    for kind in ["application/json", "text/plain"] {
        let answer = api.send(Call::new(Method::PATCH, &path).body(kind, "{}")).await;
        answer.refused(415, "UnsupportedMediaType", "415: Unsupported Media Type");
    }
}

async fn custom_objects_take_no_strategic_patch(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({"size": {"type": "integer"}}))).await;
    api.post(&kind.path(&ns), kind.object("a", json!({"size": 1}))).await.created();
    let path = format!("{}/a", kind.path(&ns));
    let answer = api.patch(&path, Patch::Strategic, json!({"spec": {"size": 2}})).await;
    answer.refused(415, "UnsupportedMediaType", "the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml");
    api.merge(&path, json!({"spec": {"size": 3}})).await.has("/spec/size", 3).has("/metadata/generation", 2);
    let patch = json!([{"op": "replace", "path": "/spec/size", "value": 4}]);
    api.patch(&path, Patch::Json, patch).await.has("/spec/size", 4).has("/metadata/generation", 3);
}

async fn a_patch_of_a_collection_is_not_allowed(api: Target) {
    let answer = api.merge(&maps("default"), json!({})).await;
    answer.refused(
        405,
        "MethodNotAllowed",
        "the server does not allow this method on the requested resource",
    );
}

async fn a_patch_may_not_set_a_uid(api: Target) {
    let path = one(&api, json!({})).await;
    let answer = api.merge(&path, json!({"metadata": {"uid": "11111111-2222-3333-4444-555555555555"}})).await;
    answer.refused(422, "Invalid", "ConfigMap \"a\" is invalid: metadata.uid: Invalid value: \"11111111-2222-3333-4444-555555555555\": field is immutable");
}

async fn kube_patches(api: Target) {
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::api::{Api, Patch, PatchParams};
    let ns = api.namespace().await;
    let maps: Api<ConfigMap> = Api::namespaced(api.client.clone(), &ns);
    let wanted = map("a", json!({"k": "v"}));
    maps.patch("a", &PatchParams::apply("me"), &Patch::Apply(&wanted)).await.expect("apply makes it");
    let change = json!({"data": {"l": "w"}});
    maps.patch("a", &PatchParams::default(), &Patch::Merge(&change)).await.expect("it can be merged");
    let change = json!({"data": {"k": null}});
    let last = maps.patch("a", &PatchParams::default(), &Patch::Strategic(&change)).await.expect("this too");
    assert_eq!(
        last.data.unwrap_or_default().into_iter().collect::<Vec<_>>(),
        [("l".to_owned(), "w".to_owned())]
    );
}
