//! Keywords, one node at a time.

use super::{flag, listed, properties, rules, text};
use crate::invalid::FieldError;
use serde_json::Value;

/// What holds for a node because of where it is.
#[derive(Clone, Default)]
pub(super) struct SchemaLocation {
    pub(super) path: String,
    inside_meta: bool,
    no_defaults: Option<String>,
    /// The nearest part of the schema whose values can't be told to belong to old ones.
    pub(super) uncorrelated: Option<String>,
}

pub(super) fn check(document: &Value, path: &str, holds: bool) -> Vec<FieldError> {
    let mut found = Found::default();
    let location = SchemaLocation { path: path.to_owned(), ..SchemaLocation::default() };
    let types = holds.then(|| crate::schema::parse(document).ok()).flatten();
    node(document, true, &location, types.as_ref(), &mut found);
    found.schema.extend(found.rules);
    found.schema
}

/// Errors of rules come after all others.
#[derive(Default)]
struct Found {
    schema: Vec<FieldError>,
    rules: Vec<FieldError>,
}

fn node(
    document: &Value,
    root: bool,
    location: &SchemaLocation,
    types: Option<&crate::schema::Schema>,
    found: &mut Found,
) {
    let at = |keyword: &str| format!("{}.{keyword}", location.path);
    let below = |step: &str| SchemaLocation { path: format!("{}.{step}", location.path), ..location.clone() };
    let before = found.schema.len();
    supported(document, location, &mut found.schema);
    if flag(document, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        found.schema.push(FieldError::forbidden(&at("uniqueItems"), detail));
    }
    if let Some(additional) = document.get("additionalProperties") {
        if properties(document).next().is_some() && additional != &Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            found.schema.push(FieldError::forbidden(&at("additionalProperties"), detail));
        }
        let mut inner = below("additionalProperties");
        if location.inside_meta {
            inner.no_defaults = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        if additional.is_object() {
            node(additional, false, &inner, types.and_then(|types| types.additional.as_deref()), found);
        }
    }
    for (name, property) in properties(document) {
        let mut inner = below(&format!("properties[{name}]"));
        let whole = root || flag(document, "x-kubernetes-embedded-resource");
        if whole && matches!(name.as_str(), "apiVersion" | "kind" | "metadata") {
            inner.inside_meta = true;
            if root {
                inner.no_defaults = Some(format!("in top-level {name}"));
            }
        }
        node(property, false, &inner, types.and_then(|types| types.properties.get(name)), found);
    }
    if let Some(not) = document.get("not") {
        node(not, false, &below("not"), None, found);
    }
    for keyword in ["allOf", "oneOf", "anyOf"] {
        for (index, branch) in listed(document, keyword).iter().enumerate() {
            node(branch, false, &below(&format!("{keyword}[{index}]")), None, found);
        }
    }
    if let Some(items) = document.get("items").filter(|items| items.is_object()) {
        let mut inner = below("items");
        if text(document, "x-kubernetes-list-type") != "map" {
            inner.uncorrelated = Some(location.path.clone());
        }
        node(items, false, &inner, types.and_then(|types| types.items.as_deref()), found);
    }
    extensions(document, &at, &mut found.schema);
    map_lists(document, &at, &mut found.schema);
    rules::form(document, location, &mut found.schema);
    if let Some(types) = types
        && found.schema.len() == before
    {
        rules::compile(document, types, location, &mut found.rules);
    }
}

fn supported(document: &Value, location: &SchemaLocation, errors: &mut Vec<FieldError>) {
    const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];
    let at = |keyword: &str| format!("{}.{keyword}", location.path);
    let kind = text(document, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&at("type"), kind, TYPES));
    }
    if let (Some(_), Some(why)) = (document.get("default"), &location.no_defaults) {
        errors.push(FieldError::forbidden(&at("default"), format!("must not be set {why}")));
    }
    for keyword in ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"] {
        if document.get(keyword).is_some() {
            errors.push(FieldError::forbidden(&at(keyword), format!("{keyword} is not supported")));
        }
    }
    if kind == "null" {
        let detail = "type cannot be set to null, use nullable as an alternative";
        errors.push(FieldError::forbidden(&at("type"), detail));
    }
    if document.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(&at("items"), "items must be a schema object and not an array"));
    }
    if location.inside_meta && flag(document, "x-kubernetes-embedded-resource") {
        let detail = "must not be used inside of resource meta";
        errors.push(FieldError::forbidden(&at("x-kubernetes-embedded-resource"), detail));
    }
}

