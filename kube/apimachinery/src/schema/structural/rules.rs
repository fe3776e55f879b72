//! Rules of a schema: their form, and that they compile against its types.

use super::keywords::SchemaLocation;
use super::{listed, text};
use crate::cel::{self, Expression};
use crate::invalid::{FieldError, go_json};
use crate::schema::{Schema, field_path};
use serde_json::Value;

const REASONS: &[&str] =
    &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// What is wrong with the rules before they are compiled.
pub(super) fn form(document: &Value, location: &SchemaLocation, errors: &mut Vec<FieldError>) {
    for (index, rule) in listed(document, "x-kubernetes-validations").iter().enumerate() {
        let at = |field: &str| format!("{}.x-kubernetes-validations[{index}].{field}", location.path);
        let (source, message) = (text(rule, "rule").trim(), text(rule, "message"));
        if source.is_empty() {
            errors.push(FieldError::required(&at("rule"), "rule is not specified"));
        } else if !message.is_empty() && message.trim().is_empty() {
            errors.push(FieldError::invalid(&at("message"), message, "must be non-empty if specified"));
        } else if message.trim().contains('\n') {
            errors.push(FieldError::invalid(&at("message"), message, "must not contain line breaks"));
        } else if source.contains('\n') && message.is_empty() {
            let detail = "message must be specified if rule contains line breaks";
            errors.push(FieldError::required(&at("message"), detail));
        }
        let made = text(rule, "messageExpression");
        if !made.is_empty() && made.trim().is_empty() {
            let detail = "messageExpression must be non-empty if specified";
            errors.push(FieldError::required(&at("messageExpression"), detail));
        }
        if let Some(reason) = rule.get("reason").and_then(Value::as_str)
            && !REASONS.contains(&reason)
        {
            errors.push(FieldError::not_supported(&at("reason"), reason, REASONS));
        }
        let path = text(rule, "fieldPath");
        if !path.is_empty() {
            if path.trim().is_empty() {
                errors.push(FieldError::invalid(&at("fieldPath"), path, "must be non-empty if specified"));
            }
            if path.contains('\n') {
                errors.push(FieldError::invalid(&at("fieldPath"), path, "must not contain line breaks"));
            }
            if !names_field(document, path) {
                errors.push(FieldError::invalid(&at("fieldPath"), path, "must be a valid path"));
            }
        }
    }
}

fn names_field(document: &Value, path: &str) -> bool {
    let Some(steps) = field_path(path) else { return false };
    let step = |schema: &Value, name: &String| match schema.get("properties") {
        Some(properties) => properties.get(name).cloned(),
        None => schema.get("additionalProperties").filter(|inner| inner.is_object()).cloned(),
    };
    steps.iter().try_fold(document.clone(), |schema, name| step(&schema, name)).is_some()
}

/// What is wrong with the rules once they are compiled.
pub(super) fn compile(
    document: &Value,
    types: &Schema,
    location: &SchemaLocation,
    errors: &mut Vec<FieldError>,
) {
    for (index, rule) in listed(document, "x-kubernetes-validations").iter().enumerate() {
        let at = |field: &str| format!("{}.x-kubernetes-validations[{index}].{field}", location.path);
        let source = text(rule, "rule");
        let optional = rule.get("optionalOldSelf");
        let old_optional = optional.and_then(Value::as_bool) == Some(true);
        let checked = Expression::compile(source)
            .and_then(|expression| Ok((cel::check(&expression, source, types, old_optional)?, expression)))
            .map_err(|why| format!("compilation failed: {why}"));
        let mentions_old = match checked {
            Ok((Some(kind), _)) if kind != "bool" => {
                errors.push(with_rule(&at("rule"), rule, "cel expression must evaluate to a bool"));
                continue;
            }
            Ok((_, expression)) => expression.mentions("oldSelf"),
            Err(why) => {
                errors.push(with_rule(&at("rule"), rule, &why));
                continue;
            }
        };
        let made = text(rule, "messageExpression");
        if !made.is_empty() {
            let checked = Expression::compile(made)
                .and_then(|expression| cel::check(&expression, made, types, old_optional))
                .map_err(|why| format!("messageExpression compilation failed: {why}"));
            match checked {
                Ok(Some(kind)) if kind != "string" => {
                    let why = "messageExpression must evaluate to a string";
                    errors.push(with_rule(&at("messageExpression"), rule, why));
                }
                Ok(_) => {}
                Err(why) => errors.push(with_rule(&at("messageExpression"), rule, &why)),
            }
        }
        if mentions_old {
            if let Some(within) = &location.uncorrelated {
                let detail = format!(
                    "oldSelf cannot be used on the uncorrelatable portion of the schema within {within}"
                );
                errors.push(FieldError::invalid(&at("rule"), source, detail));
            }
        } else if let Some(optional) = optional {
            let detail = "may not be set if oldSelf is not used in rule";
            errors.push(FieldError::invalid(&at("optionalOldSelf"), optional.clone(), detail));
        }
    }
}

/// An error that shows the whole rule, its fields in the server's order.
fn with_rule(field: &str, rule: &Value, detail: &str) -> FieldError {
    let shown: Vec<String> = [
        ("Rule", "rule", "\"\""),
        ("Message", "message", "\"\""),
        ("MessageExpression", "messageExpression", "\"\""),
        ("Reason", "reason", "null"),
        ("FieldPath", "fieldPath", "\"\""),
        ("OptionalOldSelf", "optionalOldSelf", "null"),
    ]
    .iter()
    .map(|(name, keyword, absent)| {
        format!("\"{name}\":{}", rule.get(*keyword).map_or_else(|| (*absent).to_owned(), go_json))
    })
    .collect();
    FieldError::invalid_as_shown(field, &format!("{{{}}}", shown.join(",")), detail)
}
