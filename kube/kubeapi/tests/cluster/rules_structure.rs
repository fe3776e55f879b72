//! What a custom kind's schema must be like itself; recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{CRDS, Kind, object, with};
use crate::recording::Recording;
use crate::rules::{rule, ruled};
use crate::rules_cel::limits;
use crate::suite::cases;
use crate::target::{Call, Target};

cases! {
    a_schema_must_be_structural,
    a_schema_needs_types,
    a_default_must_fit_its_schema,
    keys_of_a_keyed_list_must_be_required,
    a_rule_must_compile,
    types_in_a_rule_must_fit,
    a_rule_may_not_cost_too_much,
    a_rule_must_be_of_type_bool,
    forbidden_keywords_are_refused,
    metadata_may_be_limited_only_by_name,
    a_field_path_must_lead_somewhere,
    an_int_or_string_is_either,
    preserving_is_true_or_not_said,
}

/// Tries to install kinds whose `spec` has these schemas.
async fn installed(api: Target, schemas: &[Value]) {
    let (kind, mut recording) = (Kind::of(&api), Recording::new(&api));
    for schema in schemas {
        // As a dry run: the kinds are all called the same.
        recording.send(Call::post(CRDS, &kind.crd(schema.clone())).query("dryRun", "All")).await;
    }
    recording.finish();
}

async fn a_schema_must_be_structural(api: Target) {
    installed(api, &[
        json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"properties": {"b": {"type": "string"}}}]}),
        json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {"a": {"type": "string"}}}),
        json!({"type": "array"}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"type": "object", "properties": {"a": {"$ref": "#/definitions/x"}}}),
        json!({"type": "object", "uniqueItems": true}),
    ])
    .await;
}

async fn a_schema_needs_types(api: Target) {
    installed(
        api,
        &[
            json!({"properties": {"a": {"type": "string"}}}),
            object(json!({"a": {}})),
            object(json!({"a": {"type": "text"}})),
        ],
    )
    .await;
}

async fn a_default_must_fit_its_schema(api: Target) {
    installed(api, &[
        object(json!({"a": {"type": "integer", "default": "x"}})), object(json!({"a": {"type": "integer", "minimum": 5, "default": 1}})),
        object(json!({"a": with(object(json!({"b": {"type": "string"}})), json!({"default": {"unknown": 1}}))})), object(json!({"a": {"type": "string", "default": null}})),
    ])
    .await;
}

async fn keys_of_a_keyed_list_must_be_required(api: Target) {
    let list = |keys: Value, item: Value| {
        object(
            json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys, "items": item}}),
        )
    };
    let item = object(json!({"name": {"type": "string"}}));
    installed(
        api,
        &[
            list(json!(["name"]), item.clone()),
            list(json!([]), item.clone()),
            list(json!(["nothing"]), item.clone()),
            list(json!(["name"]), json!({"type": "string"})),
            object(json!({"l": {"type": "array", "x-kubernetes-list-type": "bag", "items": item}})),
            object(json!({"l": {"type": "string", "x-kubernetes-list-type": "set"}})),
        ],
    )
    .await;
}

async fn a_rule_must_compile(api: Target) {
    installed(
        api,
        &[
            ruled(limits(), json!([rule("self.min <=")])),
            ruled(limits(), json!([rule("self.nothing > 1")])),
            ruled(limits(), json!([rule("")])),
        ],
    )
    .await;
}

async fn types_in_a_rule_must_fit(api: Target) {
    installed(api, &[ruled(limits(), json!([rule("self.min + 'x' == 'y'")]))]).await;
}

async fn a_rule_may_not_cost_too_much(api: Target) {
    let list = |items: Value| json!({"type": "array", "items": items});
    let deep = list(list(json!({"type": "string"})));
    installed(
        api,
        &[object(
            json!({"l": ruled(deep, json!([rule("self.all(x, self.all(y, x.all(a, y.all(b, a == b))))")]))}),
        )],
    )
    .await;
}

async fn a_rule_must_be_of_type_bool(api: Target) {
    installed(
        api,
        &[
            ruled(limits(), json!([rule("self.min")])),
            ruled(limits(), json!([{"rule": "self.min > 1", "messageExpression": "self.min"}])),
        ],
    )
    .await;
}

async fn forbidden_keywords_are_refused(api: Target) {
    installed(
        api,
        &[
            object(json!({"a": {"type": "string", "definitions": {"x": {"type": "string"}}}})),
            object(json!({"a": {"type": "object", "patternProperties": {"x": {"type": "string"}}}})),
            object(json!({"a": {"type": "array", "items": [{"type": "string"}]}})),
        ],
    )
    .await;
}

async fn metadata_may_be_limited_only_by_name(api: Target) {
    let (kind, mut recording) = (Kind::of(&api), Recording::new(&api));
    for metadata in [
        object(json!({"name": {"type": "string", "pattern": "^a"}})),
        object(json!({"labels": {"type": "object", "additionalProperties": {"type": "string"}}})),
    ] {
        let mut crd = kind.crd(object(json!({})));
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = metadata;
        recording.send(Call::post(CRDS, &crd).query("dryRun", "All")).await;
    }
    recording.finish();
}

async fn a_field_path_must_lead_somewhere(api: Target) {
    let of = |path: &str| ruled(limits(), json!([{"rule": "self.min > 1", "fieldPath": path}]));
    installed(api, &[of(".nothing"), of("min"), of(".min")]).await;
}

async fn an_int_or_string_is_either(api: Target) {
    let both = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%$"});
    installed(
        api,
        &[
            object(json!({"v": both})),
            object(json!({"v": {"x-kubernetes-int-or-string": true, "type": "string"}})),
        ],
    )
    .await;
}

async fn preserving_is_true_or_not_said(api: Target) {
    installed(
        api,
        &[
            object(json!({"v": {"x-kubernetes-preserve-unknown-fields": false, "type": "object"}})),
            object(json!({"v": {"type": "object", "x-kubernetes-embedded-resource": true}})),
        ],
    )
    .await;
}
