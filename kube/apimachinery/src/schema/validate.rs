//! Does a value fit its schema? In the order and the words of a kube-apiserver, which clients compare.

mod format;
mod number;
mod outcome;
pub(crate) mod pattern;

pub use format::known as known_format;
pub(crate) use pattern::compiled as compiled_pattern;

use super::correlate;
use super::{Kind, Schema};
use crate::invalid::{FieldError, told};
use outcome::{Outcome, Problem};
use serde_json::Value;
use std::collections::HashSet;

/// What is wrong with a value; what was already wrong in `old`, and is unchanged, is tolerated.
#[must_use]
pub fn validate(value: &Value, old: Option<&Value>, schema: &Schema) -> Vec<FieldError> {
    node(value, old, schema, "").into_errors()
}

/// One value, and what was there before if that is known.
fn node(value: &Value, old: Option<&Value>, schema: &Schema, path: &str) -> Outcome {
    let found = checked(value, old, schema, path);
    if found.fits() || !old.is_some_and(|old| correlate::same(value, old, schema)) {
        return found;
    }
    // It was as wrong before: a change of something else must not fail because of it.
    Outcome { problems: Vec::new(), ..found }
}

fn checked(value: &Value, old: Option<&Value>, schema: &Schema, path: &str) -> Outcome {
    let mut found = Outcome::default();
    if value.is_null() {
        found.merge(of_type(value, schema, path));
        found.merge(of_enum(value, schema, path));
        return found;
    }
    if schema.kind != Kind::Any || supported_format(schema).is_some() {
        found.step(of_type(value, schema, path));
    }
    found.step(branches(value, old, schema, path));
    match value {
        Value::String(text) => {
            found.step(of_text(text, schema, path));
            if let Some(format) = supported_format(schema).filter(|format| format::known(format)) {
                found.step(of_format(text, format, path));
            }
        }
        Value::Number(is) => found.step(number::check(is, schema, path)),
        Value::Array(items) => found.step(of_items(items, old, schema, path)),
        Value::Null | Value::Bool(_) | Value::Object(_) => {}
    }
    found.step(of_enum(value, schema, path));
    if let Value::Object(fields) = value {
        found.step(of_fields(fields, old, schema, path));
    }
    found.matches += 1;
    found
}

/// The format, where it is one that a server knows for this type.
fn supported_format(schema: &Schema) -> Option<&str> {
    let format = schema.limits.format.as_deref()?;
    let supported = match schema.kind {
        Kind::Any | Kind::String => format::supported(format),
        Kind::Integer => matches!(format, "int32" | "int64"),
        Kind::Number => matches!(format, "float" | "double"),
        Kind::Object | Kind::Array | Kind::Boolean | Kind::IntOrString => false,
    };
    supported.then_some(format)
}

fn of_type(value: &Value, schema: &Schema, path: &str) -> Outcome {
    let named = type_name(schema.kind);
    let (is, number_format) = match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    };
    let wants = |name: &str| named.split(',').any(|one| one == name);
    if value.is_null() {
        return if named.is_empty() || schema.nullable {
            Outcome::matched()
        } else {
            Problem::wrong_type(path, named, is).into()
        };
    }
    let whole_float =
        is == "number" && wants("integer") && value.as_f64().is_some_and(|float| float.fract() == 0.0);
    let fits = wants(is) || whole_float || (is == "integer" && wants("number"));
    let textual = matches!(value, Value::String(_) | Value::Array(_));
    if let Some(format) = supported_format(schema) {
        if !textual && !fits && number_format != format {
            return Problem::wrong_type(path, format, number_format).into();
        }
        if textual && !wants("number") && !wants("integer") {
            return Outcome::matched();
        }
    }
    if fits { Outcome::matched() } else { Problem::wrong_type(path, named, is).into() }
}

fn type_name(kind: Kind) -> &'static str {
    if kind == Kind::IntOrString { "integer,string" } else { kind.name() }
}

fn branches(value: &Value, old: Option<&Value>, schema: &Schema, path: &str) -> Outcome {
    let limits = &schema.limits;
    let mut found = Outcome::default();
    // Inside of branches nothing is correlated with the old value but through fields and items.
    let tried = |branch: &Schema| checked(value, old, branch, path);
    let better = |best: Option<Outcome>, other: Outcome| match best {
        Some(best) if best.matches >= other.matches => Some(best),
        _ => Some(other),
    };
    if !limits.any_of.is_empty() {
        let (mut best, mut success) = (None, None);
        for branch in &limits.any_of {
            let outcome = tried(branch);
            if outcome.fits() {
                success = Some(outcome);
                break;
            }
            best = better(best, outcome);
        }
        if success.is_none() {
            found.add(Problem::unplaced(format!("{path:?} must validate at least one schema (anyOf)")));
        }
        found.merge(success.or(best).unwrap_or_default());
    }
    if !limits.one_of.is_empty() {
        let (mut best, mut success, mut valid) = (None, None, 0);
        for branch in &limits.one_of {
            let outcome = tried(branch);
            if outcome.fits() {
                valid += 1;
                best = None;
                success.get_or_insert(outcome);
            } else if valid == 0 {
                best = better(best, outcome);
            }
        }
        if valid == 1 {
            found.merge(success.unwrap_or_default());
        } else {
            let how_many = match valid {
                0 => "Found none valid".to_owned(),
                several => format!("Found {several} valid alternatives"),
            };
            let text = format!("{path:?} must validate one and only one schema (oneOf). {how_many}");
            found.add(Problem::unplaced(text));
            found.merge(best.unwrap_or_default());
        }
    }
    if !limits.all_of.is_empty() {
        let mut valid = 0;
        for branch in &limits.all_of {
            let outcome = tried(branch);
            valid += usize::from(outcome.fits());
            found.merge(outcome);
        }
        if valid != limits.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            found.add(Problem::unplaced(format!("{path:?} must validate all the schemas (allOf){none}")));
        }
    }
    if let Some(not) = &limits.not
        && tried(not).fits()
    {
        found.add(Problem::unplaced(format!("{path:?} must not validate the schema (not)")));
    }
    found.matches += 1;
    found
}

