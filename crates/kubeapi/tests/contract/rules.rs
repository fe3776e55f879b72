//! What a custom kind's schema says: types, limits, defaults, pruning, CEL; recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{CRDS, Kind, object, with};
use crate::suite::cases;
use crate::tape::Tape;
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
    a_rule_refuses,
    a_rule_sees_its_own_part,
    a_rule_has_a_message_of_its_own,
    a_rule_composes_its_message,
    a_rule_points_at_a_field,
    a_rule_gives_a_reason,
    rules_on_lists_and_maps,
    rules_use_strings_and_regular_expressions,
    rules_compare_times_and_quantities,
    rules_see_metadata_name_only,
    a_transition_rule_compares_with_before,
    a_transition_rule_does_not_run_on_create,
    an_optional_old_self_runs_on_create,
    an_immutable_field,
    a_field_that_may_be_set_once,
    transition_rules_in_keyed_lists,
    an_unchanged_invalid_field_is_let_be,
    an_unchanged_field_may_go_on_breaking_a_rule,
    status_rules_run_on_status,
    several_errors_come_together,
    a_schema_must_be_structural,
    a_schema_needs_types,
    a_default_must_fit_its_schema,
    keys_of_a_keyed_list_must_be_required,
    a_rule_must_compile,
    a_rule_may_not_cost_too_much,
    a_rule_must_be_of_type_bool,
    forbidden_keywords_are_refused,
    metadata_may_be_limited_only_by_name,
    a_field_path_must_lead_somewhere,
    an_int_or_string_is_either,
    preserving_is_true_or_not_said,
}

/// Installs a kind whose `spec` has this schema, and tries these specs, one object each.
async fn tried(api: Target, schema: Value, specs: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(schema).await;
    let mut tape = Tape::new(&api);
    for (spec, n) in specs.iter().zip(1..) {
        tape.send(Call::post(&kind.path(&ns), &kind.object(&format!("o{n}"), spec.clone()))).await;
    }
    tape.finish();
}

/// Makes an object with the first spec, and puts the others in its place, one after the other.
async fn changed(api: Target, schema: Value, specs: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(schema).await;
    let mut tape = Tape::new(&api);
    tape.send(Call::post(&kind.path(&ns), &kind.object("a", specs[0].clone()))).await;
    let path = format!("{}/a", kind.path(&ns));
    for spec in &specs[1..] {
        let patch = json!([{"op": "replace", "path": "/spec", "value": spec}]);
        tape.send(Call::patch(&path, Patch::Json, &patch)).await;
    }
    tape.finish();
}

/// Tries to install kinds whose `spec` has these schemas.
async fn installed(api: Target, schemas: &[Value]) {
    let (kind, mut tape) = (Kind::of(&api), Tape::new(&api));
    for schema in schemas {
        // As a dry run: the kinds are all called the same.
        tape.send(Call::post(CRDS, &kind.crd(schema.clone())).query("dryRun", "All")).await;
    }
    tape.finish();
}

fn rule(text: &str) -> Value {
    json!({"rule": text})
}

