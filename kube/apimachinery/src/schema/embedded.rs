//! Whole objects inside of objects (`x-kubernetes-embedded-resource`).

use super::Schema;
use crate::invalid::FieldError;
use crate::meta::{self, NameRule};
use crate::names;
use serde_json::Value;

/// What is wrong with apiVersion, kind and metadata of embedded objects.
#[must_use]
pub fn embedded(value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(value, schema, "", &mut errors);
    errors
}

fn node(value: &Value, schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(fields) => {
            if schema.embedded {
                object(value, path, errors);
            }
            for (name, field) in fields {
                if let Some(inner) = schema.properties.get(name) {
                    let dot = if path.is_empty() { "" } else { "." };
                    node(field, inner, &format!("{path}{dot}{name}"), errors);
                } else if let Some(inner) = &schema.additional {
                    node(field, inner, &format!("{path}[{name}]"), errors);
                }
            }
        }
        Value::Array(items) => {
            let Some(inner) = &schema.items else { return };
            for (at, item) in items.iter().enumerate() {
                node(item, inner, &format!("{path}[{at}]"), errors);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn object(value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for field in ["apiVersion", "kind"] {
        let at = format!("{path}.{field}");
        match value.get(field) {
            None => errors.push(FieldError::required(&at, "")),
            Some(Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&at, "", "must not be empty"));
            }
            Some(Value::String(text)) => {
                if field == "apiVersion" && text.matches('/').count() > 1 {
                    let detail = format!("unexpected GroupVersion string: {text}");
                    errors.push(FieldError::invalid(&at, text.as_str(), detail));
                }
                let wrong = names::dns1035_label(&text.to_lowercase());
                if field == "kind" && !wrong.is_empty() {
                    let detail =
                        format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
                    errors.push(FieldError::invalid(&at, text.as_str(), detail));
                }
            }
            Some(other) => errors.push(FieldError::invalid(&at, other.clone(), "must be a string")),
        }
    }
    let Some(metadata) = value.get("metadata").filter(|metadata| metadata.is_object()) else { return };
    let mut metadata = metadata.clone();
    let named = metadata.get("name").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    if !named && let Some(fields) = metadata.as_object_mut() {
        // An embedded object need not have a name.
        fields.insert("name".to_owned(), "fakename".into());
    }
    let namespaced = metadata.get("namespace").and_then(Value::as_str).is_some_and(|name| !name.is_empty());
    for mut error in meta::validate_named(&metadata, namespaced, NameRule::PathSegment) {
        error.field = format!("{path}.{}", error.field);
        errors.push(error);
    }
}
