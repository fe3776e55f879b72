//! Unknown and doubled fields: strict, warn, ignore. Dry runs.

use http::Method;
use serde_json::{Value, json};

use crate::fixtures::{Kind, container, deployment, grouped, map, maps, object, with};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    unknown_fields_are_ignored_when_asked,
    unknown_fields_warn_by_default,
    unknown_fields_are_refused_when_strict,
    doubled_fields_are_told,
    every_unknown_field_is_told,
    fields_of_another_case_are_unknown,
    an_unknown_validation_is_refused,
    custom_objects_are_checked_for_unknown_fields,
    unknown_metadata_is_told,
    patches_are_checked,
    puts_are_checked,
    deep_fields_have_paths,
    a_dry_run_of_create_makes_nothing,
    a_dry_run_still_refuses,
    a_dry_run_of_update_changes_nothing,
    a_dry_run_of_patch_changes_nothing,
    a_dry_run_of_delete_keeps_the_object,
    a_dry_run_of_a_collection_keeps_it,
    an_unknown_dry_run_is_refused,
    a_dry_run_of_a_generated_name,
}

fn strange() -> Value {
    with(map("a", json!({"k": "v"})), json!({"colour": "blue"}))
}

async fn unknown_fields_are_ignored_when_asked(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::post(&maps(&ns), &strange()).query("fieldValidation", "Ignore")).await;
    answer.created();
    assert!(answer.warnings().is_empty());
    answer.has("/colour", Value::Null);
}

async fn unknown_fields_warn_by_default(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::post(&maps(&ns), &strange())).await;
    answer.created();
    assert_eq!(answer.warnings(), ["299 - \"unknown field \\\"colour\\\"\""]);
    answer.has("/colour", Value::Null);
}

async fn unknown_fields_are_refused_when_strict(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::post(&maps(&ns), &strange()).query("fieldValidation", "Strict")).await;
    answer.refused(400, "BadRequest", "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: unknown field \"colour\"");
    api.get(&format!("{}/a", maps(&ns))).await.is(404);
}

async fn doubled_fields_are_told(api: Target) {
    let ns = api.namespace().await;
    let body = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"1\",\"k\":\"2\"}}";
    let call = Call::new(Method::POST, &maps(&ns)).body("application/json", body);
    let answer = api.send(call.clone().query("fieldValidation", "Strict")).await;
    answer.refused(400, "BadRequest", "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data.k\"");
    let answer = api.send(call).await;
    answer.created();
    assert_eq!(answer.warnings(), ["299 - \"duplicate field \\\"data.k\\\"\""]);
    answer.has("/data/k", "2");
}

async fn every_unknown_field_is_told(api: Target) {
    let ns = api.namespace().await;
    let mut body = with(strange(), json!({"shape": "round"}));
    body["metadata"]["size"] = json!(5);
    let answer = api.send(Call::post(&maps(&ns), &body).query("fieldValidation", "Strict")).await;
    answer.refused_with(400, "BadRequest", "strict decoding error: ");
    for field in ["unknown field \"colour\"", "unknown field \"metadata.size\"", "unknown field \"shape\""] {
        answer.refused_with(400, "BadRequest", field);
    }
}

async fn fields_of_another_case_are_unknown(api: Target) {
    let ns = api.namespace().await;
    let body =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "Data": {"k": "v"}});
    let answer = api.send(Call::post(&maps(&ns), &body).query("fieldValidation", "Strict")).await;
    answer.refused_with(400, "BadRequest", "unknown field \"Data\"");
}

async fn an_unknown_validation_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::post(&maps(&ns), &strange()).query("fieldValidation", "Maybe")).await;
    answer.refused(422, "Invalid", "CreateOptions.meta.k8s.io \"\" is invalid: fieldValidation: Unsupported value: \"Maybe\": supported values: \"\", \"Ignore\", \"Strict\", \"Warn\"");
}

async fn custom_objects_are_checked_for_unknown_fields(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(
        json!({"list": {"type": "array", "items": object(json!({"a": {"type": "string"}}))}}),
    ))
    .await;
    let body = kind.object("a", json!({"x": 1, "list": [{"a": "1", "b": 2}]}));
    let answer = api.send(Call::post(&kind.path(&ns), &body).query("fieldValidation", "Strict")).await;
    answer.refused(400, "BadRequest", "Widget in version \"v1\" cannot be handled as a Widget: strict decoding error: unknown field \"spec.list[0].b\", unknown field \"spec.x\"");
    let answer = api.post(&kind.path(&ns), body).await;
    answer.created();
    assert_eq!(
        answer.warnings(),
        ["299 - \"unknown field \\\"spec.list[0].b\\\"\"", "299 - \"unknown field \\\"spec.x\\\"\""]
    );
}

async fn unknown_metadata_is_told(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(object(json!({}))).await;
    let mut body = kind.object("a", json!({}));
    body["metadata"]["colour"] = json!("blue");
    let answer = api.send(Call::post(&kind.path(&ns), &body).query("fieldValidation", "Strict")).await;
    answer.refused_with(400, "BadRequest", "strict decoding error: unknown field \"metadata.colour\"");
}

