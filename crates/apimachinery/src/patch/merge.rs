//! JSON merge patch (RFC 7386).

use serde_json::{Map, Value};

/// What the object is after the patch: named fields replaced, `null` ones removed, objects merged.
#[must_use]
pub fn merge(object: &Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else { return patch.clone() };
    let mut merged = object.as_object().cloned().unwrap_or_else(Map::new);
    for (name, change) in changes {
        if change.is_null() {
            merged.remove(name);
        } else {
            let before = merged.get(name).unwrap_or(&Value::Null);
            let after = merge(before, change);
            merged.insert(name.clone(), after);
        }
    }
    Value::Object(merged)
}
