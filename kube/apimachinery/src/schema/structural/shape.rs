//! The shape: every value that can be there has one type, said once, outside of all branches.

use super::{flag, listed, properties, text};
use crate::invalid::FieldError;
use serde_json::Value;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Keywords that have no meaning here; a schema with them is refused elsewhere, by name.
const UNSUPPORTED: &[&str] =
    &["id", "$schema", "$ref", "patternProperties", "dependencies", "additionalItems", "definitions"];

/// Can the document be read as a structural schema at all?
pub(super) fn convertible(document: &Value) -> bool {
    let Value::Object(keywords) = document else { return true };
    if UNSUPPORTED.iter().any(|keyword| keywords.contains_key(*keyword))
        || keywords.get("items").is_some_and(Value::is_array)
        || keywords.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false))
    {
        return false;
    }
    let inner =
        ["items", "not", "additionalProperties"].into_iter().filter_map(|keyword| keywords.get(keyword));
    let branches = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|keyword| listed(document, keyword));
    inner.chain(branches).chain(properties(document).map(|(_, property)| property)).all(convertible)
}

pub(super) fn check(document: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(document, Level::Root, path, &mut errors);
    complete(document, document, path, path, &mut errors);
    errors
}

fn node(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let at = |keyword: &str| format!("{path}.{keyword}");
    let (embedded, int_or_string) =
        (flag(schema, "x-kubernetes-embedded-resource"), flag(schema, "x-kubernetes-int-or-string"));
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    match schema.get("items") {
        None if kind == "array" => errors.push(FieldError::required(&at("items"), "must be specified")),
        None => {}
        Some(items) => node(items, Level::Item, &at("items"), errors),
    }
    for (name, property) in properties(schema) {
        node(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let field = at("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&field, "must not be used at the root"));
        }
        if additional.is_object() {
            node(additional, Level::Field, &field, errors);
        }
        if embedded {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(&field, detail));
        }
    }
    for (keyword, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(&at(keyword), true, detail));
        }
    }
    branches(schema, is_int_or_string(listed(schema, "anyOf")), path, errors);

    let whole = level == Level::Root || embedded;
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(match kind {
            "" => FieldError::required(&at("type"), detail),
            other => FieldError::invalid(&at("type"), other, detail),
        });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let location = match level {
            Level::Root => "at the root",
            Level::Item => "for specified array items",
            Level::Field => "for specified object fields",
        };
        errors.push(FieldError::required(&at("type"), format!("must not be empty {location}")));
    }
    if level == Level::Root && !matches!(kind, "" | "object") {
        errors.push(FieldError::invalid(&at("type"), kind, "must be object at the root"));
    }
    for name in ["kind", "apiVersion"] {
        if let Some(property) = property(schema, name)
            && whole
            && text(property, "type") != "string"
        {
            let field = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(&field, text(property, "type"), "must be string"));
        }
    }
    if let Some(metadata) = property(schema, "metadata") {
        let field = format!("{path}.properties[metadata]");
        if whole && text(metadata, "type") != "object" {
            errors.push(FieldError::invalid(
                &format!("{field}.type"),
                text(metadata, "type"),
                "must be object",
            ));
        }
        if level == Level::Root && !only_names(metadata) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                          specified";
            errors.push(FieldError::forbidden(&field, detail));
        }
    }
    if embedded && !preserve && properties(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&at("properties"), detail));
    }
}

fn property<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// May the root's metadata say this? Only limits on names.
fn only_names(metadata: &Value) -> bool {
    let Value::Object(keywords) = metadata else { return false };
    let plain = keywords.keys().all(|keyword| matches!(keyword.as_str(), "type" | "properties" | "default"));
    plain && properties(metadata).all(|(name, _)| matches!(name.as_str(), "name" | "generateName"))
}

/// The one pattern in which branches may say types: a number or a string.
fn is_int_or_string(branches: &[Value]) -> bool {
    let only = |branch: &Value, kind: &str| {
        text(branch, "type") == kind && branch.as_object().is_some_and(|keywords| keywords.len() == 1)
    };
    matches!(branches, [first, second] if only(first, "integer") && only(second, "string"))
}

