//! The schemas of Kubernetes' own kinds, from facts read off a real API server.
//!
//! ```text
//!   facts openapi ──▶ facts/openapi.tsv ──compiled in──▶ schema("apps", "v1", "Deployment")
//! ```
//!
//! A kind's schema is made when it is first asked for, and kept; what kinds have in common they share.

mod expand;
mod normalize;
mod quantity;
mod resets;

pub use normalize::{normalize, stored};
pub use resets::{custom_resets, resets};

use crate::schema::Schema;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// One line per kind and per definition, in the order of their names; see `facts openapi`.
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
    let schema: &'static Schema = Box::leak(Box::new(expand::expand(name)?));
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
    META.get_or_init(|| expand::expand(OBJECT_META).unwrap_or_default())
}

fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    FACTS.lines().filter_map(|line| line.split_once('\t'))
}

fn definition_name(group: &str, version: &str, kind: &str) -> Option<&'static str> {
    let wanted =
        if group.is_empty() { format!("{version}/{kind}") } else { format!("{group}/{version}/{kind}") };
    lines().find(|(name, _)| *name == wanted).map(|(_, definition)| definition)
}

/// A definition, under the name that it has in the facts.
fn definition(name: &str) -> Option<(&'static str, Value)> {
    let (name, text) = lines().find(|(candidate, text)| *candidate == name && text.starts_with('{'))?;
    Some((name, serde_json::from_str(text).ok()?))
}

fn collect(name: &str, into: &mut Map<String, Value>) {
    if into.contains_key(name) {
        return;
    }
    let Some((_, definition)) = definition(name) else { return };
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
