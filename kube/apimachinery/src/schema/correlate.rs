//! Which old value a new value comes from: by name in objects, by key in lists that are maps, else unknown.

use super::{ListKind, Schema};
use serde_json::Value;
use std::collections::HashMap;

/// The items of an old list by their keys; none where the list's kind does not tell items apart.
pub(super) struct OldItems<'a> {
    list: &'a Schema,
    by_key: HashMap<String, &'a Value>,
}

impl<'a> OldItems<'a> {
    pub(super) fn of(old: Option<&'a Value>, list: &'a Schema) -> Self {
        let mut items = Self { list, by_key: HashMap::new() };
        if matches!(list.list, ListKind::Map(_)) {
            for item in old.and_then(Value::as_array).into_iter().flatten() {
                // Of two with one key the first counts.
                items.by_key.entry(items.key(item)).or_insert(item);
            }
        }
        items
    }

    /// The old value of an item.
    pub(super) fn get(&self, item: &Value) -> Option<&'a Value> {
        if self.by_key.is_empty() { None } else { self.by_key.get(&self.key(item)).copied() }
    }

    /// What tells an item apart: equal keys are equal texts.
    fn key(&self, item: &Value) -> String {
        let ListKind::Map(keys) = &self.list.list else { return String::new() };
        let default = |key: &str| self.list.items.as_ref()?.properties.get(key)?.default.as_ref();
        let value = |key: &String| item.get(key).or_else(|| default(key)).map(ToString::to_string);
        keys.iter().map(|key| value(key).unwrap_or_default() + "\n").collect()
    }
}

/// Is the value what it was? Fields that the schema does not know can't be compared, and count as changed.
pub(super) fn same(new: &Value, old: &Value, schema: &Schema) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            let field_same = |(name, value): (&String, &Value)| match (old.get(name), schema.field(name)) {
                (Some(was), Some(inner)) => same(value, was, inner),
                _ => false,
            };
            new.len() == old.len() && new.iter().all(field_same)
        }
        (Value::Array(items), Value::Array(was)) => match (&schema.list, schema.items.as_deref()) {
            (ListKind::Map(_), Some(inner)) if items.len() == was.len() => {
                let olds = OldItems::of(Some(old), schema);
                items.iter().all(|item| olds.get(item).is_some_and(|was| same(item, was, inner)))
            }
            (ListKind::Map(_), Some(_)) => false,
            _ => items == was,
        },
        _ => new == old,
    }
}
