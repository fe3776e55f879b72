//! Server-side apply, with answers recorded from a real server: who owns what, conflicts, what goes away.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{core, map, maps, with};
use crate::recording::Recording;
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    applying_makes_the_object,
    applying_the_same_again_changes_nothing,
    a_field_no_longer_applied_goes_away,
    a_field_that_another_owns_too_stays,
    a_field_of_another_conflicts,
    several_conflicts_are_all_told,
    force_takes_the_field_over,
    the_same_value_is_shared,
    an_update_is_an_owner_too,
    an_update_takes_fields_from_an_applier,
    a_merge_patch_is_by_its_manager,
    a_create_names_its_manager,
    a_manager_is_named_after_the_user_agent,
    an_applier_who_wants_nothing_goes_away,
    a_manager_must_be_named,
    a_manager_name_may_not_be_long,
    force_is_for_apply_only,
    an_apply_may_not_name_managed_fields,
    managed_fields_can_be_reset,
    managed_fields_can_be_given_up,
    an_apply_with_an_old_version_conflicts,
    an_apply_of_another_name_is_refused,
    an_apply_without_kind_is_refused,
    an_apply_of_another_version_is_refused,
    an_apply_of_a_missing_object_with_uid_conflicts,
    sets_are_owned_by_value,
    a_duplicate_in_a_set_is_refused,
    unknown_fields_of_an_apply_are_refused,
    a_wrong_type_in_an_apply_is_refused,
    labels_and_annotations_are_owned_by_key,
    finalizers_are_a_set,
    a_null_is_not_owned,
    an_empty_map_is_owned,
    yaml_is_applied,
    a_dry_run_changes_nothing,
    a_secret_is_applied_with_strings,
    apply_makes_an_object_only_with_its_namespace,
}

/// A namespace's path for a config map called `a`.
async fn place(api: &Target) -> String {
    format!("{}/a", maps(&api.namespace().await))
}

fn data(data: Value) -> Value {
    map("a", data)
}

async fn applying_makes_the_object(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await.created();
    recording.send(Call::get(&path)).await;
    recording.finish();
}

async fn applying_the_same_again_changes_nothing(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    for _ in 0..2 {
        recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    }
    recording.finish();
}

async fn a_field_no_longer_applied_goes_away(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "2"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"b": "2"})))).await;
    recording.finish();
}

async fn a_field_that_another_owns_too_stays(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "2"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({})))).await;
    recording.finish();
}

async fn a_field_of_another_conflicts(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "2"})))).await.is(409);
    recording.send(Call::get(&path)).await;
    recording.finish();
}

async fn several_conflicts_are_all_told(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "1"})))).await;
    recording.send(Call::apply(&path, "carol", &data(json!({"c": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "2", "b": "2", "c": "2"})))).await;
    recording.finish();
}

async fn force_takes_the_field_over(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "2"}))).force()).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "3", "b": "1"})))).await;
    recording.finish();
}

async fn the_same_value_is_shared(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "2"})))).await;
    recording.finish();
}

async fn an_update_is_an_owner_too(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let collection = path.trim_end_matches("/a").to_owned();
    recording.send(Call::post(&collection, &data(json!({"a": "1"}))).query("fieldManager", "maker")).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "2"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "1"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({})))).await;
    recording.finish();
}

async fn an_update_takes_fields_from_an_applier(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "1"})))).await;
    let body = data(json!({"a": "2", "b": "1"}));
    recording.send(Call::put(&path, &body).query("fieldManager", "putter")).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1", "b": "1"})))).await;
    // What an update removes nobody owns any more.
    recording.send(Call::put(&path, &data(json!({"b": "1"}))).query("fieldManager", "putter")).await;
    recording.finish();
}

async fn a_merge_patch_is_by_its_manager(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    let patch = Call::patch(&path, Patch::Merge, &json!({"data": {"b": "2"}}));
    recording.send(patch.clone().query("fieldManager", "patcher")).await;
    recording.send(patch.query("fieldManager", "again")).await;
    let patch = json!([{"op": "remove", "path": "/data/b"}]);
    recording.send(Call::patch(&path, Patch::Json, &patch).query("fieldManager", "remover")).await;
    recording.finish();
}

