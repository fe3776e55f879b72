//! Plays recorded scenarios without a server, and compares every outcome.

use crate::scenario::{
    KindParts, Outcome, Scenario, Step, Write, change, definitions, load, mask, recorded, sorted, time_of,
};
use atoll_apimachinery::apply::{ApplyError, Manager, Operation, apply, settle, track};
use atoll_apimachinery::builtin;
use atoll_apimachinery::invalid::status;
use atoll_apimachinery::patch::{PatchError, json, merge, strategic};
use atoll_apimachinery::schema::{self, Schema, parse};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

#[test]
fn every_scenario_ends_as_on_a_real_server() {
    let mut differing = Vec::new();
    let mut count = 0;
    for (file, scenarios) in load() {
        let known = recorded(&file);
        for scenario in &scenarios {
            count += 1;
            let Some(outcomes) = known.get(&scenario.name) else {
                differing.push(format!("{file}: {:?} was never recorded", scenario.name));
                continue;
            };
            differing.extend(play(scenario, outcomes).map(|difference| format!("{file}: {difference}")));
        }
        let gone = known.keys().filter(|name| scenarios.iter().all(|scenario| scenario.name != **name));
        differing.extend(gone.map(|name| format!("{file}: {name:?} is recorded and nowhere else")));
    }
    assert!(
        differing.is_empty(),
        "{} of {count} scenarios differ:\n{}",
        differing.len(),
        differing.join("\n")
    );
    assert!(count >= 60, "only {count} scenarios");
}

/// Replays one scenario; says what differs first.
fn play(scenario: &Scenario, outcomes: &[Outcome]) -> Option<String> {
    let mut live: Option<Value> = None;
    for (at, (step, expected)) in scenario.steps.iter().zip(outcomes).enumerate() {
        let found = match write(scenario, step, live.as_ref(), &time_of(at)) {
            Ok(object) => {
                let mut masked = object.clone();
                mask(&mut masked);
                let stored = live.as_ref() != Some(&object);
                live = Some(object);
                Outcome::Object { stored, object: masked }
            }
            Err(error) => error,
        };
        if found != *expected {
            return Some(format!(
                "{:?}, step {at}: {}",
                scenario.name,
                difference(&json!(expected), &json!(found), "").unwrap_or_default()
            ));
        }
    }
    None
}

/// What a server makes of one write, reduced to what fields and their owners need.
fn write(scenario: &Scenario, step: &Step, live: Option<&Value>, now: &str) -> Result<Value, Outcome> {
    let parts = KindParts::of(scenario, step);
    let (schema, resets) = schema_of(&parts, step.on.as_deref());
    let live = live.map(|live| {
        let mut live = live.clone();
        live["apiVersion"] = json!(parts.api_version());
        live
    });
    let live = live.as_ref();
    let operation = match step.write() {
        Write::Apply(_) => Operation::Apply,
        _ => Operation::Update,
    };
    let by = Manager {
        name: step.manager().to_owned(),
        operation,
        api_version: parts.api_version(),
        subresource: step.on.clone(),
        resets: resets.clone(),
    };
    let there = || live.expect("the object was created by an earlier step");
    let patched = match step.write() {
        Write::Create(body) => Ok(scenario.body(step, body)),
        Write::Update(patch) => Ok(change(there(), patch)),
        Write::Apply(body) => {
            let object = apply(live, &scenario.body(step, body), schema, &by, step.force, now);
            return finish(object.map_err(|error| refused(&error))?, live, &parts, &resets, schema);
        }
        Write::Json(patch) => json(there(), patch),
        Write::Merge(patch) => Ok(merge(there(), patch)),
        Write::Strategic(patch) => strategic(there(), patch, schema),
    };
    let mut object = patched.map_err(|error| unpatched(&error))?;
    schema::default(&mut object, schema);
    track(live, &mut object, schema, &by, now);
    finish(object, live, &parts, &resets, schema)
}

/// What happens to an object after its owners are known: defaults, fields that stay as they were, validation.
fn finish(
    mut object: Value,
    live: Option<&Value>,
    parts: &KindParts,
    resets: &[String],
    schema: &Schema,
) -> Result<Value, Outcome> {
    schema::fill(&mut object, schema);
    if let Some(live) = live {
        settle(live, &mut object);
    }
    let object = restore(object, live, resets, schema);
    if builtin::schema(&parts.group, &parts.version, &parts.kind).is_none() {
        let errors = schema::validate(&object, live, schema);
        if !errors.is_empty() {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            return Err(invalid(&status(&parts.group, &parts.kind, name, &errors)));
        }
    }
    Ok(object)
}

