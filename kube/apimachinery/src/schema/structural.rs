//! What a CRD's schema must be before it may describe anything.
//!
//! ```text
//!   document ──▶ shape ──▶ defaults ──▶ keywords and rules
//! ```
//! Each stage needs the one before it: a default is checked against a schema that holds together.

mod defaults;
mod keywords;
mod rules;
mod shape;

use crate::invalid::FieldError;
use serde_json::Value;

/// Most rules of one schema: far more than anyone writes. Each is compiled, for about a tenth of a millisecond.
const RULES_MOST: usize = 2000;

/// What is wrong with an `openAPIV3Schema`. `path` is where it stands in the CRD:
/// `spec.validation.openAPIV3Schema`, or `spec.versions[0].schema.openAPIV3Schema` when the versions' schemas differ.
#[must_use]
pub fn structural(document: &Value, path: &str) -> Vec<FieldError> {
    if !document.is_object() {
        return vec![FieldError::required(path, "schemas are required")];
    }
    if count_rules(document) > RULES_MOST {
        let detail = format!("must have at most {RULES_MOST} validation rules");
        return vec![FieldError::invalid(path, "", detail)];
    }
    let mut errors = Vec::new();
    if flag(document, "nullable") {
        errors
            .push(FieldError::forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut holds = false;
    if shape::convertible(document) {
        let mut wrong = shape::check(document, path);
        wrong.sort_by_cached_key(ToString::to_string);
        if wrong.is_empty() {
            wrong = defaults::check(document, path);
        }
        holds = wrong.is_empty();
        errors.extend(wrong);
    }
    errors.extend(keywords::check(document, path, holds));
    if errors.is_empty()
        && let Err(unusable) = super::parse(document)
    {
        errors.push(FieldError::invalid(path, "", unusable.to_string()));
    }
    errors
}

/// How many rules there are in a schema and below it.
fn count_rules(document: &Value) -> usize {
    match document {
        Value::Object(fields) => {
            let below: usize = fields.values().map(count_rules).sum();
            below + listed(document, "x-kubernetes-validations").len()
        }
        Value::Array(items) => items.iter().map(count_rules).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

fn flag(document: &Value, keyword: &str) -> bool {
    document.get(keyword).and_then(Value::as_bool).unwrap_or_default()
}

fn text<'a>(document: &'a Value, keyword: &str) -> &'a str {
    document.get(keyword).and_then(Value::as_str).unwrap_or_default()
}

fn listed<'a>(document: &'a Value, keyword: &str) -> &'a [Value] {
    document.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn properties(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document.get("properties").and_then(Value::as_object).into_iter().flatten()
}
