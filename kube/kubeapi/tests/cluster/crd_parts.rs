//! What a custom kind may have besides a schema: status, scale, columns, names.

use serde_json::{Value, json};

use crate::fixtures::{CRDS, Kind, object, with};
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    status_is_apart_where_there_is_a_subresource,
    without_a_subresource_status_is_a_field,
    a_status_of_its_own_makes_no_generation,
    scale_shows_and_sets_replicas,
    scale_reads_a_selector,
    scale_without_replicas_is_refused,
    printer_columns_are_shown,
    columns_of_priority_are_for_wide,
    without_columns_name_and_age_are_shown,
    short_names_and_categories_are_told,
    selectable_fields_must_be_in_the_schema,
    printer_columns_must_be_paths,
}

/// A schema of one number.
fn size() -> Value {
    object(json!({"size": {"type": "integer"}}))
}

async fn with_subresources(api: &Target, subresources: Value) -> (String, Kind) {
    let (ns, kind) = (api.namespace().await, Kind::of(api));
    let spec = object(json!({"size": {"type": "integer"}, "replicas": {"type": "integer"}}));
    let mut crd = kind.crd(spec);
    crd["spec"]["versions"][0]["subresources"] = subresources;
    kind.install(crd).await;
    (ns, kind)
}

async fn status_is_apart_where_there_is_a_subresource(api: Target) {
    let (ns, kind) = with_subresources(&api, json!({"status": {}})).await;
    let body = with(kind.object("a", json!({"size": 1})), json!({"status": {"seen": 1}}));
    let path = format!("{}/a", kind.path(&ns));
    api.post(&kind.path(&ns), body).await.has("/status", Value::Null);
    api.merge(&path, json!({"status": {"seen": 2}})).await.has("/status", Value::Null);
    let answer =
        api.merge(&format!("{path}/status"), json!({"spec": {"size": 9}, "status": {"seen": 3}})).await;
    answer.ok();
    answer.has("/status", json!({"seen": 3})).has("/spec/size", 1).has("/metadata/generation", 1);
    api.merge(&path, json!({"spec": {"size": 2}}))
        .await
        .has("/status/seen", 3)
        .has("/metadata/generation", 2);
    api.get(&format!("{path}/status")).await.has("/status/seen", 3);
}

async fn without_a_subresource_status_is_a_field(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    let path = format!("{}/a", kind.path(&ns));
    let body = with(kind.object("a", json!({"size": 1})), json!({"status": {"seen": 1}}));
    api.post(&kind.path(&ns), body).await.has("/status/seen", 1);
    api.merge(&path, json!({"status": {"seen": 2}}))
        .await
        .has("/status/seen", 2)
        .has("/metadata/generation", 2);
    let answer = api.get(&format!("{path}/status")).await;
    answer.refused(404, "NotFound", &format!("widgets.{} \"a\" not found", kind.group));
}

async fn a_status_of_its_own_makes_no_generation(api: Target) {
    let (ns, kind) = with_subresources(&api, json!({"status": {}})).await;
    let path = format!("{}/a", kind.path(&ns));
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    let first = api.merge(&path, json!({"metadata": {"annotations": {"a": "1"}}})).await;
    first.has("/metadata/generation", 1);
    let answer = api
        .merge(
            &format!("{path}/status"),
            json!({"metadata": {"annotations": {"a": "2"}}, "status": {"x": 1}}),
        )
        .await;
    answer.has("/metadata/annotations", json!({"a": "1"}));
}

