//! What holds for ownership whatever is written.

use atoll_apimachinery::apply::{ApplyError, Manager, Operation, apply, track};
use atoll_apimachinery::builtin::custom_resets;
use atoll_apimachinery::schema::{Schema, parse};
use proptest::collection::{btree_map, btree_set};
use proptest::option::of;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static WIDGET: LazyLock<Schema> = LazyLock::new(|| {
    let definition = crate::scenario::definitions().remove(0);
    parse(&definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]).expect("a structural schema")
});

fn by(name: &str, operation: Operation) -> Manager {
    Manager {
        name: name.to_owned(),
        operation,
        api_version: "test.atoll.dev/v1".to_owned(),
        subresource: None,
        resets: custom_resets(true, None),
    }
}

fn applied(live: Option<&Value>, spec: &Value, name: &str, at: u32) -> Result<Value, ApplyError> {
    let now = format!("2000-01-01T00:00:{at:02}Z");
    apply(live, &widget(spec), &WIDGET, &by(name, Operation::Apply), false, &now)
}

fn widget(spec: &Value) -> Value {
    json!({ "apiVersion": "test.atoll.dev/v1", "kind": "Widget", "metadata": { "name": "x" }, "spec": spec })
}

/// A spec whose keys all begin with `prefix`, so that two of different prefixes share nothing but `text`.
///
/// Nothing is empty: a server makes null of a map whose last key goes, which is a change for who owns it empty, and
/// forgets an applied list that became empty until it is applied again.
fn spec(prefix: &'static str) -> impl Strategy<Value = Value> {
    let name = || "[a-d]".prop_map(move |letter| format!("{prefix}{letter}"));
    let text = || "[x-z]";
    let map = btree_map(name(), text(), 1..4).prop_map(|map| json!(map));
    let set = btree_set(name(), 1..4).prop_map(|set| json!(set));
    let deep = btree_map(name(), (text(), of(text())), 1..3).prop_map(|map| {
        let objects = map.into_iter().map(|(name, (p, q))| (name, without_nulls(json!({ "p": p, "q": q }))));
        Value::Object(objects.collect())
    });
    let items = btree_map(name(), (of(text()), btree_set(text(), 1..3)), 1..4).prop_map(|items| {
        let items = items.into_iter().map(|(name, (value, tags))| {
            without_nulls(json!({ "name": name, "value": value, "tags": tags }))
        });
        Value::Array(items.collect())
    });
    let anything =
        btree_map(name(), prop_oneof![text().prop_map(Value::from), any::<i8>().prop_map(Value::from)], 1..3)
            .prop_map(|map| json!(map));
    (of(map), of(set), of(deep), of(items), of(anything)).prop_map(|(map, set, deep, items, anything)| {
        without_nulls(json!({
            "text": "x", "map": map, "set": set, "mapOfObjects": deep, "items": items, "anything": anything,
        }))
    })
}

fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(fields) = &mut object {
        fields.retain(|_, value| !value.is_null());
    }
    object
}

/// Without times, and with every list in one order.
fn settled(object: &Value) -> Value {
    match object {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "time");
            let mut kept: Map<_, _> = kept.map(|(name, value)| (name.clone(), settled(value))).collect();
            // Empty and absent are told apart by who came first: what is left when nobody has anything in it.
            kept.retain(|_, value| !value.as_array().is_some_and(Vec::is_empty));
            Value::Object(kept)
        }
        Value::Array(items) => {
            let mut items: Vec<_> = items.iter().map(settled).collect();
            items.sort_by_key(ToString::to_string);
            Value::Array(items)
        }
        scalar => scalar.clone(),
    }
}

