//! JSON merge patch (RFC 7386), and what an API server makes of the corners.

use serde_json::{Map, Value};

/// What the object is after the patch: named fields replaced, `null` ones removed, objects merged.
#[must_use]
pub fn merge(object: &Value, patch: &Value) -> Value {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_fields(object.clone(), patch),
        // An object that something else replaces: taken as it is.
        (Value::Object(_), other) => other.clone(),
        (_, new) => without_nulls(new),
    }
}

fn merge_fields(mut object: Map<String, Value>, patch: &Map<String, Value>) -> Value {
    for (name, change) in patch {
        if change.is_null() {
            object.remove(name);
        } else {
            let before = object.remove(name).unwrap_or_default();
            object.insert(name.clone(), merge(&before, change));
        }
    }
    Value::Object(object)
}

/// A new value has no nulls in its objects, not even in those that stand in lists.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        scalar => scalar.clone(),
    }
}