fn extensions(document: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let kind = text(document, "type");
    if document.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let field = at("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&field, false, "must be true or undefined"));
    }
    for (keyword, wanted, values) in [
        ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
        ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
    ] {
        let Some(is) = document.get(keyword).and_then(Value::as_str) else { continue };
        if kind != wanted {
            let detail = format!("must be {wanted} if {keyword} is specified");
            errors.push(match kind {
                "" => FieldError::required(&at("type"), detail),
                other => FieldError::invalid(&at("type"), other, detail),
            });
        } else if is == "set" {
            let items = document.get("items").unwrap_or(&Value::Null);
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            let (list, map) = (items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type"));
            match text(items, "type") {
                "array" if list.is_some_and(|list| list != "atomic") => {
                    let field = format!("{}.x-kubernetes-list-type", at("items"));
                    errors.push(FieldError::invalid(&field, list.cloned().unwrap_or_default(), detail));
                }
                "object" if map.is_none_or(|map| map != "atomic") => {
                    let field = format!("{}.x-kubernetes-map-type", at("items"));
                    // The server shows the list's type here, which is absent.
                    errors.push(FieldError::invalid(&field, list.cloned().unwrap_or_default(), detail));
                }
                _ => {}
            }
        }
        if !values.contains(&is) {
            errors.push(FieldError::not_supported(&at(keyword), is, values));
        }
    }
}

fn map_lists(document: &Value, at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    let (list, keys) =
        (text(document, "x-kubernetes-list-type"), listed(document, "x-kubernetes-list-map-keys"));
    if !keys.is_empty() && list != "map" {
        let (field, detail) =
            (at("x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty");
        errors.push(match list {
            "" => FieldError::required(&field, detail),
            other => FieldError::invalid(&field, other, detail),
        });
    }
    let items = document.get("items");
    if list == "map" {
        if keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            errors.push(FieldError::required(&at("x-kubernetes-list-map-keys"), detail));
        }
        match items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                errors.push(FieldError::required(&at("items"), detail));
            }
            Some(items) if text(items, "type") != "object" => {
                let detail = "must be object if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(
                    &format!("{}.type", at("items")),
                    text(items, "type"),
                    detail,
                ));
            }
            Some(items) => key_fields(items, keys, at, errors),
        }
    }
    let Some(items) = items.filter(|_| matches!(list, "map" | "set")) else { return };
    if flag(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.push(FieldError::forbidden(&format!("{}.nullable", at("items")), detail));
    }
    if list != "map" {
        return;
    }
    for key in keys.iter().filter_map(Value::as_str) {
        let Some(property) = items.get("properties").and_then(|all| all.get(key)) else { continue };
        let field = format!("{}.properties[{key}]", at("items"));
        let required = listed(items, "required").iter().any(|name| name == key);
        if !required && property.get("default").is_none() {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                          property";
            errors.push(FieldError::required(&format!("{field}.default"), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(&format!("{field}.nullable"), detail));
        }
    }
}

fn key_fields(items: &Value, keys: &[Value], at: &impl Fn(&str) -> String, errors: &mut Vec<FieldError>) {
    for (index, key) in keys.iter().enumerate() {
        let name = key.as_str().unwrap_or_default();
        let all = || Value::Array(keys.to_vec());
        match items.get("properties").and_then(|properties| properties.get(name)) {
            Some(property) if matches!(text(property, "type"), "array" | "object") => {
                let field = format!("{}.properties[{name}].type", at("items"));
                let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                errors.push(FieldError::invalid(&field, text(items, "type"), detail));
            }
            Some(_) => {}
            None => {
                let detail = "entries must all be names of item properties";
                errors.push(FieldError::invalid(&at("x-kubernetes-list-map-keys"), all(), detail));
            }
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(&at("x-kubernetes-list-map-keys"), all(), detail));
        }
    }
}