proptest! {
    #[test]
    fn applying_twice_changes_nothing(first in spec("a"), other in spec("b"), wanted in spec("a")) {
        let start = applied(None, &first, "alice", 1).unwrap();
        let start = applied(Some(&start), &other, "bob", 2).unwrap();
        let once = applied(Some(&start), &wanted, "alice", 3).unwrap();
        let twice = applied(Some(&once), &wanted, "alice", 4).unwrap();
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn the_order_of_disjoint_applies_does_not_matter(first in spec("a"), second in spec("b")) {
        let start = applied(None, &json!({ "text": "x" }), "root", 0).unwrap();
        let one = applied(Some(&applied(Some(&start), &first, "alice", 1).unwrap()), &second, "bob", 2).unwrap();
        let two = applied(Some(&applied(Some(&start), &second, "bob", 1).unwrap()), &first, "alice", 2).unwrap();
        prop_assert_eq!(settled(&one), settled(&two));
    }

    #[test]
    fn what_an_applier_gives_up_is_gone_and_nothing_else(mine in spec("a"), theirs in spec("b")) {
        let start = applied(None, &json!({ "text": "x" }), "root", 0).unwrap();
        let alone = applied(Some(&start), &theirs, "bob", 1).unwrap();
        let both = applied(Some(&alone), &mine, "alice", 2).unwrap();
        let left = applied(Some(&both), &json!({ "text": "x" }), "alice", 3).unwrap();
        let (mut left, mut alone) = (settled(&left["spec"]), settled(&alone["spec"]));
        // A map that both had and that is empty now stays.
        for object in [&mut left, &mut alone] {
            if let Value::Object(fields) = object {
                fields.retain(|_, value| !value.is_null() && value != &json!({}));
            }
        }
        prop_assert_eq!(left, alone);
    }

    #[test]
    fn force_never_conflicts_and_wins(first in spec("a"), second in spec("a")) {
        let start = applied(None, &first, "alice", 1).unwrap();
        let by = by("bob", Operation::Apply);
        let forced = apply(Some(&start), &widget(&second), &WIDGET, &by, true, "2000-01-01T00:00:02Z").unwrap();
        let wanted = second["map"].as_object().into_iter().flatten();
        for (name, value) in wanted {
            prop_assert_eq!(&forced["spec"]["map"][name], value);
        }
        let again = apply(Some(&forced), &widget(&second), &WIDGET, &by, false, "2000-01-01T00:00:03Z").unwrap();
        prop_assert_eq!(forced, again);
    }

    #[test]
    fn a_write_that_changes_nothing_is_none(first in spec("a"), second in spec("a")) {
        let mut object = widget(&first);
        track(None, &mut object, &WIDGET, &by("creator", Operation::Update), "2000-01-01T00:00:01Z");
        let mut changed = object.clone();
        changed["spec"] = second;
        track(Some(&object), &mut changed, &WIDGET, &by("editor", Operation::Update), "2000-01-01T00:00:02Z");
        let mut same = changed.clone();
        track(Some(&changed), &mut same, &WIDGET, &by("other", Operation::Update), "2000-01-01T00:00:03Z");
        prop_assert_eq!(same, changed);
    }

    #[test]
    fn whatever_is_owned_is_there(writes in proptest::collection::vec((spec("a"), "[a-c]", any::<bool>()), 1..6)) {
        let mut live: Option<Value> = None;
        for (at, (spec, manager, applies)) in writes.iter().enumerate() {
            let now = format!("2000-01-01T00:00:{at:02}Z");
            let after = if *applies {
                let by = by(manager, Operation::Apply);
                apply(live.as_ref(), &widget(spec), &WIDGET, &by, true, &now).unwrap()
            } else {
                let mut after = live.clone().unwrap_or_else(|| widget(spec));
                after["spec"] = spec.clone();
                track(live.as_ref(), &mut after, &WIDGET, &by(manager, Operation::Update), &now);
                after
            };
            let entries = after.pointer("/metadata/managedFields").and_then(Value::as_array).cloned();
            for entry in entries.unwrap_or_default() {
                let missing = absent(&entry["fieldsV1"], &after);
                prop_assert!(missing.is_none(), "{missing:?} is owned by {entry} and is not in {after}");
            }
            live = Some(after);
        }
    }
}

/// A field of `fieldsV1` that the value does not have.
fn absent(fields: &Value, value: &Value) -> Option<String> {
    fields.as_object()?.iter().filter(|(key, _)| *key != ".").find_map(|(key, below)| {
        let (kind, rest) = key.split_once(':')?;
        let found = match kind {
            "f" => value.get(rest),
            "v" => {
                let wanted: Value = serde_json::from_str(rest).ok()?;
                value.as_array().and_then(|items| items.iter().find(|item| **item == wanted))
            }
            _ => {
                let keys: Map<String, Value> = serde_json::from_str(rest).ok()?;
                let matches = |item: &&Value| keys.iter().all(|(name, value)| item.get(name) == Some(value));
                value.as_array().and_then(|items| items.iter().find(matches))
            }
        };
        match found {
            None => Some(key.clone()),
            Some(found) => absent(below, found).map(|missing| format!("{key} {missing}")),
        }
    })
}

/// Any JSON, with the words of patches in it.
fn any_json() -> impl Strategy<Value = Value> {
    let words = prop_oneof![
        Just("name"),
        Just("$patch"),
        Just("$retainKeys"),
        Just("$setElementOrder/containers"),
        Just("$deleteFromPrimitiveList/finalizers"),
        Just("containers"),
        Just("finalizers"),
        Just("delete"),
        Just("replace"),
        Just("metadata"),
        Just("spec"),
        Just("op"),
        Just("path"),
        Just("/spec/containers/0"),
        Just("add"),
        Just("move"),
        Just("from"),
        Just("value"),
        Just("-1"),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        words.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(words.clone().prop_map(str::to_owned), inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// An answer or an error, and no panic.
    #[test]
    fn any_patch_on_anything_has_an_outcome(object in any_json(), patch in any_json()) {
        let pod = atoll_apimachinery::builtin::schema("", "v1", "Pod").expect("a built-in kind");
        let _ = atoll_apimachinery::patch::json(&object, &patch);
        let _ = atoll_apimachinery::patch::merge(&object, &patch);
        let _ = atoll_apimachinery::patch::strategic(&object, &patch, pod);
        let by = by("fuzz", Operation::Apply);
        let mut new = patch;
        if let Value::Object(fields) = &mut new {
            fields.insert("apiVersion".to_owned(), json!(by.api_version));
        }
        let _ = apply(Some(&object), &new, pod, &by, true, "2000-01-01T00:00:00Z");
        track(Some(&object), &mut new, pod, &by, "2000-01-01T00:00:00Z");
    }
}
