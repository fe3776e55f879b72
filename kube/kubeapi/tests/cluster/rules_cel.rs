//! CEL in a custom kind's schema: rules, messages, transitions; recorded from a real server.

use serde_json::{Value, json};

use crate::fixtures::{Kind, object, with};
use crate::recording::Recording;
use crate::rules::{changed, rule, ruled, tightened, tried};
use crate::suite::cases;
use crate::target::{Call, Patch, Target};

cases! {
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
    an_unchanged_field_may_go_on_breaking_a_rule,
    status_rules_run_on_status,
}

pub(crate) fn limits() -> Value {
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
    let mut recording = Recording::new(&api);
    for name in ["good-one", "bad-one"] {
        recording.send(Call::post(&kind.path(&ns), &kind.object(name, json!({"n": 1})))).await;
    }
    recording.finish();
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
    let (path, mut recording) = (format!("{}/a", kind.path(&ns)), Recording::new(&api));
    recording.send(Call::post(&kind.path(&ns), &kind.object("a", json!({"n": 1})))).await;
    for status in [json!({"n": 5, "t": "x"}), json!({"n": 0}), json!({"n": "x"}), json!({"unknown": 1})] {
        recording
            .send(Call::patch(&format!("{path}/status"), Patch::Merge, &json!({"status": status})))
            .await;
    }
    recording.finish();
}
