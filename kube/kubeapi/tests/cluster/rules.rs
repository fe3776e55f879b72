//! What a custom kind's schema says: types, limits, defaults, pruning, CEL; recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{Kind, object, with};
use crate::recording::Recording;
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
    types_are_checked,
    required_fields_are_wanted,
    numbers_have_limits,
    texts_have_lengths_and_patterns,
    lists_have_lengths,
    maps_have_sizes,
    enums_name_what_is_allowed,
    formats_are_checked,
    nullable_fields_may_be_null,
    numbers_or_texts,
    any_all_one_and_not,
    sets_hold_each_value_once,
    keyed_lists_hold_each_key_once,
    defaults_are_filled_in,
    defaults_fill_nested_objects,
    defaults_replace_null_where_it_is_not_allowed,
    defaults_of_additional_properties,
    unknown_fields_are_pruned,
    unknown_fields_are_kept_where_asked,
    embedded_resources_are_checked,
    embedded_objects_keep_their_metadata,
    an_unchanged_invalid_field_is_let_be,
    several_errors_come_together,
}

/// Installs a kind whose `spec` has this schema, and tries these specs, one object each.
pub(crate) async fn tried(api: Target, schema: Value, specs: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(schema).await;
    let mut recording = Recording::new(&api);
    for (spec, n) in specs.iter().zip(1..) {
        recording.send(Call::post(&kind.path(&ns), &kind.object(&format!("o{n}"), spec.clone()))).await;
    }
    recording.finish();
}

/// Makes an object with the first spec, and puts the others in its place, one after the other.
pub(crate) async fn changed(api: Target, schema: Value, specs: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(schema).await;
    let mut recording = Recording::new(&api);
    recording.send(Call::post(&kind.path(&ns), &kind.object("a", specs[0].clone()))).await;
    let path = format!("{}/a", kind.path(&ns));
    for spec in &specs[1..] {
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        recording.send(Call::patch(&path, Patch::Json, &patch)).await;
    }
    recording.finish();
}

pub(crate) fn rule(text: &str) -> Value {
    json!({"rule": text})
}

pub(crate) fn ruled(schema: Value, rules: Value) -> Value {
    with(schema, json!({"x-kubernetes-validations": rules}))
}

async fn types_are_checked(api: Target) {
    let schema = object(json!({
        "text": {"type": "string"}, "whole": {"type": "integer"}, "number": {"type": "number"}, "flag": {"type": "boolean"},
        "list": {"type": "array", "items": {"type": "string"}}, "map": object(json!({"a": {"type": "string"}})),
    }));
    tried(
        api,
        schema,
        &[
            json!({"text": "t", "whole": 1, "number": 1.5, "flag": true, "list": ["a"], "map": {"a": "b"}}),
            json!({"text": 1}),
            json!({"whole": 1.5}),
            json!({"number": "1"}),
            json!({"flag": "true"}),
            json!({"list": "a"}),
            json!({"list": ["a", 5]}),
            json!({"map": ["a"]}),
            json!({"text": null}),
            json!("text"),
        ],
    )
    .await;
}

async fn required_fields_are_wanted(api: Target) {
    let inner = with(object(json!({"x": {"type": "string"}})), json!({"required": ["x"]}));
    let schema = with(object(json!({"a": {"type": "string"}, "b": inner})), json!({"required": ["a"]}));
    tried(api, schema, &[json!({"a": ""}), json!({}), json!({"a": "1", "b": {}}), json!({"b": {}})]).await;
}

async fn numbers_have_limits(api: Target) {
    let schema = object(json!({
        "n": {"type": "integer", "minimum": 1, "maximum": 10}, "m": {"type": "integer", "multipleOf": 5},
        "x": {"type": "number", "minimum": 0, "exclusiveMinimum": true, "maximum": 1, "exclusiveMaximum": true},
    }));
    tried(
        api,
        schema,
        &[
            json!({"n": 1, "m": 10, "x": 0.5}),
            json!({"n": 0}),
            json!({"n": 11}),
            json!({"m": 7}),
            json!({"x": 0}),
            json!({"x": 1}),
        ],
    )
    .await;
}

async fn texts_have_lengths_and_patterns(api: Target) {
    let schema = object(json!({
        "t": {"type": "string", "minLength": 2, "maxLength": 4}, "p": {"type": "string", "pattern": "^[a-z]+$"},
    }));
    tried(
        api,
        schema,
        &[
            json!({"t": "ab", "p": "abc"}),
            json!({"t": "a"}),
            json!({"t": "abcde"}),
            json!({"t": "äöüß"}),
            json!({"p": "ABC"}),
        ],
    )
    .await;
}

async fn lists_have_lengths(api: Target) {
    let schema =
        object(json!({"l": {"type": "array", "minItems": 1, "maxItems": 2, "items": {"type": "integer"}}}));
    tried(api, schema, &[json!({"l": [1]}), json!({"l": []}), json!({"l": [1, 2, 3]})]).await;
}

