//! Bodies made to take long, or to grow: none takes more work than its length, and no answer tells more than a person reads.
//!
//! With work that grows with the square of the length, each of these takes minutes: then the test is slow, not wrong.

use atoll_apimachinery::invalid::TOLD_MOST;
use atoll_apimachinery::selector::{fields, labels};
use atoll_apimachinery::{builtin, meta, patch, schema, strict};
use serde_json::{Value, json};

/// A third of what a server reads.
const BODY_MOST: usize = 1 << 20;

/// A body that repeats `part`, as long as may be.
fn body(start: &str, part: impl Fn(usize) -> String, end: &str) -> Vec<u8> {
    let mut text = start.to_owned();
    let mut at = 0;
    while text.len() < BODY_MOST - 100 {
        text.push_str(&part(at));
        at += 1;
    }
    text.push_str(end);
    text.into_bytes()
}

#[test]
fn a_body_of_doubled_keys_is_read_and_a_hundred_of_them_are_told() {
    let pairs = body("{\"z\":0", |at| format!(",\"{at:x}\":0,\"{at:x}\":1"), "}");
    let (value, doubled) = strict::parse(&pairs).unwrap();
    assert_eq!(doubled.len(), TOLD_MOST);
    assert_eq!((&doubled[0], &value["ff"]), (&"0".to_owned(), &json!(1)), "the last one counts");
    let one = body("{\"a\":0", |_| ",\"a\":1".to_owned(), "}");
    assert_eq!(strict::parse(&one).unwrap(), (json!({"a": 1}), vec!["a".to_owned()]));
    // A path as long as half a body, told for each of the keys below it.
    let long = "k".repeat(BODY_MOST / 2);
    let below = body(&format!("{{\"{long}\":{{\"z\":0"), |at| format!(",\"{at:x}\":0,\"{at:x}\":1"), "}}");
    let (_, doubled) = strict::parse(&below).unwrap();
    assert!(doubled.iter().map(String::len).sum::<usize>() < 200_000);
}

#[test]
fn a_body_of_unknown_fields_is_pruned_and_a_hundred_of_them_are_told() {
    let known = schema::parse(&json!({"type": "object", "properties": {"map": {
        "type": "object", "additionalProperties": {"type": "object", "properties": {}},
    }}}));
    let long = "k".repeat(BODY_MOST / 2);
    let bytes = body(&format!("{{\"map\":{{\"{long}\":{{\"z\":0"), |at| format!(",\"{at:x}\":0"), "}}}");
    let mut value = strict::parse(&bytes).unwrap().0;
    let dropped = schema::prune(&mut value, &known.unwrap());
    assert!(dropped.len() == TOLD_MOST && dropped.iter().map(String::len).sum::<usize>() < 200_000);
    assert_eq!(value["map"][&long], json!({}));
}

fn typed(items: Value) -> schema::Schema {
    let list = json!({"type": "array", "x-kubernetes-list-type": "set", "items": items});
    schema::parse(&json!({"type": "object", "properties": {"map": {
        "type": "object", "additionalProperties": list,
    }}}))
    .unwrap()
}

#[test]
fn a_list_of_wrong_items_is_refused_and_a_hundred_of_them_are_told() {
    let long = "k".repeat(BODY_MOST / 2);
    let bytes = body(&format!("{{\"map\":{{\"{long}\":[0"), |at| format!(",{at}"), "]}}");
    let value = strict::parse(&bytes).unwrap().0;
    let errors = schema::validate(&value, None, &typed(json!({"type": "string"})));
    assert_eq!(errors.len(), 1, "they have one path, as it is told");
    let bytes = body("{\"map\":{\"a\":[0", |at| format!(",{at}"), "]}}");
    let value = strict::parse(&bytes).unwrap().0;
    let errors = schema::validate(&value, None, &typed(json!({"type": "string"})));
    assert_eq!(errors.len(), TOLD_MOST);
}

/// A kind of problem that comes late is told though there were many of another kind: who looks for it alone must find it.
#[test]
fn many_problems_of_one_kind_hide_none_of_another() {
    let known = typed(
        json!({"type": "object", "required": ["a"], "properties": {"b": {"type": "string", "enum": ["x"]}}}),
    );
    let mut items = vec![json!({}); 5000];
    items.push(json!({"a": 1, "b": "y"}));
    let errors = schema::validate(&json!({"map": {"a": items}}), None, &known);
    assert!(errors.iter().any(|error| error.body().contains("\"y\"")), "{}", errors.len());
}

#[test]
fn a_long_set_is_looked_through_for_what_is_twice() {
    let integers = typed(json!({"type": "integer"}));
    let bytes = body("{\"map\":{\"a\":[0", |at| format!(",{}", at + 1), "]}}");
    let value = strict::parse(&bytes).unwrap().0;
    assert_eq!(schema::unique(&value, &integers), []);
    let bytes = body("{\"map\":{\"a\":[0", |at| format!(",{at},{at}"), "]}}");
    let value = strict::parse(&bytes).unwrap().0;
    assert_eq!(schema::unique(&value, &integers).len(), TOLD_MOST);
    assert_eq!(schema::unique(&json!({"map": {"a": [1, 2, 1]}}), &integers).len(), 1);
}

