//! All that a schema demands of a whole object, in the server's order.

use super::{Rules, Schema, embedded, unique, validate};
use crate::invalid::{ErrorKind, FieldError};
use serde_json::Value;

/// Checks an object of a CRD: `found` is what its metadata already failed on, and comes first in the result.
/// Rules are not asked of an object that is not even well-formed.
#[must_use]
pub fn check(
    object: &Value,
    old: Option<&Value>,
    schema: &Schema,
    rules: &Rules,
    found: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = found;
    errors.extend(validate(object, old, schema));
    errors.extend(embedded(object, schema));
    // Lists that are already doubled stay changeable.
    if old.is_none_or(|old| unique(old, schema).is_empty()) {
        errors.extend(unique(object, schema));
    }
    with_rules(errors, object, old, schema, rules)
}

/// What was found, and what the rules find; they are not asked where that already keeps them from making sense.
#[must_use]
pub fn with_rules(
    mut found: Vec<FieldError>,
    object: &Value,
    old: Option<&Value>,
    schema: &Schema,
    rules: &Rules,
) -> Vec<FieldError> {
    if rules.is_empty() {
        return found;
    }
    if found.iter().any(blocks) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        found.push(FieldError::invalid("<nil>", Value::Null, detail));
    } else {
        found.extend(rules.check(object, old, schema));
    }
    found
}

fn blocks(error: &FieldError) -> bool {
    matches!(
        error.kind,
        ErrorKind::NotSupported
            | ErrorKind::Required
            | ErrorKind::TooLong
            | ErrorKind::TooMany
            | ErrorKind::TypeInvalid
    )
}
