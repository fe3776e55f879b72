//! Lists that are sets or maps: nothing may be in them twice.

use super::{ListKind, Schema};
use crate::invalid::{FieldError, TOLD_MOST, told};
use serde_json::{Map, Value};
use std::collections::HashMap;

/// What is doubled in the lists of a value.
#[must_use]
pub fn unique(value: &Value, schema: &Schema) -> Vec<FieldError> {
    let mut errors = Vec::new();
    node(value, schema, &mut String::new(), &mut errors);
    errors
}

fn node(value: &Value, schema: &Schema, path: &mut String, errors: &mut Vec<FieldError>) {
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(inner) = schema.properties.get(name) {
                    if length > 0 {
                        path.push('.');
                    }
                    path.push_str(name);
                    node(field, inner, path, errors);
                } else if let Some(inner) = &schema.additional {
                    path.push_str(&format!("[{name}]"));
                    node(field, inner, path, errors);
                }
                path.truncate(length);
            }
        }
        Value::Array(items) => {
            doubled(items, schema, path, errors);
            let Some(inner) = &schema.items else { return };
            for (at, item) in items.iter().enumerate() {
                path.push_str(&format!("[{at}]"));
                node(item, inner, path, errors);
                path.truncate(length);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn doubled(items: &[Value], schema: &Schema, path: &str, errors: &mut Vec<FieldError>) {
    let keys: Vec<Value> = match &schema.list {
        ListKind::Atomic => return,
        ListKind::Set => items.to_vec(),
        ListKind::Map(keys) => {
            let odd = items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object());
            if let Some((at, item)) = odd {
                let detail = "must be an object for an array of list-type map";
                errors.push(FieldError::invalid(&format!("{path}[{at}]"), item.clone(), detail));
                return;
            }
            let key = |item: &Value| {
                let found = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
                Value::Object(found.collect::<Map<_, _>>())
            };
            items.iter().map(key).collect()
        }
    };
    // Told once per value, at its second place. Equal values are equal texts.
    let mut seen: HashMap<String, usize> = HashMap::with_capacity(keys.len());
    for (at, key) in keys.into_iter().enumerate() {
        let times = seen.entry(key.to_string()).or_default();
        *times += 1;
        if *times == 2 && errors.len() < TOLD_MOST {
            errors.push(FieldError::duplicate(&told(format!("{path}[{at}]")), key));
        }
    }
}