async fn a_create_names_its_manager(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let collection = path.trim_end_matches("/a").to_owned();
    let mut body = data(json!({"a": "1"}));
    body["metadata"]["labels"] = json!({"l": "1"});
    body["metadata"]["annotations"] = json!({"n": "1"});
    recording.send(Call::post(&collection, &body).query("fieldManager", "maker")).await;
    recording.finish();
}

async fn a_manager_is_named_after_the_user_agent(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let collection = path.trim_end_matches("/a").to_owned();
    let call = Call::post(&collection, &data(json!({"a": "1"})));
    recording.send(call.header("user-agent", "my-tool/v1.2 (linux/amd64)")).await;
    recording.finish();
}

async fn an_applier_who_wants_nothing_goes_away(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"b": "1"})))).await;
    let nothing = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    recording.send(Call::apply(&path, "bob", &nothing)).await;
    recording.finish();
}

async fn a_manager_must_be_named(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let body = data(json!({"a": "1"})).to_string();
    recording.send(Call::new(Method::PATCH, &path).body("application/apply-patch+yaml", body)).await;
    recording.finish();
}

async fn a_manager_name_may_not_be_long(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, &"m".repeat(129), &data(json!({})))).await;
    recording.send(Call::apply(&path, "not\nprintable", &data(json!({})))).await;
    recording.finish();
}

async fn force_is_for_apply_only(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::patch(&path, Patch::Merge, &json!({"data": {"a": "2"}})).force()).await;
    recording.finish();
}

async fn an_apply_may_not_name_managed_fields(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let mut body = data(json!({"a": "1"}));
    body["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]);
    recording.send(Call::apply(&path, "alice", &body)).await;
    recording.finish();
}

async fn managed_fields_can_be_reset(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    let reset = json!({"metadata": {"managedFields": [{}]}});
    recording.send(Call::patch(&path, Patch::Merge, &reset)).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"b": "1"})))).await;
    recording.finish();
}

async fn managed_fields_can_be_given_up(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"b": "1"})))).await;
    let mut body = api.get(&path).await.ok();
    let entries = body["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    body["metadata"]["managedFields"] =
        entries.into_iter().filter(|entry| entry["manager"] == "bob").collect();
    recording.send(Call::put(&path, &body).query("fieldManager", "editor")).await;
    recording.send(Call::apply(&path, "carol", &data(json!({"a": "2"})))).await;
    recording.finish();
}

async fn an_apply_with_an_old_version_conflicts(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let made = recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "2"})))).await;
    let mut body = data(json!({"a": "3"}));
    body["metadata"]["resourceVersion"] = json!(made.version());
    recording.send(Call::apply(&path, "alice", &body)).await.is(409);
    recording.finish();
}

async fn an_apply_of_another_name_is_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &map("b", json!({})))).await;
    let mut body = data(json!({}));
    body["metadata"]["namespace"] = json!("default");
    recording.send(Call::apply(&path, "alice", &body)).await;
    recording.finish();
}

async fn an_apply_without_kind_is_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording
        .send(Call::apply(&path, "alice", &json!({"apiVersion": "v1", "metadata": {"name": "a"}})))
        .await;
    recording
        .send(Call::apply(&path, "alice", &json!({"kind": "ConfigMap", "metadata": {"name": "a"}})))
        .await;
    recording.send(Call::apply(&path, "alice", &json!({"apiVersion": "v1", "kind": "ConfigMap"}))).await;
    recording.finish();
}

async fn an_apply_of_another_version_is_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording
        .send(Call::apply(
            &path,
            "alice",
            &json!({"apiVersion": "v2", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        ))
        .await;
    recording
        .send(Call::apply(
            &path,
            "alice",
            &json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}}),
        ))
        .await;
    recording.finish();
}

async fn an_apply_of_a_missing_object_with_uid_conflicts(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let mut body = data(json!({}));
    body["metadata"]["uid"] = json!("11111111-2222-3333-4444-555555555555");
    recording.send(Call::apply(&path, "alice", &body)).await.is(409);
    recording.finish();
}

