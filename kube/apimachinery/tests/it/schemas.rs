//! Defaulting, pruning, validating, rules.

use atoll_apimachinery::schema::{self, Rules, Schema};
use serde_json::{Value, json};

fn parsed(document: Value) -> Schema {
    schema::parse(&document).unwrap()
}

fn told(object: Value, old: Option<Value>, schema: &Schema) -> Vec<String> {
    let rules = Rules::compile(schema);
    schema::check(&object, old.as_ref(), schema, &rules, Vec::new()).iter().map(ToString::to_string).collect()
}

fn rule(document: Value) -> Schema {
    parsed(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "n": {"type": "integer"}, "s": {"type": "string"}, "at": {"type": "string", "format": "date-time"},
        "half": {"type": "number"}, "my-name": {"type": "string"}, "a__b": {"type": "string"},
        "l": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
              "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer",
                  "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "only grows"}]}}}},
        "m": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 3}},
    }, "x-kubernetes-validations": [document]}}}))
}

#[test]
fn defaults_fill_what_is_absent_or_null() {
    let schema = parsed(
        json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "a": {"type": "integer", "default": 1}, "b": {"type": "integer", "nullable": true, "default": 2}}}}}),
    );
    let mut object = json!({});
    schema::default(&mut object, &schema);
    assert_eq!(object, json!({"spec": {"a": 1, "b": 2}}));
    let mut object = json!({"spec": {"a": null, "b": null}});
    schema::default(&mut object, &schema);
    assert_eq!(object, json!({"spec": {"a": 1, "b": null}}));
}

#[test]
fn unknown_fields_go_and_are_named() {
    let schema = parsed(json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "ports": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"known": {"type": "object"}}}}}}}));
    let mut object = json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"}, "oops": 1,
        "spec": {"x": 1, "ports": [{"n": 1, "m": 2}], "free": {"any": 1, "known": {"z": 1}}}});
    assert_eq!(
        schema::prune(&mut object, &schema),
        ["oops", "spec.free.known.z", "spec.ports[0].m", "spec.x"]
    );
    assert_eq!(
        object,
        json!({"apiVersion": "a/v1", "kind": "A", "metadata": {"name": "x"},
               "spec": {"ports": [{"n": 1}], "free": {"any": 1, "known": {}}}})
    );
}

#[test]
fn what_was_wrong_and_is_unchanged_is_tolerated() {
    let schema = rule(json!({"rule": "true"}));
    let wrong = json!({"spec": {"m": {"a": "long", "b": "x"}}});
    assert_eq!(told(wrong.clone(), None, &schema).len(), 2, "too long, and rules not asked");
    assert!(told(wrong.clone(), Some(wrong.clone()), &schema).is_empty());
    let other = json!({"spec": {"m": {"a": "long", "b": "y"}}});
    assert!(told(other, Some(wrong.clone()), &schema).is_empty());
    let worse = json!({"spec": {"m": {"a": "longer", "b": "x"}}});
    assert_eq!(told(worse, Some(wrong), &schema)[0], "spec.m.a: Too long: may not be more than 3 bytes");
}

#[test]
fn rules_speak_with_their_messages() {
    for (document, spec, expected) in [
        (json!({"rule": "self.n > 3"}), json!({"n": 1}), "spec: Invalid value: failed rule: self.n > 3"),
        (
            json!({"rule": "self.n > 3", "message": "too few"}),
            json!({"n": 1}),
            "spec: Invalid value: too few",
        ),
        (
            json!({"rule": "self.n > 3", "messageExpression": "'n is ' + string(self.n)"}),
            json!({"n": 1}),
            "spec: Invalid value: n is 1",
        ),
        (
            json!({"rule": "self.n > 3", "message": "no", "reason": "FieldValueForbidden", "fieldPath": ".n"}),
            json!({"n": 1}),
            "spec.n: Forbidden: no",
        ),
        (
            json!({"rule": "self.n > 3"}),
            json!({}),
            "spec: Invalid value: \"object\": no such key: n evaluating rule: self.n > 3",
        ),
    ] {
        assert_eq!(told(json!({"spec": spec}), None, &rule(document)), [expected]);
    }
}

#[test]
fn rules_see_types_of_the_schema() {
    for source in [
        "self.at < timestamp('2030-01-01T00:00:00Z')",
        "self.half == 1.0",
        "self.my__dash__name == 'x'",
        "self.a__underscores__b == 'y'",
        "self.m['a.b'] == 'v'",
        "has(self.n) && !has(self.s)",
        "self.l.all(i, i.v > 0)",
        "self.l.exists_one(i, i.k == 'a')",
        "self.?s.orValue('none') == 'none' && self.?n.orValue(7) == 1 && self.?m['a.b'].hasValue()",
        "!self.?s.hasValue() && self[?'n'].hasValue() && self.l[0].k == 'a'",
        "isURL('https://a') && quantity('1Gi').isGreaterThan(quantity('1M'))",
        "'abc'.matches('^[a-c]+$') && ['a', 'b'].isSorted()",
    ] {
        let schema = rule(json!({"rule": source}));
        let object = json!({"spec": {"n": 1, "at": "2026-01-01T00:00:00Z", "half": 1, "my-name": "x", "a__b": "y",
            "m": {"a.b": "v"}, "l": [{"k": "a", "v": 1}]}});
        assert_eq!(told(object, None, &schema), [""; 0], "{source}");
    }
}

#[test]
fn transition_rules_need_an_old_value_that_belongs_to_the_new_one() {
    let schema = rule(json!({"rule": "self.n >= oldSelf.n", "message": "shrank"}));
    let object = |n: i64, v: i64| json!({"spec": {"n": n, "l": [{"k": "b", "v": 1}, {"k": "a", "v": v}]}});
    assert!(told(object(1, 1), None, &schema).is_empty());
    assert!(told(object(2, 5), Some(object(1, 5)), &schema).is_empty());
    assert_eq!(told(object(1, 5), Some(object(2, 5)), &schema), ["spec: Invalid value: shrank"]);
    assert_eq!(
        told(object(1, 4), Some(object(1, 5)), &schema),
        ["spec.l[1].v: Invalid value: 4: only grows"]
    );
    let optional = rule(json!({"rule": "oldSelf.hasValue() || self.n == 1", "optionalOldSelf": true}));
    assert!(told(json!({"spec": {"n": 1}}), None, &optional).is_empty());
    assert_eq!(told(json!({"spec": {"n": 2}}), None, &optional).len(), 1);
    assert!(told(json!({"spec": {"n": 2}}), Some(json!({"spec": {"n": 3}})), &optional).is_empty());
}