fn of_text(text: &str, schema: &Schema, path: &str) -> Outcome {
    let limits = &schema.limits;
    let length = text.chars().count() as u64;
    if let Some(most) = limits.max_length.filter(|most| length > *most) {
        return Problem::at(
            path,
            format!("{path} in body should be at most {most} chars long"),
            |field, _| FieldError::too_long(field, most),
        )
        .into();
    }
    if let Some(least) = limits.min_length.filter(|least| length < *least) {
        let detail = format!("{path} in body should be at least {least} chars long");
        return Problem::invalid(path, text.into(), detail).into();
    }
    let Some(pattern) = limits.pattern.as_deref().filter(|pattern| !pattern.is_empty()) else {
        return Outcome::default();
    };
    match pattern::compiled(pattern) {
        Ok(regex) if regex.is_match(text) => Outcome::default(),
        Ok(_) => {
            Problem::invalid(path, text.into(), format!("{path} in body should match '{pattern}'")).into()
        }
        Err(why) => {
            let detail = format!("{path} in body should match '{pattern}, but pattern is invalid: {why}'");
            Problem::invalid(path, text.into(), detail).into()
        }
    }
}

fn of_format(text: &str, format: &str, path: &str) -> Outcome {
    if format::fits(format, text) {
        Outcome::default()
    } else {
        Problem::wrong_type(path, format, text).into()
    }
}

fn of_items(items: &[Value], old: Option<&Value>, schema: &Schema, path: &str) -> Outcome {
    let mut found = Outcome::default();
    // Each item's path begins with this one.
    let path = &told(path);
    if let Some(inner) = schema.items.as_deref() {
        let olds = correlate::OldItems::of(old, schema);
        for (at, item) in items.iter().enumerate() {
            found.merge(node(item, olds.get(item), inner, &format!("{path}[{at}]")));
        }
    }
    let (limits, size) = (&schema.limits, items.len() as u64);
    if let Some(least) = limits.min_items.filter(|least| size < *least) {
        let detail = format!("{path} in body should have at least {least} items");
        found.add(Problem::invalid(path, size.into(), detail));
    }
    if let Some(most) = limits.max_items.filter(|most| size > *most) {
        let text = format!("{path} in body should have at most {most} items");
        found.add(Problem::at(path, text, |field, _| FieldError::too_many(field, size, most)));
    }
    // Equal values are equal texts.
    let mut seen = HashSet::new();
    if limits.unique_items && !items.iter().all(|item| seen.insert(item.to_string())) {
        found.add(Problem::invalid(path, "".into(), format!("{path} in body shouldn't contain duplicates")));
    }
    found.matches += 1;
    found
}

fn of_enum(value: &Value, schema: &Schema, path: &str) -> Outcome {
    let Some(allowed) = schema.limits.one_of_values.as_deref().filter(|allowed| !allowed.is_empty()) else {
        return Outcome::default();
    };
    let equal = |one: &Value| match (one.as_f64(), value.as_f64()) {
        (Some(one), Some(is)) => one == is,
        _ => one == value && !value.is_null(),
    };
    if allowed.iter().any(equal) {
        return Outcome::default();
    }
    let shown: Vec<String> = allowed
        .iter()
        .map(|one| one.as_str().map_or_else(|| crate::invalid::go_json(one), str::to_owned))
        .collect();
    let text = format!("{path} in body should be one of [{}]", shown.join(" "));
    Problem::at(path, text, |field, _| FieldError::not_supported(field, value.clone(), &shown)).into()
}

fn of_fields(
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    schema: &Schema,
    path: &str,
) -> Outcome {
    let mut found = Outcome::default();
    // Each field's path begins with this one.
    let path = &told(path);
    let (limits, size) = (&schema.limits, fields.len() as u64);
    if let Some(least) = limits.min_properties.filter(|least| size < *least) {
        let detail = format!("{path} in body should have at least {least} properties");
        found.add(Problem::invalid(path, size.into(), detail));
    }
    if let Some(most) = limits.max_properties.filter(|most| size > *most) {
        let text = format!("{path} in body should have at most {most} properties");
        found.add(Problem::at(path, text, |field, _| FieldError::too_many(field, size, most)));
    }
    let was = |name: &str| {
        // What a conversion wrote is never the user's fault, nor excused.
        let converted = path.is_empty() && matches!(name, "apiVersion" | "kind");
        old.filter(|_| !converted).and_then(|old| old.get(name))
    };
    if let Some(inner) = schema.additional.as_deref() {
        for (name, value) in fields.iter().filter(|(name, _)| !schema.properties.contains_key(*name)) {
            found.merge(node(value, was(name), inner, &format!("{path}.{name}")));
        }
    }
    for (name, inner) in &schema.properties {
        let Some(value) = fields.get(name) else { continue };
        let inner_path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.merge(node(value, was(name), inner, &inner_path));
    }
    for name in schema.required.iter().filter(|name| !fields.contains_key(*name)) {
        let at = format!("{path}.{name}");
        let text = format!("{at} in body is required");
        found.add(Problem::at(&at, text, |field, _| FieldError::required(field, "")));
    }
    found
}