async fn maps_have_sizes(api: Target) {
    let schema = object(
        json!({"m": {"type": "object", "minProperties": 1, "maxProperties": 2, "additionalProperties": {"type": "integer"}}}),
    );
    tried(
        api,
        schema,
        &[
            json!({"m": {"a": 1}}),
            json!({"m": {}}),
            json!({"m": {"a": 1, "b": 2, "c": 3}}),
            json!({"m": {"a": "x"}}),
        ],
    )
    .await;
}

async fn enums_name_what_is_allowed(api: Target) {
    let schema = object(
        json!({"e": {"type": "string", "enum": ["Red", "Blue"]}, "n": {"type": "integer", "enum": [1, 2]}}),
    );
    tried(
        api,
        schema,
        &[json!({"e": "Red", "n": 2}), json!({"e": "red"}), json!({"n": 3}), json!({"e": ""})],
    )
    .await;
}

async fn formats_are_checked(api: Target) {
    let text = |format: &str| json!({"type": "string", "format": format});
    let schema = object(json!({
        "time": text("date-time"), "date": text("date"), "uuid": text("uuid"), "ip": text("ipv4"), "ip6": text("ipv6"), "cidr": text("cidr"),
        "bytes": text("byte"), "url": text("uri"), "mail": text("email"), "host": text("hostname"), "span": text("duration"),
        "small": {"type": "integer", "format": "int32"}, "unknown": text("no-such-format"),
    }));
    tried(api, schema, &[
        json!({"time": "2026-01-01T00:00:00Z", "date": "2026-01-01", "uuid": "11111111-2222-3333-4444-555555555555", "ip": "10.0.0.1", "ip6": "::1", "cidr": "10.0.0.0/8", "bytes": "eA==", "url": "https://example.com/", "mail": "a@example.com", "host": "example.com", "span": "5s", "small": 5, "unknown": "anything"}),
        json!({"time": "yesterday"}), json!({"date": "2026-13-01"}), json!({"uuid": "x"}), json!({"ip": "10.0.0.300"}), json!({"ip6": "10.0.0.1"}), json!({"cidr": "10.0.0.0"}),
        json!({"bytes": "%"}), json!({"url": "no url"}), json!({"mail": "nobody"}), json!({"host": "-x"}), json!({"span": "long"}), json!({"small": 3_000_000_000_u64}),
    ])
    .await;
}

async fn nullable_fields_may_be_null(api: Target) {
    let schema = object(json!({"may": {"type": "string", "nullable": true}, "not": {"type": "string"}}));
    tried(api, schema, &[json!({"may": null}), json!({"not": null}), json!({"may": "x", "not": "y"})]).await;
}

async fn numbers_or_texts(api: Target) {
    let schema = object(json!({"v": {"x-kubernetes-int-or-string": true}}));
    tried(api, schema, &[json!({"v": 5}), json!({"v": "50%"}), json!({"v": 1.5}), json!({"v": true})]).await;
}

async fn any_all_one_and_not(api: Target) {
    let schema = with(
        object(json!({"a": {"type": "integer"}, "b": {"type": "integer"}})),
        json!({
            "anyOf": [{"required": ["a"]}, {"required": ["b"]}],
            "allOf": [{"properties": {"a": {"minimum": 1}}}],
            "not": {"required": ["a", "b"]},
        }),
    );
    tried(
        api,
        schema,
        &[json!({"a": 1}), json!({"b": 1}), json!({}), json!({"a": 0}), json!({"a": 1, "b": 1})],
    )
    .await;
}

async fn sets_hold_each_value_once(api: Target) {
    let schema =
        object(json!({"s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}}));
    tried(api, schema, &[json!({"s": ["a", "b"]}), json!({"s": ["a", "b", "a"]})]).await;
}

async fn keyed_lists_hold_each_key_once(api: Target) {
    let item = with(
        object(
            json!({"port": {"type": "integer"}, "protocol": {"type": "string", "default": "TCP"}, "name": {"type": "string"}}),
        ),
        json!({"required": ["port"]}),
    );
    let schema = object(
        json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["port", "protocol"], "items": item}}),
    );
    tried(
        api,
        schema,
        &[
            json!({"l": [{"port": 1}, {"port": 1, "protocol": "UDP"}]}),
            json!({"l": [{"port": 1}, {"port": 1, "protocol": "TCP"}]}),
            json!({"l": [{"name": "x"}]}),
        ],
    )
    .await;
}

async fn defaults_are_filled_in(api: Target) {
    let schema = object(json!({
        "n": {"type": "integer", "default": 3}, "t": {"type": "string", "default": "x"}, "f": {"type": "boolean", "default": false},
        "l": {"type": "array", "items": {"type": "string"}, "default": ["a"]}, "none": {"type": "string"},
    }));
    changed(api, schema, &[json!({}), json!({"n": 5, "t": "", "l": []}), json!({"n": 5})]).await;
}