async fn patches_are_checked(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let path = format!("{}/a", maps(&ns));
    let call = Call::patch(&path, Patch::Merge, &json!({"colour": "blue"}));
    let answer = api.send(call.clone().query("fieldValidation", "Strict")).await;
    answer.refused_with(422, "Invalid", "strict decoding error: unknown field \"colour\"");
    let answer = api.send(call).await;
    answer.ok();
    assert_eq!(answer.warnings(), ["299 - \"unknown field \\\"colour\\\"\""]);
    let call =
        Call::patch(&path, Patch::Strategic, &json!({"colour": "blue"})).query("fieldValidation", "Strict");
    api.send(call).await.refused_with(422, "Invalid", "unknown field \"colour\"");
}

async fn puts_are_checked(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let call = Call::put(&format!("{}/a", maps(&ns)), &strange()).query("fieldValidation", "Strict");
    api.send(call).await.refused_with(400, "BadRequest", "strict decoding error: unknown field \"colour\"");
}

async fn deep_fields_have_paths(api: Target) {
    let ns = api.namespace().await;
    let path = grouped("apps/v1", &ns, "deployments");
    let body = deployment(
        "d",
        json!([with(
            container("c", "i:1"),
            json!({"imagePullPolcy": "Never", "ports": [{"containerPort": 1, "prot": "x"}]})
        )]),
    );
    let answer = api.send(Call::post(&path, &body).query("fieldValidation", "Strict")).await;
    answer.refused(400, "BadRequest", "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: unknown field \"spec.template.spec.containers[0].imagePullPolcy\", unknown field \"spec.template.spec.containers[0].ports[0].prot\"");
}

fn dry(call: Call) -> Call {
    call.query("dryRun", "All")
}

async fn a_dry_run_of_create_makes_nothing(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(dry(Call::post(&maps(&ns), &map("a", json!({"k": "v"}))))).await;
    answer.created();
    answer.has("/data/k", "v").has("/metadata/resourceVersion", Value::Null);
    assert!(answer.at("/metadata/uid").is_string());
    api.get(&format!("{}/a", maps(&ns))).await.is(404);
}

async fn a_dry_run_still_refuses(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    api.send(dry(Call::post(&maps(&ns), &map("a", json!({}))))).await.refused(
        409,
        "AlreadyExists",
        "configmaps \"a\" already exists",
    );
    let answer = api.send(dry(Call::post(&maps(&ns), &map("Bad", json!({}))))).await;
    answer.is(422);
}

async fn a_dry_run_of_update_changes_nothing(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let path = format!("{}/a", maps(&ns));
    let answer = api.send(dry(Call::put(&path, &map("a", json!({"k": "w"}))))).await;
    answer.ok();
    answer.has("/data/k", "w").has("/metadata/resourceVersion", made.version());
    assert_eq!(api.get(&path).await.ok(), made.body);
}

async fn a_dry_run_of_patch_changes_nothing(api: Target) {
    let ns = api.namespace().await;
    let made = api.post(&maps(&ns), map("a", json!({"k": "v"}))).await;
    let path = format!("{}/a", maps(&ns));
    for kind in [Patch::Merge, Patch::Strategic] {
        let answer = api.send(dry(Call::patch(&path, kind, &json!({"data": {"l": "w"}})))).await;
        answer.has("/data", json!({"k": "v", "l": "w"}));
    }
    assert_eq!(api.get(&path).await.ok(), made.body);
}

async fn a_dry_run_of_delete_keeps_the_object(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    let path = format!("{}/a", maps(&ns));
    api.send(dry(Call::delete(&path))).await.has("/status", "Success");
    api.get(&path).await.ok();
    api.delete_with(&path, json!({"dryRun": ["All"]})).await.has("/status", "Success");
    api.get(&path).await.ok();
}

async fn a_dry_run_of_a_collection_keeps_it(api: Target) {
    let ns = api.namespace().await;
    api.post(&maps(&ns), map("a", json!({}))).await.created();
    api.send(dry(Call::delete(&maps(&ns)))).await.ok();
    assert_eq!(api.get(&maps(&ns)).await.names(), ["a"]);
}

async fn an_unknown_dry_run_is_refused(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(Call::post(&maps(&ns), &map("a", json!({}))).query("dryRun", "Some")).await;
    answer.refused(422, "Invalid", "CreateOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"Some\"]: supported values: \"All\"");
    let answer = api
        .send(Call::patch(&format!("{}/a", maps(&ns)), Patch::Merge, &json!({})).query("dryRun", "true"))
        .await;
    answer.refused_with(
        422,
        "Invalid",
        "PatchOptions.meta.k8s.io \"\" is invalid: dryRun: Unsupported value: [\"true\"]",
    );
}

async fn a_dry_run_of_a_generated_name(api: Target) {
    let ns = api.namespace().await;
    let answer = api.send(dry(Call::post(&maps(&ns), &json!({"metadata": {"generateName": "x-"}})))).await;
    let name = answer.created()["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    assert!(name.starts_with("x-") && name.len() == 7, "{name}");
}