fn scaled() -> Value {
    json!({"status": {}, "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}})
}

async fn scale_shows_and_sets_replicas(api: Target) {
    let (ns, kind) = with_subresources(&api, scaled()).await;
    let made = api.post(&kind.path(&ns), kind.object("a", json!({"replicas": 2}))).await;
    let path = format!("{}/a/scale", kind.path(&ns));
    let scale = api.get(&path).await;
    scale
        .has("/kind", "Scale")
        .has("/apiVersion", "autoscaling/v1")
        .has("/spec/replicas", 2)
        .has("/status/replicas", 0);
    scale.has("/metadata/uid", made.at("/metadata/uid")).has("/metadata/resourceVersion", made.version());
    let answer = api.merge(&path, json!({"spec": {"replicas": 5}})).await;
    answer.ok();
    answer.has("/spec/replicas", 5);
    api.get(&format!("{}/a", kind.path(&ns))).await.has("/spec/replicas", 5).has("/metadata/generation", 2);
    let mut body = answer.body.clone();
    body["spec"]["replicas"] = json!(6);
    api.put(&path, body).await.has("/spec/replicas", 6);
}

async fn scale_reads_a_selector(api: Target) {
    let (ns, kind) = with_subresources(&api, scaled()).await;
    api.post(&kind.path(&ns), kind.object("a", json!({"replicas": 2}))).await.created();
    let status = json!({"status": {"replicas": 1, "selector": "app=x"}});
    api.merge(&format!("{}/a/status", kind.path(&ns)), status).await.ok();
    let scale = api.get(&format!("{}/a/scale", kind.path(&ns))).await;
    scale.has("/status", json!({"replicas": 1, "selector": "app=x"}));
}

async fn scale_without_replicas_is_refused(api: Target) {
    let (ns, kind) = with_subresources(&api, scaled()).await;
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    let answer = api.get(&format!("{}/a/scale", kind.path(&ns))).await;
    answer.refused(
        500,
        "InternalError",
        "Internal error occurred: the spec replicas field \".spec.replicas\" does not exist",
    );
}

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";

async fn with_columns(api: &Target, columns: Value) -> Value {
    let (ns, kind) = (api.namespace().await, Kind::of(api));
    let mut crd = kind.crd(object(json!({"size": {"type": "integer"}, "list": {"type": "array", "items": object(json!({"n": {"type": "string"}}))}, "flag": {"type": "boolean"}, "at": {"type": "string"}})));
    crd["spec"]["versions"][0]["additionalPrinterColumns"] = columns;
    kind.install(crd).await;
    let spec = json!({"size": 3, "list": [{"n": "x"}, {"n": "y"}], "flag": true});
    api.post(&kind.path(&ns), kind.object("a", spec)).await.created();
    api.send(Call::get(&kind.path(&ns)).accept(TABLE)).await.ok()
}

fn column(name: &str, kind: &str, path: &str) -> Value {
    json!({"name": name, "type": kind, "jsonPath": path})
}

async fn printer_columns_are_shown(api: Target) {
    let table = with_columns(
        &api,
        json!([
            with(column("Size", "integer", ".spec.size"), json!({"description": "How large."})),
            column("First", "string", ".spec.list[0].n"),
            column("All", "string", ".spec.list[*].n"),
            column("Flag", "boolean", ".spec.flag"),
            column("Missing", "string", ".spec.at"),
        ]),
    )
    .await;
    let names: Vec<_> =
        table["columnDefinitions"].as_array().into_iter().flatten().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["Name", "Size", "First", "All", "Flag", "Missing"]);
    assert_eq!(table["columnDefinitions"][1]["description"], "How large.");
    assert_eq!(table["columnDefinitions"][1]["type"], "integer");
    assert_eq!(table["rows"][0]["cells"], json!(["a", 3, "x", "x", true, null]));
    assert_eq!(table["rows"][0]["object"]["kind"], "PartialObjectMetadata");
}

async fn columns_of_priority_are_for_wide(api: Target) {
    let table = with_columns(
        &api,
        json!([
            with(column("Size", "integer", ".spec.size"), json!({"priority": 1})),
            column("Age", "date", ".metadata.creationTimestamp")
        ]),
    )
    .await;
    assert_eq!(table["columnDefinitions"][1]["priority"], 1);
    assert_eq!(table["columnDefinitions"][2]["type"], "date");
    let age = table["rows"][0]["cells"][2].as_str().unwrap_or_default();
    assert!(age.ends_with('s'), "{table:#}");
}

async fn without_columns_name_and_age_are_shown(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(size()).await;
    api.post(&kind.path(&ns), kind.object("a", json!({}))).await.created();
    let table = api.send(Call::get(&kind.path(&ns)).accept(TABLE)).await.ok();
    let names: Vec<_> =
        table["columnDefinitions"].as_array().into_iter().flatten().map(|c| c["name"].clone()).collect();
    assert_eq!(names, ["Name", "Age"]);
}

async fn short_names_and_categories_are_told(api: Target) {
    let kind = Kind::of(&api);
    let mut crd = kind.crd(size());
    crd["spec"]["names"]["shortNames"] = json!(["wd"]);
    crd["spec"]["names"]["categories"] = json!(["all"]);
    kind.install(crd).await;
    let list = api.until(&format!("/apis/{}/v1", kind.group), |answer| answer.code == 200).await;
    list.has("/resources/0/shortNames", json!(["wd"])).has("/resources/0/categories", json!(["all"]));
}

async fn selectable_fields_must_be_in_the_schema(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["versions"][0]["selectableFields"] = json!([{"jsonPath": ".spec.nothing"}]);
    let answer = api.post(CRDS, crd).await;
    answer.refused_with(422, "Invalid", "spec.selectableFields[0].jsonPath: Invalid value: \".spec.nothing\": is an invalid path: does not refer to a valid field");
}

async fn printer_columns_must_be_paths(api: Target) {
    let mut crd = Kind::of(&api).crd(size());
    crd["spec"]["versions"][0]["additionalPrinterColumns"] =
        json!([{"name": "X", "type": "colour", "jsonPath": "spec"}]);
    let answer = api.post(CRDS, crd).await;
    answer.is(422);
    answer.refused_with(422, "Invalid", "spec.additionalPrinterColumns[0].type: Invalid value: \"colour\": must be one of boolean,date,integer,number,string");
}
