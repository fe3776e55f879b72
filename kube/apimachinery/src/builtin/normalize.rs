//! The shape that a built-in kind's object gets by being decoded and encoded.

use super::quantity;
use crate::schema::{Encoding, Kind, Schema};
use serde_json::{Map, Value};

/// Gives an object of a built-in kind the shape that decoding and encoding it has on a real API server: structures that
/// are never left out are there, and what is empty is gone. Objects of custom resources stay as they are.
pub fn normalize(object: &mut Value, schema: &Schema) {
    if is_built_in(schema) {
        visit(object, schema, After::Decoding);
    }
}

/// Gives an object of a built-in kind the shape that it has when it is read back from a real API server's store, which
/// does not tell an empty list from none.
pub fn stored(object: &mut Value, schema: &Schema) {
    if is_built_in(schema) {
        visit(object, schema, After::Storing);
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    Decoding,
    Storing,
}

fn is_built_in(schema: &Schema) -> bool {
    schema.properties.get("metadata").is_some_and(|metadata| metadata.encoding != Encoding::AsGiven)
}

fn visit(value: &mut Value, schema: &Schema, after: After) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                field(fields, name, property, after);
            }
            if let Some(additional) = &schema.additional {
                let free = fields.iter_mut().filter(|(name, _)| !schema.properties.contains_key(*name));
                free.for_each(|(_, value)| visit(value, additional, after));
            }
        }
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                items.iter_mut().for_each(|item| visit(item, schema, after));
            }
        }
        scalar if schema.limits.format.as_deref() == Some("quantity") => write_anew(scalar),
        _ => {}
    }
}

fn field(fields: &mut Map<String, Value>, name: &str, property: &Schema, after: After) {
    // An empty list of managed fields is a request to forget them, until it is stored.
    let request = name == "managedFields" && after == After::Decoding;
    if property.encoding == Encoding::AsGiven || request {
        return;
    }
    let mut value = fields.remove(name).unwrap_or_default();
    if value.is_null()
        && let Encoding::Always(nothing) = &property.encoding
    {
        value = nothing.clone();
    }
    visit(&mut value, property, after);
    let collection = value.is_array() || property.additional.is_some();
    if after == After::Storing && collection && is_empty(&value, property.kind) {
        value = Value::Null;
    }
    let left_out = match property.encoding {
        Encoding::AsGiven | Encoding::Always(_) => false,
        Encoding::Nullable => value.is_null(),
        Encoding::OmitEmpty => is_empty(&value, property.kind),
    };
    if !left_out {
        fields.insert(name.to_owned(), value);
    }
}

fn write_anew(quantity: &mut Value) {
    let text = match &*quantity {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if let Some(canonical) = quantity::canonical(&text) {
        *quantity = Value::String(canonical);
    }
}

fn is_empty(value: &Value, kind: Kind) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(flag) => !flag,
        Value::Number(number) => kind != Kind::IntOrString && number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}