fn ruled(schema: Value, rules: Value) -> Value {
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

fn limits() -> Value {
    object(json!({"min": {"type": "integer"}, "max": {"type": "integer"}}))
}

async fn a_rule_refuses(api: Target) {
    tried(
        api,
        ruled(limits(), json!([rule("self.min <= self.max")])),
        &[json!({"min": 1, "max": 2}), json!({"min": 3, "max": 2}), json!({"min": 3})],
    )
    .await;
}

async fn a_rule_sees_its_own_part(api: Target) {
    let schema = object(
        json!({"n": ruled(json!({"type": "integer"}), json!([rule("self % 2 == 0")])), "t": ruled(json!({"type": "string", "maxLength": 10}), json!([rule("self.startsWith('x')")]))}),
    );
    tried(api, schema, &[json!({"n": 2, "t": "xy"}), json!({"n": 3, "t": "y"}), json!({})]).await;
}

async fn a_rule_has_a_message_of_its_own(api: Target) {
    let rules = json!([{"rule": "self.min <= self.max", "message": "min must not be above max"}]);
    tried(api, ruled(limits(), rules), &[json!({"min": 3, "max": 2})]).await;
}

async fn a_rule_composes_its_message(api: Target) {
    let text = object(json!({"name": {"type": "string", "maxLength": 10}, "n": {"type": "integer"}}));
    let rules = json!([{"rule": "self.n < 5", "messageExpression": "self.name + ' is too large'"}, {"rule": "self.n != 9", "message": "the spare", "messageExpression": "self.name.substring(5)"}]);
    tried(
        api,
        ruled(text, rules),
        &[json!({"n": 6, "name": "box"}), json!({"n": 9, "name": "box"}), json!({"n": 4, "name": "box"})],
    )
    .await;
}

async fn a_rule_points_at_a_field(api: Target) {
    let rules = json!([{"rule": "self.min <= self.max", "fieldPath": ".min", "message": "too large"}]);
    tried(api, ruled(limits(), rules), &[json!({"min": 3, "max": 2})]).await;
}

async fn a_rule_gives_a_reason(api: Target) {
    let of =
        |reason: &str, n: u8| json!({"rule": format!("self.min != {n}"), "reason": reason, "message": "no"});
    let rules = json!([
        of("FieldValueForbidden", 1),
        of("FieldValueRequired", 2),
        of("FieldValueDuplicate", 3),
        of("FieldValueInvalid", 4)
    ]);
    tried(
        api,
        ruled(limits(), rules),
        &[json!({"min": 1}), json!({"min": 2}), json!({"min": 3}), json!({"min": 4})],
    )
    .await;
}

async fn rules_on_lists_and_maps(api: Target) {
    let list = ruled(
        json!({"type": "array", "maxItems": 10, "items": {"type": "integer"}}),
        json!([rule("self.all(x, x > 0)"), rule("self.exists(x, x > 5)"), rule("size(self) < 4")]),
    );
    let map = ruled(
        json!({"type": "object", "maxProperties": 10, "additionalProperties": {"type": "string", "maxLength": 20}}),
        json!([rule("self.all(key, key.size() < 5 && self[key] != '')"), rule("!('bad' in self)")]),
    );
    tried(
        api,
        object(json!({"l": list, "m": map})),
        &[
            json!({"l": [1, 6], "m": {"a": "b"}}),
            json!({"l": [0, 6]}),
            json!({"l": [1]}),
            json!({"l": [1, 2, 3, 9]}),
            json!({"m": {"toolong": "b"}}),
            json!({"m": {"bad": "x"}}),
        ],
    )
    .await;
}

async fn rules_use_strings_and_regular_expressions(api: Target) {
    let rules = json!([
        rule("self.t.matches('^[a-z]+-[0-9]+$')"),
        rule("self.t.split('-')[1].size() == 2"),
        rule("self.t.lowerAscii() == self.t"),
        rule("self.t.indexOf('x') == -1")
    ]);
    let schema = ruled(object(json!({"t": {"type": "string", "maxLength": 50}})), rules);
    tried(
        api,
        schema,
        &[
            json!({"t": "ab-12"}),
            json!({"t": "AB-12"}),
            json!({"t": "ab-123"}),
            json!({"t": "x-12"}),
            json!({"t": "nothing"}),
        ],
    )
    .await;
}

async fn rules_compare_times_and_quantities(api: Target) {
    let schema = ruled(
        object(json!({
            "from": {"type": "string", "format": "date-time"}, "to": {"type": "string", "format": "date-time"}, "wait": {"type": "string", "format": "duration"},
            "size": {"type": "string", "maxLength": 20}, "at": {"type": "string", "maxLength": 60}, "url": {"type": "string", "maxLength": 60},
        })),
        json!([
            rule("!has(self.from) || self.from < self.to"),
            rule("!has(self.wait) || self.wait <= duration('10s')"),
            rule("!has(self.size) || quantity(self.size).isLessThan(quantity('1Gi'))"),
            rule("!has(self.at) || cidr('10.0.0.0/8').containsIP(self.at)"),
            rule("!has(self.url) || url(self.url).getScheme() == 'https'"),
        ]),
    );
    tried(api, schema, &[
        json!({"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z", "wait": "5s", "size": "500Mi", "at": "10.1.2.3", "url": "https://example.com"}),
        json!({"from": "2026-01-03T00:00:00Z", "to": "2026-01-02T00:00:00Z"}), json!({"wait": "1m"}), json!({"size": "2Gi"}), json!({"at": "192.168.0.1"}), json!({"url": "http://example.com"}),
    ])
    .await;
}

async fn rules_see_metadata_name_only(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let mut crd = kind.crd(object(json!({"n": {"type": "integer"}})));
    let root = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    root["x-kubernetes-validations"] =
        json!([{"rule": "self.metadata.name.startsWith('good')", "message": "choose a good name"}]);
    kind.install(crd).await;
    let mut tape = Tape::new(&api);
    for name in ["good-one", "bad-one"] {
        tape.send(Call::post(&kind.path(&ns), &kind.object(name, json!({"n": 1})))).await;
    }
    tape.finish();
}

async fn a_transition_rule_compares_with_before(api: Target) {
    let schema = ruled(
        object(json!({"n": {"type": "integer"}})),
        json!([{"rule": "self.n >= oldSelf.n", "message": "it may only grow"}]),
    );
    changed(api, schema, &[json!({"n": 2}), json!({"n": 3}), json!({"n": 1})]).await;
}

async fn a_transition_rule_does_not_run_on_create(api: Target) {
    let schema = object(
        json!({"t": ruled(json!({"type": "string", "maxLength": 10}), json!([rule("self == oldSelf + 'x'")]))}),
    );
    changed(
        api,
        schema,
        &[json!({"t": "a"}), json!({"t": "ax"}), json!({"t": "b"}), json!({}), json!({"t": "new"})],
    )
    .await;
}

async fn an_optional_old_self_runs_on_create(api: Target) {
    let rules = json!([{"rule": "oldSelf.hasValue() ? self == oldSelf.value() : self == 'first'", "optionalOldSelf": true}]);
    let schema = object(json!({"t": ruled(json!({"type": "string", "maxLength": 10}), rules)}));
    changed(
        api,
        schema,
        &[
            json!({"t": "first"}),
            json!({"t": "second"}),
            json!({}),
            json!({"t": "other"}),
            json!({"t": "first"}),
        ],
    )
    .await;
}

async fn an_immutable_field(api: Target) {
    let schema = object(
        json!({"t": ruled(json!({"type": "string"}), json!([{"rule": "self == oldSelf", "message": "is immutable"}])), "n": {"type": "integer"}}),
    );
    changed(api, schema, &[json!({"t": "a", "n": 1}), json!({"t": "a", "n": 2}), json!({"t": "b", "n": 2})])
        .await;
}

async fn a_field_that_may_be_set_once(api: Target) {
    let schema = ruled(
        object(json!({"t": {"type": "string"}})),
        json!([{"rule": "!has(oldSelf.t) || (has(self.t) && self.t == oldSelf.t)", "message": "may be set once", "fieldPath": ".t"}]),
    );
    changed(api, schema, &[json!({}), json!({"t": "a"}), json!({"t": "b"}), json!({})]).await;
}

async fn transition_rules_in_keyed_lists(api: Target) {
    let item = with(
        object(
            json!({"name": {"type": "string"}, "v": ruled(json!({"type": "integer"}), json!([rule("self >= oldSelf")]))}),
        ),
        json!({"required": ["name"]}),
    );
    let schema = object(
        json!({"l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"], "items": item}}),
    );
    changed(
        api,
        schema,
        &[
            json!({"l": [{"name": "a", "v": 5}, {"name": "b", "v": 1}]}),
            json!({"l": [{"name": "b", "v": 2}, {"name": "a", "v": 5}]}),
            json!({"l": [{"name": "b", "v": 1}]}),
            json!({"l": [{"name": "c", "v": 0}]}),
        ],
    )
    .await;
}

