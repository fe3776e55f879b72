//! A value without some of its fields.

use super::element::Element;
use super::set::Set;
use super::shape::{Chosen, Type};
use crate::schema::ListKind;
use serde_json::{Map, Value};

/// Takes fields out. What has nothing left becomes null.
pub(super) fn remove(value: &Value, fields: &Set, of: Type<'_>) -> Value {
    let atom = of.atom();
    match (atom.chosen(atom.form(value)), value) {
        (Some(Chosen::Scalar(_)), _) => value.clone(),
        (Some(Chosen::List(list)), Value::Array(items)) if *list.kind != ListKind::Atomic => {
            let mut left = Vec::new();
            for item in items {
                let Ok(element) = list.element(item) else { continue };
                if fields.has(&element) {
                    continue;
                }
                left.push(match fields.below(&element) {
                    Some(below) => remove(item, below, list.items),
                    None => item.clone(),
                });
            }
            if left.is_empty() { Value::Null } else { Value::Array(left) }
        }
        (Some(Chosen::Map(declared)), Value::Object(values)) if !declared.atomic => {
            let mut left = Map::new();
            for (name, value) in values {
                let element = Element::field(name);
                if fields.has(&element) {
                    continue;
                }
                let value = match (fields.below(&element), declared.field(name)) {
                    (Some(below), Some(of)) => remove(value, below, of),
                    _ => value.clone(),
                };
                left.insert(name.clone(), value);
            }
            if left.is_empty() { Value::Null } else { Value::Object(left) }
        }
        _ => Value::Null,
    }
}
