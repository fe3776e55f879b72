//! Pruning: drops fields that the schema does not have.

use super::Schema;
use crate::invalid::{TOLD_MOST, told};
use serde_json::Value;

/// What every whole object has, whether its schema says so or not.
const OF_EVERY_OBJECT: &[&str] = &["apiVersion", "kind", "metadata"];

/// Drops unknown fields of a whole object, and says which, sorted: `spec.foo`, `spec.ports[0].foo`. The first hundred are
/// told.
pub fn prune(value: &mut Value, schema: &Schema) -> Vec<String> {
    let mut dropped = Vec::new();
    node(value, Some(schema), true, &mut String::new(), &mut dropped);
    dropped.sort_unstable();
    dropped
}

/// `whole`: the value is an object of its own, whose metadata is not the schema's business.
fn node(
    value: &mut Value,
    schema: Option<&Schema>,
    whole: bool,
    path: &mut String,
    dropped: &mut Vec<String>,
) {
    let kept = schema.is_some_and(|schema| schema.preserve_unknown);
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                if whole && OF_EVERY_OBJECT.contains(&name.as_str()) {
                    return true;
                }
                match schema.and_then(|schema| schema.field(name)) {
                    Some(inner) => {
                        within(path, name, |path| node(field, Some(inner), inner.embedded, path, dropped));
                        true
                    }
                    None if kept => true,
                    None => {
                        if dropped.len() < TOLD_MOST {
                            within(path, name, |path| dropped.push(told(path.as_str()).into_owned()));
                        }
                        false
                    }
                }
            });
        }
        Value::Array(items) => {
            let inner = schema.and_then(|schema| schema.items.as_deref());
            for (at, item) in items.iter_mut().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{at}]"));
                if kept {
                    // What a list keeps, it keeps in its items too.
                    keep(item, inner, path, dropped);
                } else {
                    node(item, inner, inner.is_some_and(|inner| inner.embedded), path, dropped);
                }
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Inside of something that keeps unknown fields: only what the schema describes further is pruned.
fn keep(value: &mut Value, schema: Option<&Schema>, path: &mut String, dropped: &mut Vec<String>) {
    let Some(schema) = schema else { return };
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if schema.embedded && OF_EVERY_OBJECT.contains(&name.as_str()) {
                    continue;
                }
                if let Some(inner) = schema.field(name) {
                    within(path, name, |path| node(field, Some(inner), inner.embedded, path, dropped));
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                let length = path.len();
                path.push_str(&format!("[{at}]"));
                keep(item, schema.items.as_deref(), path, dropped);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn within<T>(path: &mut String, name: &str, inner: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    if length > 0 {
        path.push('.');
    }
    path.push_str(name);
    let result = inner(path);
    path.truncate(length);
    result
}