fn invalid(status: &Value) -> Outcome {
    let text = |name: &str| status.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let causes = status.pointer("/details/causes").and_then(Value::as_array).cloned();
    let (reason, message) = (text("reason"), text("message"));
    Outcome::Error { code: 422, reason, message, causes: sorted(causes.unwrap_or_default()) }
}

/// A way of writing never changes some fields: they stay as they were.
fn restore(mut object: Value, live: Option<&Value>, resets: &[String], schema: &Schema) -> Value {
    let managed = object.pointer("/metadata/managedFields").cloned();
    for path in resets {
        let pointer = format!("/{}", path.replace('.', "/"));
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer has a slash");
        let before = live.and_then(|live| live.pointer(&pointer)).cloned();
        let Some(parent) = object.pointer_mut(parent).and_then(Value::as_object_mut) else { continue };
        match before {
            Some(before) => parent.insert(name.to_owned(), before),
            None => parent.remove(name),
        };
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        match managed {
            Some(managed) => metadata.insert("managedFields".to_owned(), managed),
            None => metadata.remove("managedFields"),
        };
    }
    builtin::normalize(&mut object, schema);
    object
}

fn schema_of(parts: &KindParts, subresource: Option<&str>) -> (&'static Schema, Vec<String>) {
    if let Some(schema) = builtin::schema(&parts.group, &parts.version, &parts.kind) {
        return (schema, builtin::resets(&parts.group, &parts.kind, subresource));
    }
    let key = (parts.kind.clone(), parts.version.clone());
    let (schema, has_status) = CUSTOM.get(&key).expect("a kind is built in or defined");
    (schema, builtin::custom_resets(*has_status, subresource))
}

/// Schemas of custom kinds by kind and version, and whether they have the subresource `status`.
static CUSTOM: LazyLock<BTreeMap<(String, String), (Schema, bool)>> = LazyLock::new(|| {
    let mut found = BTreeMap::new();
    for definition in definitions() {
        let text = |value: &Value| value.as_str().expect("text").to_owned();
        for version in definition["spec"]["versions"].as_array().expect("versions") {
            let schema = parse(&version["schema"]["openAPIV3Schema"]).expect("a structural schema");
            let has_status = version.pointer("/subresources/status").is_some();
            let key = (text(&definition["spec"]["names"]["kind"]), text(&version["name"]));
            found.insert(key, (schema, has_status));
        }
    }
    found
});

fn refused(error: &ApplyError) -> Outcome {
    let message = error.to_string();
    let causes = match error {
        ApplyError::Conflicts(conflicts) => conflicts
            .iter()
            .map(|conflict| {
                json!({ "reason": "FieldManagerConflict", "message": conflict.message(), "field": conflict.field })
            })
            .collect(),
        ApplyError::Malformed(_) | ApplyError::Untyped(_) => Vec::new(),
    };
    let (code, reason) = match error {
        ApplyError::Conflicts(_) => (409, "Conflict"),
        ApplyError::Malformed(_) => (400, "BadRequest"),
        ApplyError::Untyped(_) => (500, ""),
    };
    Outcome::Error { code, reason: reason.to_owned(), message, causes: sorted(causes) }
}

fn unpatched(error: &PatchError) -> Outcome {
    let (code, reason, message) = match error {
        PatchError::Malformed(_) => (400, "BadRequest", error.to_string()),
        PatchError::Unprocessable(_) => {
            (422, "Invalid", "the server rejected our request due to an error in our request".to_owned())
        }
        PatchError::Failed(_) => (500, "", error.to_string()),
    };
    Outcome::Error { code, reason: reason.to_owned(), message, causes: Vec::new() }
}

/// Where two values first differ.
fn difference(expected: &Value, found: &Value, path: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<_> = a.keys().chain(b.keys()).collect();
            names.into_iter().find_map(|name| match (a.get(name), b.get(name)) {
                (Some(a), Some(b)) => difference(a, b, &format!("{path}.{name}")),
                (Some(a), None) => Some(format!("{path}.{name} is missing: {a}")),
                (None, b) => Some(format!("{path}.{name} should not be: {}", b.unwrap_or(&Value::Null))),
            })
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            a.iter().zip(b).enumerate().find_map(|(at, (a, b))| difference(a, b, &format!("{path}[{at}]")))
        }
        (a, b) if a == b => None,
        (a, b) => Some(format!("{path} should be {a} and is {b}")),
    }
}
