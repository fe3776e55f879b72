//! The schemas of Kubernetes' own kinds, from facts read off a real API server.
//!
//! ```text
//!   lab facts openapi ──▶ facts/openapi.tsv ──compiled in──▶ schema("apps", "v1", "Deployment")
//! ```
//!
//! A kind's schema is made when it is first asked for, and kept.

mod normalize;
mod quantity;
mod resets;

pub use normalize::{normalize, stored};
pub use resets::{custom_resets, resets};

use crate::schema::{Schema, parse};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// One line per kind and per definition, in the order of their names; see `lab facts openapi`.
const FACTS: &str = include_str!("../facts/openapi.tsv");
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// The schema of a built-in kind; the core group is `""`.
#[must_use]
pub fn schema(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    static SCHEMAS: Mutex<BTreeMap<&'static str, &'static Schema>> = Mutex::new(BTreeMap::new());
    let name = definition_name(group, version, kind)?;
    let mut schemas = SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(schema) = schemas.get(name) {
        return Some(schema);
    }
    let schema: &'static Schema = Box::leak(Box::new(expand(name)?));
    schemas.insert(name, schema);
    Some(schema)
}

/// All built-in kinds, as group, version and kind.
pub fn kinds() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    lines().map_while(|(name, definition)| {
        if definition.starts_with('{') {
            return None;
        }
        let (group_version, kind) = name.rsplit_once('/')?;
        let (group, version) = group_version.split_once('/').unwrap_or(("", group_version));
        Some((group, version, kind))
    })
}

/// The name of a kind's definition, and every definition that it refers to, as OpenAPI v3 has them without prose:
/// for what a server says of itself.
#[must_use]
pub fn definitions(group: &str, version: &str, kind: &str) -> Option<(&'static str, Map<String, Value>)> {
    let name = definition_name(group, version, kind)?;
    let mut found = Map::new();
    collect(name, &mut found);
    Some((name, found))
}

/// The schema of every object's metadata.
#[must_use]
pub fn object_meta() -> &'static Schema {
    static META: OnceLock<Schema> = OnceLock::new();
    META.get_or_init(|| expand(OBJECT_META).unwrap_or_default())
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    FACTS.lines().filter_map(|line| line.split_once('\t'))
}

fn definition_name(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let wanted =
        if group.is_empty() { format!("{version}/{kind}") } else { format!("{group}/{version}/{kind}") };
    lines().find(|(name, _)| *name == wanted).map(|(_, definition)| definition)
}

fn definition(name: &str) -> Option<Value> {
    let (_, text) = lines().find(|(candidate, text)| *candidate == name && text.starts_with('{'))?;
    serde_json::from_str(text).ok()
}

fn expand(name: &str) -> Option<Schema> {
    let mut document = json!({ "$ref": name });
    resolve(&mut document, &mut Vec::new());
    parse(&document).ok()
}

/// Puts definitions in the place of references to them. What refers to itself ends in an object that may be anything.
fn resolve(schema: &mut Value, within: &mut Vec<String>) {
    let Value::Object(keywords) = schema else { return };
    let reference = match keywords.remove("$ref") {
        Some(Value::String(reference)) => Some(reference),
        _ => None,
    };
    if let Some(reference) = &reference {
        let definition = if within.contains(reference) {
            Some(json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true }))
        } else {
            definition(reference)
        };
        if let Some(Value::Object(definition)) = definition {
            // What stands beside the reference wins.
            for (keyword, value) in definition {
                keywords.entry(keyword).or_insert(value);
            }
        }
        within.push(reference.clone());
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(child) = keywords.get_mut(keyword) {
            resolve(child, within);
        }
    }
    for child in
        keywords.get_mut("properties").and_then(Value::as_object_mut).into_iter().flat_map(Map::values_mut)
    {
        resolve(child, within);
    }
    if reference.is_some() {
        within.pop();
    }
}

fn collect(name: &str, into: &mut Map<String, Value>) {
    if into.contains_key(name) {
        return;
    }
    let Some(definition) = definition(name) else { return };
    let mut references = Vec::new();
    find_references(&definition, &mut references);
    into.insert(name.to_owned(), definition);
    for reference in references {
        collect(&reference, into);
    }
}

fn find_references(schema: &Value, into: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            into.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
            fields.values().for_each(|value| find_references(value, into));
        }
        Value::Array(items) => items.iter().for_each(|item| find_references(item, into)),
        _ => {}
    }
}
