//! Defaults must be valid themselves.

use super::properties;
use crate::invalid::FieldError;
use crate::schema::{self, Rules, Schema};
use serde_json::Value;

pub(super) fn check(document: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Ok(parsed) = schema::parse(document) {
        node(document, &parsed, path, &mut errors);
    }
    errors
}

fn node(document: &Value, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(value) = document.get("default").filter(|value| !value.is_null()) {
        errors.extend(wrong(value, schema, &format!("{path}.default")));
    }
    if let (Some(items), Some(inner)) = (document.get("items"), &schema.items) {
        node(items, inner, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(document) {
        if let Some(inner) = schema.properties.get(name) {
            node(property, inner, &format!("{path}.properties[{name}]"), errors);
        }
    }
}

fn wrong(value: &Value, schema: &Schema, path: &str) -> Vec<FieldError> {
    let mut pruned = value.clone();
    schema::prune(&mut pruned, schema);
    let mut errors = Vec::new();
    if &pruned != value {
        errors.push(FieldError::invalid(path, value.clone(), "must not have unknown fields"));
    }
    let mut found = schema::embedded(value, schema);
    if found.is_empty() {
        found = schema::validate(value, None, schema);
    }
    if found.is_empty() {
        found = Rules::compile(schema).check(value, None, schema);
    }
    for mut error in found {
        error.field = match error.field.as_str() {
            "<nil>" | "" => path.to_owned(),
            inner if inner.starts_with('[') => format!("{path}{inner}"),
            inner => format!("{path}.{inner}"),
        };
        errors.push(error);
    }
    errors
}
