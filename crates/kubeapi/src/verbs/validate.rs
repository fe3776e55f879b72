//! What is wrong with an object that is about to be written.

use crate::resource::{Resource, Subresource};
use crate::strategy;
use apimachinery::invalid::{ErrorKind, FieldError};
use apimachinery::schema;
use serde_json::Value;

/// What is wrong with a new object.
pub(super) fn create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let mut errors = by_schema(resource, object, None);
    errors.extend(strategy::validate_create(resource, object));
    errors
}

/// What is wrong with a change.
pub(super) fn update(
    resource: &Resource,
    by: Option<&Subresource>,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let mut errors = strategy::validate_update(resource, by, new, old);
    errors.extend(by_schema(resource, new, Some(old)));
    errors
}

fn by_schema(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = schema::validate(object, old, &resource.schema);
    match &resource.custom {
        Some(custom) => {
            // Rules may rely on types: they are not asked about an object that has the wrong ones.
            let blocking = |error: &FieldError| {
                matches!(
                    error.kind,
                    ErrorKind::TypeInvalid
                        | ErrorKind::Required
                        | ErrorKind::TooLong
                        | ErrorKind::TooMany
                        | ErrorKind::NotSupported
                )
            };
            if errors.iter().any(blocking) {
                let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                if !resource_has_rules(resource) {
                    return errors;
                }
                errors.push(FieldError {
                    kind: ErrorKind::Invalid,
                    field: "<nil>".to_owned(),
                    value: Some(Value::Null),
                    detail: why.to_owned(),
                });
            } else {
                errors.extend(custom.rules.check(object, old, &resource.schema));
            }
        }
        // Of a built-in kind a required field is one that is always written, which is something else.
        None => errors.retain(|error| error.kind == ErrorKind::NotSupported),
    }
    errors
}

fn resource_has_rules(resource: &Resource) -> bool {
    fn any(schema: &schema::Schema) -> bool {
        !schema.rules.is_empty()
            || schema.properties.values().any(any)
            || schema.items.as_deref().is_some_and(any)
            || schema.additional.as_deref().is_some_and(any)
    }
    any(&resource.schema)
}