async fn sets_are_owned_by_value(api: Target) {
    let (ns, mut recording) = (api.namespace().await, Recording::new(&api));
    let path = format!("{}/a", maps(&ns));
    let body = |values: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": values}});
    recording.send(Call::apply(&path, "alice", &body(json!(["e.x/a", "e.x/b"])))).await;
    recording.send(Call::apply(&path, "bob", &body(json!(["e.x/b", "e.x/c"])))).await;
    recording.send(Call::apply(&path, "alice", &body(json!(["e.x/a"])))).await;
    recording.send(Call::apply(&path, "bob", &body(json!(["e.x/c"])))).await;
    api.merge(&path, json!({"metadata": {"finalizers": null}})).await.ok();
    recording.finish();
}

async fn a_duplicate_in_a_set_is_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["e.x/a", "e.x/a"]}});
    recording.send(Call::apply(&path, "alice", &body)).await;
    recording.finish();
}

async fn unknown_fields_of_an_apply_are_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let body = with(data(json!({})), json!({"colour": "blue"}));
    recording.send(Call::apply(&path, "alice", &body)).await;
    recording.send(Call::apply(&path, "alice", &body).query("fieldValidation", "Ignore")).await;
    recording.finish();
}

async fn a_wrong_type_in_an_apply_is_refused(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": 5})))).await;
    recording.send(Call::apply(&path, "alice", &data(json!(["a"])))).await;
    recording.finish();
}

async fn labels_and_annotations_are_owned_by_key(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let body = |labels: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": labels, "annotations": {"note": "same"}}});
    recording.send(Call::apply(&path, "alice", &body(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &body(json!({"b": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &body(json!({"a": "2"})))).await;
    recording.finish();
}

async fn finalizers_are_a_set(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(
        &path,
        "alice",
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "finalizers": ["e.x/a"]}}),
    ))
    .await;
    let patch = json!({"metadata": {"finalizers": ["e.x/a", "e.x/b"]}});
    recording.send(Call::patch(&path, Patch::Merge, &patch).query("fieldManager", "bob")).await;
    recording
        .send(
            Call::patch(&path, Patch::Merge, &json!({"metadata": {"finalizers": null}}))
                .query("fieldManager", "bob"),
        )
        .await;
    recording.finish();
}

async fn a_null_is_not_owned(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": null, "b": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(Value::Null))).await;
    recording.finish();
}

async fn an_empty_map_is_owned(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "1"})))).await;
    recording
        .send(Call::apply(
            &path,
            "bob",
            &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
        ))
        .await;
    recording.finish();
}

async fn yaml_is_applied(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  text: |\n    one\n    two\n  # a remark\n  quoted: \"5\"\n";
    let call = Call::new(Method::PATCH, &path).query("fieldManager", "alice");
    recording.send(call.clone().body("application/apply-patch+yaml", yaml)).await.created();
    recording.finish();
    let broken = api.send(call.body("application/apply-patch+yaml", "a: b: c\n")).await;
    broken.refused_with(400, "BadRequest", "error decoding YAML: ");
}

async fn a_dry_run_changes_nothing(api: Target) {
    let (path, mut recording) = (place(&api).await, Recording::new(&api));
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"}))).query("dryRun", "All")).await;
    recording.send(Call::get(&path)).await.is(404);
    recording.send(Call::apply(&path, "alice", &data(json!({"a": "1"})))).await;
    recording.send(Call::apply(&path, "bob", &data(json!({"a": "2"}))).query("dryRun", "All").force()).await;
    recording.send(Call::get(&path)).await;
    recording.finish();
}

async fn a_secret_is_applied_with_strings(api: Target) {
    let (ns, mut recording) = (api.namespace().await, Recording::new(&api));
    let path = format!("{}/a", core(&ns, "secrets"));
    let body = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a"}, "type": "Opaque", "stringData": {"k": value}});
    recording.send(Call::apply(&path, "alice", &body("v"))).await;
    recording.send(Call::apply(&path, "alice", &body("w"))).await;
    recording.finish();
}

async fn apply_makes_an_object_only_with_its_namespace(api: Target) {
    let mut recording = Recording::new(&api);
    recording.send(Call::apply(&format!("{}/a", maps("nowhere")), "alice", &data(json!({})))).await.is(404);
    recording.finish();
}