async fn defaults_fill_nested_objects(api: Target) {
    let item = object(json!({"name": {"type": "string"}, "mode": {"type": "string", "default": "slow"}}));
    let inner = with(object(json!({"a": {"type": "integer", "default": 1}})), json!({"default": {}}));
    let without = object(json!({"a": {"type": "integer", "default": 1}}));
    let schema =
        object(json!({"inner": inner, "without": without, "list": {"type": "array", "items": item}}));
    tried(
        api,
        schema,
        &[json!({}), json!({"without": {}, "list": [{"name": "x"}, {"name": "y", "mode": "fast"}]})],
    )
    .await;
}

async fn defaults_replace_null_where_it_is_not_allowed(api: Target) {
    let schema = object(json!({
        "a": {"type": "string", "default": "x"}, "b": {"type": "string", "nullable": true, "default": "x"}, "c": {"type": "string"},
    }));
    tried(api, schema, &[json!({"a": null, "b": null}), json!({"c": null})]).await;
}

async fn defaults_of_additional_properties(api: Target) {
    let value = object(json!({"weight": {"type": "integer", "default": 1}}));
    let schema = object(json!({"m": {"type": "object", "additionalProperties": value}}));
    tried(api, schema, &[json!({"m": {"a": {}, "b": {"weight": 2}}})]).await;
}

async fn unknown_fields_are_pruned(api: Target) {
    let schema = object(
        json!({"a": {"type": "string"}, "inner": object(json!({"b": {"type": "string"}})), "list": {"type": "array", "items": object(json!({"c": {"type": "string"}}))}}),
    );
    tried(
        api,
        schema,
        &[json!({"a": "1", "x": 1, "inner": {"b": "1", "y": 1}, "list": [{"c": "1", "z": 1}]})],
    )
    .await;
}

async fn unknown_fields_are_kept_where_asked(api: Target) {
    let schema = object(json!({
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"known": object(json!({"a": {"type": "string"}}))}},
        "any": {"x-kubernetes-preserve-unknown-fields": true},
    }));
    tried(
        api,
        schema,
        &[json!({"free": {"x": {"y": [1]}, "known": {"a": "1", "pruned": 1}}, "any": [1, "a", {"b": null}]})],
    )
    .await;
}

async fn embedded_resources_are_checked(api: Target) {
    let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
    tried(api, object(json!({"template": embedded})), &[
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "labels": {"a": "b"}}, "spec": {"any": 1}}}),
        json!({"template": {"spec": {}}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "Bad Name"}}}),
        json!({"template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 5}}}}),
    ])
    .await;
}

async fn embedded_objects_keep_their_metadata(api: Target) {
    let embedded =
        with(object(json!({"data": {"type": "string"}})), json!({"x-kubernetes-embedded-resource": true}));
    tried(api, object(json!({"template": embedded})), &[
        json!({"template": {"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "x", "unknown": 1, "annotations": {"a": "b"}}, "data": "d", "pruned": 1}}),
    ])
    .await;
}

/// Makes an object, then tightens its kind's schema, then patches it.
pub(crate) async fn tightened(api: Target, before: Value, after: Value, first: Value, then: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(before).await;
    api.post(&kind.path(&ns), kind.object("a", first)).await.created();
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec", "value": after}]);
    api.patch(&kind.crd_path(), Patch::Json, patch).await.ok();
    // It is in force as soon as a new object is refused.
    let probe = kind.object("probe", json!({"t": "far too long", "n": -1}));
    let probe = Call::post(&kind.path(&ns), &probe).query("dryRun", "All");
    api.until_answered(&probe, |answer| answer.code == 422).await;
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    for patch in then {
        recording.send(Call::patch(&path, Patch::Merge, patch)).await;
    }
    recording.finish();
}

async fn an_unchanged_invalid_field_is_let_be(api: Target) {
    let before = object(json!({"t": {"type": "string"}, "n": {"type": "integer"}}));
    let after =
        object(json!({"t": {"type": "string", "maxLength": 3}, "n": {"type": "integer", "minimum": 0}}));
    let then = [
        json!({"metadata": {"labels": {"a": "b"}}}),
        json!({"spec": {"n": 5}}),
        json!({"spec": {"t": "also too long"}}),
        json!({"spec": {"n": -5}}),
    ];
    tightened(api, before, after, json!({"t": "too long", "n": 1}), &then).await;
}

async fn several_errors_come_together(api: Target) {
    let schema = with(
        object(
            json!({"n": {"type": "integer", "maximum": 5}, "t": {"type": "string", "enum": ["a"]}, "r": {"type": "string"}}),
        ),
        json!({"required": ["r"], "x-kubernetes-validations": [rule("self.n < 3")]}),
    );
    tried(api, schema, &[json!({"n": 9, "t": "b"}), json!({"n": 4, "r": "x"})]).await;
}
