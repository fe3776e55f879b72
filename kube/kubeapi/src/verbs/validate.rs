//! What is wrong with an object that is about to be written.

use crate::resources::resource::{Custom, Resource, Subresource};
use crate::resources::strategy;
use atoll_apimachinery::invalid::{ErrorKind, FieldError};
use atoll_apimachinery::schema;
use serde_json::Value;

/// What is wrong with a new object.
pub(super) fn create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    match &resource.custom {
        Some(custom) => {
            let found = strategy::validate_create(resource, object);
            schema::check(object, None, &resource.schema, &custom.rules, found)
        }
        None => {
            let mut errors = values(resource, object, None);
            errors.extend(strategy::validate_create(resource, object));
            errors
        }
    }
}

/// What is wrong with a change, and what was wrong before and may stay so, as warnings.
pub(super) fn update(
    resource: &Resource,
    by: Option<&Subresource>,
    new: &Value,
    old: &Value,
) -> (Vec<FieldError>, Vec<String>) {
    let found = strategy::validate_update(resource, by, new, old);
    match &resource.custom {
        None => {
            let mut errors = found;
            errors.extend(values(resource, new, Some(old)));
            (errors, Vec::new())
        }
        Some(custom) if by == Some(&Subresource::Status) => {
            (status(resource, custom, new, old, found), Vec::new())
        }
        Some(custom) => {
            let errors = schema::check(new, Some(old), &resource.schema, &custom.rules, found);
            let tolerated = if errors.is_empty() && !custom.rules.is_empty() {
                let strict = custom.rules.check(new, None, &resource.schema);
                strict.iter().map(ToString::to_string).collect()
            } else {
                Vec::new()
            };
            (errors, tolerated)
        }
    }
}

/// A change of the status: the schema is asked about nothing else.
fn status(
    resource: &Resource,
    custom: &Custom,
    new: &Value,
    old: &Value,
    found: Vec<FieldError>,
) -> Vec<FieldError> {
    let mut errors = found;
    if let (Some(schema), Some(value)) = (resource.schema.properties.get("status"), new.get("status")) {
        for mut error in schema::validate(value, old.get("status"), schema) {
            error.field =
                if error.field.is_empty() { "status".to_owned() } else { format!("status.{}", error.field) };
            errors.push(error);
        }
    }
    if schema::unique(old, &resource.schema).is_empty() {
        errors.extend(schema::unique(new, &resource.schema));
    }
    schema::with_rules(errors, new, Some(old), &resource.schema, &custom.rules)
}

/// Of a built-in kind the schema is asked for values that it lists: what is required is for the kind's own rules, since
/// its schema calls required what is always written.
fn values(resource: &Resource, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = schema::validate(object, old, &resource.schema);
    errors.retain(|error| {
        error.kind == ErrorKind::NotSupported && error.value.as_ref().is_none_or(|value| value != "")
    });
    errors
}