#[test]
fn a_long_list_is_compared_with_its_old_state_by_key() {
    let known = schema::parse(&json!({"type": "object", "properties": {"list": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["n"],
        "items": {"type": "object", "properties": {"n": {"type": "integer"}, "v": {"type": "string"}}},
    }}}))
    .unwrap();
    // All of them are wrong, and were: that is tolerated, and found out in one go.
    let items: Vec<Value> = (0..60_000).map(|n| json!({"n": n, "v": 1})).collect();
    let mut turned = items.clone();
    turned.reverse();
    assert_eq!(schema::validate(&json!({"list": items}), Some(&json!({"list": turned})), &known), []);
}

#[test]
fn a_strategic_patch_of_long_lists_is_merged() {
    let pod = builtin::schema("", "v1", "Pod").unwrap();
    let finalizers =
        |from: usize| (from..from + 60_000).map(|n| json!(format!("a.io/{n}"))).collect::<Vec<_>>();
    let live = json!({"metadata": {"finalizers": finalizers(0)}});
    let change = json!({"metadata": {"finalizers": finalizers(30_000)}});
    let merged = patch::strategic(&live, &change, pod).unwrap();
    assert_eq!(merged["metadata"]["finalizers"].as_array().unwrap().len(), 90_000);
    let gone = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": finalizers(0)}});
    assert_eq!(patch::strategic(&live, &gone, pod).unwrap()["metadata"]["finalizers"], json!([]));

    let containers = |from: usize, more: Value| {
        let one = |n: usize| {
            let mut container = json!({"name": format!("c{n}")});
            container.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            container
        };
        (from..from + 30_000).map(one).collect::<Vec<_>>()
    };
    let live = json!({"spec": {"containers": containers(0, json!({"image": "a"}))}});
    let change = json!({"spec": {"containers": containers(15_000, json!({"image": "b"}))}});
    let merged = patch::strategic(&live, &change, pod).unwrap();
    let merged = merged["spec"]["containers"].as_array().unwrap();
    assert_eq!(
        (merged.len(), &merged[0]["image"], &merged[44_999]["image"]),
        (45_000, &json!("a"), &json!("b"))
    );
    let gone = json!({"spec": {"containers": containers(1, json!({"$patch": "delete"}))}});
    let left = patch::strategic(&live, &gone, pod).unwrap();
    assert_eq!(left["spec"]["containers"].as_array().unwrap().len(), 1);
}

#[test]
fn metadata_has_limits_and_tells_a_hundred_problems() {
    let owners: Vec<Value> = (0..20_000)
        .map(|n| json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": n.to_string(), "controller": true}))
        .collect();
    let metadata = json!({"name": "a", "namespace": "b", "ownerReferences": owners});
    let errors = meta::validate(&metadata, true);
    assert!(errors[0].to_string().contains("Too many: 20000: must have at most 500 items"), "{}", errors[0]);
    assert!(errors.len() <= TOLD_MOST + 1);
    // An object from before there was a limit can still be changed, but not get more.
    let with = |count: usize| {
        let owners: Vec<Value> = (0..count)
            .map(|n| json!({"apiVersion": "v1", "kind": "A", "name": "a", "uid": n.to_string()}))
            .collect();
        json!({"name": "a", "namespace": "b", "resourceVersion": "1", "ownerReferences": owners})
    };
    assert_eq!(meta::validate_update(&with(600), &with(600)), []);
    assert_eq!(meta::validate_update(&with(601), &with(600)).len(), 1);
    let bad: serde_json::Map<String, Value> = (0..50_000).map(|n| (format!("!{n}"), json!(""))).collect();
    assert!(meta::labels(Some(&bad.into()), "metadata.labels").len() <= TOLD_MOST + 5);
}

#[test]
fn a_selector_has_at_most_a_thousand_terms() {
    let many = |count: usize| vec!["a"; count].join(",");
    assert!(labels::Selector::parse(&many(1000)).is_ok());
    assert!(labels::Selector::parse(&many(30_000)).unwrap_err().to_string().contains("at most 1000 terms"));
    let many = |count: usize| vec!["metadata.name=a"; count].join(",");
    assert!(fields::Selector::parse(&many(1000)).is_ok());
    assert!(fields::Selector::parse(&many(4000)).is_err());
    let values: Vec<String> = (0..10_000).map(|n| format!("v{n}")).collect();
    let long = labels::Selector::parse(&format!("a in ({})", values.join(","))).unwrap();
    let labelled = |value: &str| long.matches_labels(&json!({"a": value}));
    assert!(labelled("v77") && labelled("v9999") && !labelled("v10000"));
}
