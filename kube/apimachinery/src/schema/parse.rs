//! From the JSON of an OpenAPI v3 schema, as a CRD or a server's `/openapi/v3` has it.

use super::{Encoding, Kind, Limits, ListKind, PatchStrategy, Rule, Schema};
use serde_json::Value;
use std::collections::BTreeMap;

/// A schema that can't be used, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct Unstructural {
    /// The field path in the schema document.
    pub path: String,
    /// What is wrong.
    pub problem: String,
}

/// Reads a schema that has no `$ref` left in it.
///
/// # Errors
/// Where a keyword has a value of the wrong type.
pub fn parse(document: &Value) -> Result<Schema, Unstructural> {
    node(document, &mut String::new())
}

fn node(document: &Value, path: &mut String) -> Result<Schema, Unstructural> {
    let Value::Object(keywords) = document else {
        return Err(Unstructural { path: path.clone(), problem: "a schema must be an object".to_owned() });
    };
    let flag = |name: &str| keywords.get(name).and_then(Value::as_bool).unwrap_or_default();
    let text = |name: &str| keywords.get(name).and_then(Value::as_str).map(str::to_owned);
    let size = |name: &str| keywords.get(name).and_then(Value::as_u64);
    let number = |name: &str| keywords.get(name).and_then(Value::as_number).cloned();
    let names = |name: &str| -> Vec<String> {
        let listed = keywords.get(name).and_then(Value::as_array);
        listed.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let mut child =
        |name: &str| keywords.get(name).map(|child| within(path, name, |path| node(child, path))).transpose();
    let items = child("items")?.map(Box::new);
    let not = child("not")?.map(Box::new);
    let additional = match keywords.get("additionalProperties") {
        None | Some(Value::Bool(false)) => None,
        Some(Value::Bool(true)) => Some(Box::default()),
        Some(_) => child("additionalProperties")?.map(Box::new),
    };
    let mut branches = |name: &str| -> Result<Vec<Schema>, Unstructural> {
        let listed = keywords.get(name).and_then(Value::as_array);
        let listed = listed.into_iter().flatten().enumerate();
        listed.map(|(at, branch)| within(path, &format!("{name}[{at}]"), |path| node(branch, path))).collect()
    };
    let (all_of, any_of, one_of) = (branches("allOf")?, branches("anyOf")?, branches("oneOf")?);
    let mut properties = BTreeMap::new();
    for (name, property) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
        let property = within(path, &format!("properties[{name}]"), |path| node(property, path))?;
        properties.insert(name.clone(), property);
    }
    let strategies = text("x-kubernetes-patch-strategy").unwrap_or_default();
    Ok(Schema {
        kind: kind(
            keywords.get("type").and_then(Value::as_str),
            flag("x-kubernetes-int-or-string") || text("format").as_deref() == Some("int-or-string"),
            path,
        )?,
        nullable: flag("nullable"),
        properties: properties.into(),
        additional,
        items,
        required: names("required"),
        default: keywords.get("default").cloned(),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded: flag("x-kubernetes-embedded-resource"),
        list: match text("x-kubernetes-list-type").as_deref() {
            Some("set") => ListKind::Set,
            Some("map") => ListKind::Map(names("x-kubernetes-list-map-keys")),
            _ => ListKind::Atomic,
        },
        atomic_map: text("x-kubernetes-map-type").as_deref() == Some("atomic"),
        patch: PatchStrategy {
            merge: strategies.split(',').any(|strategy| strategy == "merge"),
            replace: strategies.split(',').any(|strategy| strategy == "replace"),
            retain_keys: strategies.split(',').any(|strategy| strategy == "retainKeys"),
            merge_key: text("x-kubernetes-patch-merge-key"),
        },
        encoding: Encoding::AsGiven,
        rules: keywords
            .get("x-kubernetes-validations")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(rule)
            .collect(),
        limits: Limits {
            format: text("format"),
            one_of_values: keywords.get("enum").and_then(Value::as_array).cloned(),
            minimum: number("minimum"),
            maximum: number("maximum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: number("multipleOf"),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            pattern: text("pattern"),
            min_items: size("minItems"),
            max_items: size("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            all_of,
            any_of,
            one_of,
            not,
        },
        description: text("description").unwrap_or_default(),
    })
}

fn kind(named: Option<&str>, int_or_string: bool, path: &str) -> Result<Kind, Unstructural> {
    if int_or_string {
        return Ok(Kind::IntOrString);
    }
    Ok(match named {
        None => Kind::Any,
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::String,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        Some(other) => {
            return Err(Unstructural { path: path.to_owned(), problem: format!("no such type: {other:?}") });
        }
    })
}

fn rule(document: &Value) -> Rule {
    let text = |name: &str| document.get(name).and_then(Value::as_str).map(str::to_owned);
    Rule {
        rule: text("rule").unwrap_or_default(),
        message: text("message"),
        message_expression: text("messageExpression"),
        reason: text("reason"),
        field_path: text("fieldPath"),
        optional_old_self: document.get("optionalOldSelf").and_then(Value::as_bool).unwrap_or_default(),
    }
}

/// Runs `inner` one step deeper in the path.
fn within<T>(path: &mut String, step: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(step);
    let result = inner(path);
    path.truncate(length);
    result
}