/// Makes an object, then tightens its kind's schema, then patches it.
async fn tightened(api: Target, before: Value, after: Value, first: Value, then: &[Value]) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    kind.with_spec(before).await;
    api.post(&kind.path(&ns), kind.object("a", first)).await.created();
    let patch = json!([{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec", "value": after}]);
    api.patch(&kind.crd_path(), Patch::Json, patch).await.ok();
    // It is in force as soon as a new object is refused.
    let give_up = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while api
        .send(
            Call::post(&kind.path(&ns), &kind.object("probe", json!({"t": "far too long", "n": -1})))
                .query("dryRun", "All"),
        )
        .await
        .code
        != 422
    {
        assert!(std::time::Instant::now() < give_up, "the new schema is not in force");
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let (path, mut tape) = (format!("{}/a", kind.path(&ns)), Tape::new(&api));
    for patch in then {
        tape.send(Call::patch(&path, Patch::Merge, patch)).await;
    }
    tape.finish();
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

async fn an_unchanged_field_may_go_on_breaking_a_rule(api: Target) {
    let before = object(json!({"t": {"type": "string", "maxLength": 20}, "n": {"type": "integer"}}));
    let after = object(
        json!({"t": ruled(json!({"type": "string", "maxLength": 20}), json!([rule("self.size() < 4")])), "n": {"type": "integer", "minimum": 0}}),
    );
    let then =
        [json!({"spec": {"n": 5}}), json!({"spec": {"t": "also too long"}}), json!({"spec": {"t": "ok"}})];
    tightened(api, before, after, json!({"t": "too long", "n": 1}), &then).await;
}

async fn status_rules_run_on_status(api: Target) {
    let (ns, kind) = (api.namespace().await, Kind::of(&api));
    let mut crd = kind.crd(object(json!({"n": {"type": "integer"}})));
    let version = &mut crd["spec"]["versions"][0];
    version["subresources"] = json!({"status": {}});
    version["schema"]["openAPIV3Schema"]["properties"]["status"] = object(
        json!({"n": ruled(json!({"type": "integer"}), json!([rule("self > 0")])), "t": {"type": "string"}}),
    );
    kind.install(crd).await;
    let (path, mut tape) = (format!("{}/a", kind.path(&ns)), Tape::new(&api));
    tape.send(Call::post(&kind.path(&ns), &kind.object("a", json!({"n": 1})))).await;
    for status in [json!({"n": 5, "t": "x"}), json!({"n": 0}), json!({"n": "x"}), json!({"unknown": 1})] {
        tape.send(Call::patch(&format!("{path}/status"), Patch::Merge, &json!({"status": status}))).await;
    }
    tape.finish();
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
            ruled(limits(), json!([rule("self.min + 'x' == 'y'")])),
        ],
    )
    .await;
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
    let (kind, mut tape) = (Kind::of(&api), Tape::new(&api));
    for metadata in [
        object(json!({"name": {"type": "string", "pattern": "^a"}})),
        object(json!({"labels": {"type": "object", "additionalProperties": {"type": "string"}}})),
    ] {
        let mut crd = kind.crd(object(json!({})));
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["metadata"] = metadata;
        tape.send(Call::post(CRDS, &crd).query("dryRun", "All")).await;
    }
    tape.finish();
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
