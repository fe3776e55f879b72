//! The `Status` that answers a request for an invalid object.

use super::FieldError;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The `details.causes` of a Status.
#[must_use]
pub fn causes(errors: &[FieldError]) -> Vec<Value> {
    let cause =
        |error: &FieldError| json!({"reason": error.reason(), "message": error.body(), "field": error.field});
    errors.iter().map(cause).collect()
}

/// A whole `Status` with code 422 for an object of `kind` that is invalid.
#[must_use]
pub fn status(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Value {
    let qualified = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
    let mut message = format!("{qualified} {} is invalid", super::quoted(name));
    if let Some(all) = together(errors) {
        message.push_str(": ");
        message.push_str(&all);
    }
    let mut details = serde_json::Map::new();
    for (field, value) in [("name", name), ("group", group), ("kind", kind)] {
        if !value.is_empty() {
            details.insert(field.to_owned(), value.into());
        }
    }
    if !errors.is_empty() {
        details.insert("causes".to_owned(), causes(errors).into());
    }
    json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": "Invalid", "details": details, "code": 422,
    })
}

/// All errors in one text: alone as it is, several in brackets, each text once.
fn together(errors: &[FieldError]) -> Option<String> {
    let mut seen = BTreeSet::new();
    let texts: Vec<String> =
        errors.iter().map(ToString::to_string).filter(|text| seen.insert(text.clone())).collect();
    match texts.as_slice() {
        [] => None,
        [one] => Some(one.clone()),
        several => Some(format!("[{}]", several.join(", "))),
    }
}