/// Branches limit values, and say nothing else.
fn branches(schema: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    if !skip_any_of {
        for (at, branch) in listed(schema, "anyOf").iter().enumerate() {
            nested(branch, false, &format!("{path}.anyOf[{at}]"), errors);
        }
    }
    let all = listed(schema, "allOf");
    let skip_first = all.first().is_some_and(|first| is_int_or_string(listed(first, "anyOf")));
    for (at, branch) in all.iter().enumerate() {
        nested(branch, skip_first && at == 0, &format!("{path}.allOf[{at}]"), errors);
    }
    for (at, branch) in listed(schema, "oneOf").iter().enumerate() {
        nested(branch, false, &format!("{path}.oneOf[{at}]"), errors);
    }
    if let Some(branch) = schema.get("not") {
        nested(branch, false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(why) = crate::schema::validate::compiled_pattern(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(FieldError::invalid(&format!("{path}.pattern"), pattern, detail));
    }
}

fn nested(branch: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    branches(branch, skip_any_of, path, errors);
    if let Some(items) = branch.get("items") {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(branch) {
        nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let undefined = |keyword: &str| match keyword {
        "additionalProperties" => branch.get(keyword).is_none_or(|value| value == &Value::Bool(false)),
        _ => branch.get(keyword).is_none_or(Value::is_null),
    };
    for (keyword, detail) in [
        ("type", "must be empty to be structural"),
        ("additionalProperties", "must be undefined to be structural"),
        ("default", "must be undefined to be structural"),
        ("title", "must be empty to be structural"),
        ("description", "must be empty to be structural"),
        ("nullable", "must be false to be structural"),
        ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
        ("x-kubernetes-embedded-resource", "must be false to be structural"),
        ("x-kubernetes-int-or-string", "must be false to be structural"),
        ("x-kubernetes-list-map-keys", "must be empty to be structural"),
        ("x-kubernetes-list-type", "must be undefined to be structural"),
        ("x-kubernetes-map-type", "must be undefined to be structural"),
        ("x-kubernetes-validations", "must be empty to be structural"),
    ] {
        let empty = branch.get(keyword).is_some_and(|value| {
            value == &Value::Bool(false) || value == "" || value.as_array().is_some_and(Vec::is_empty)
        });
        if !undefined(keyword) && !empty {
            errors.push(FieldError::forbidden(&format!("{path}.{keyword}"), detail));
        }
    }
    if property(branch, "metadata").is_some() {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(&format!("{path}.properties[metadata]"), detail));
    }
}

/// What a branch limits must be described outside of it too.
fn complete(branch: &Value, schema: &Value, path: &str, location: &str, errors: &mut Vec<FieldError>) {
    if let Some(not) = branch.get("not") {
        complete_nested(not, schema, path, &format!("{location}.not"), errors);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (at, inner) in listed(branch, keyword).iter().enumerate() {
            complete_nested(inner, schema, path, &format!("{location}.{keyword}[{at}]"), errors);
        }
    }
}

fn complete_nested(branch: &Value, schema: &Value, path: &str, location: &str, errors: &mut Vec<FieldError>) {
    complete(branch, schema, path, location, errors);
    let because = |location: &str| format!("because it is defined in {location}");
    if let Some(items) = branch.get("items") {
        let (path, location) = (format!("{path}.items"), format!("{location}.items"));
        match schema.get("items") {
            Some(described) => complete_nested(items, described, &path, &location, errors),
            None => errors.push(FieldError::required(&path, because(&location))),
        }
    }
    for (name, inner) in properties(branch) {
        let (path, location) =
            (format!("{path}.properties[{name}]"), format!("{location}.properties[{name}]"));
        match property(schema, name) {
            Some(described) => complete_nested(inner, described, &path, &location, errors),
            None => errors.push(FieldError::required(&path, because(&location))),
        }
    }
}
