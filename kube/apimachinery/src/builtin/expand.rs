//! From definitions that refer to each other to schemas: each definition is read once, and shared.

use super::definition;
use crate::schema::{Encoding, Kind, Schema, parse};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The schema of a definition, with everything that it refers to.
pub(super) fn expand(name: &str) -> Option<Schema> {
    static KNOWN: Mutex<BTreeMap<&'static str, Schema>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    Expansion { known: &mut known, within: Vec::new(), cut: BTreeSet::new() }.definition(name)
}

struct Expansion<'k> {
    known: &'k mut BTreeMap<&'static str, Schema>,
    within: Vec<&'static str>,
    /// Definitions that are not finished and that something inside of them refers to.
    cut: BTreeSet<&'static str>,
}

impl Expansion<'_> {
    fn definition(&mut self, name: &str) -> Option<Schema> {
        if let Some(schema) = self.known.get(name) {
            return Some(schema.clone());
        }
        if let Some(name) = self.within.iter().find(|outer| **outer == name) {
            // What refers to itself ends in an object that may be anything.
            self.cut.insert(name);
            return Some(Schema { kind: Kind::Object, preserve_unknown: true, ..Schema::default() });
        }
        let (name, document) = definition(name)?;
        let mut schema = parse(&document).ok()?;
        self.within.push(name);
        self.fill(&document, &mut schema);
        self.within.pop();
        // What ends early because of where it stands is not what it is elsewhere.
        self.cut.remove(name);
        if self.cut.is_empty() {
            self.known.insert(name, schema.clone());
        }
        Some(schema)
    }

    /// Puts definitions in the place of references to them; what stands beside a reference wins.
    fn fill(&mut self, document: &Value, schema: &mut Schema) {
        if let Some(reference) = document.get("$ref").and_then(Value::as_str)
            && let Some(referred) = self.definition(reference)
        {
            let beside = std::mem::replace(schema, referred);
            schema.default = beside.default.or(schema.default.take());
            schema.atomic_map |= beside.atomic_map;
            if document.get("x-kubernetes-patch-strategy").is_some() {
                schema.patch = beside.patch;
            }
        } else {
            if let (Some(items), Some(inner)) = (document.get("items"), schema.items.as_mut()) {
                self.fill(items, inner);
            }
            if let (Some(values), Some(inner)) =
                (document.get("additionalProperties"), schema.additional.as_mut())
            {
                self.fill(values, inner);
            }
            let properties = document.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                if let Some(inner) = schema.properties.get_mut(name) {
                    self.fill(property, inner);
                }
            }
        }
        schema.encoding = encoding(document.get("x-go").and_then(Value::as_str), schema);
    }
}

/// What `x-go` in the facts means for a field.
fn encoding(named: Option<&str>, schema: &Schema) -> Encoding {
    match named {
        Some("nil") => Encoding::Nullable,
        Some("omit") => Encoding::OmitEmpty,
        Some("null") => Encoding::Always(Value::Null),
        Some("zero") => Encoding::Always(match schema.kind {
            Kind::String => Value::from(""),
            Kind::Boolean => Value::from(false),
            Kind::Object => Value::Object(Map::new()),
            Kind::IntOrString if schema.limits.format.as_deref() == Some("quantity") => Value::from("0"),
            Kind::Integer | Kind::Number | Kind::IntOrString => Value::from(0),
            Kind::Any | Kind::Array => Value::Null,
        }),
        _ => Encoding::AsGiven,
    }
}
