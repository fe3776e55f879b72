//! Which old value a new value comes from: by name in objects, by key in lists that are maps, else unknown.

use super::{ListKind, Schema};
use serde_json::Value;

/// The old value of the item at `index`, if the list's kind tells items apart.
pub(super) fn old_item<'a>(item: &Value, old: Option<&'a Value>, list: &Schema) -> Option<&'a Value> {
    let ListKind::Map(keys) = &list.list else { return None };
    let defaults = |key: &str| list.items.as_ref()?.properties.get(key)?.default.as_ref();
    let key_of = |value: &'_ Value, key: &str| value.get(key).or_else(|| defaults(key)).cloned();
    old?.as_array()?
        .iter()
        .find(|candidate| keys.iter().all(|key| key_of(candidate, key) == key_of(item, key)))
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
            (ListKind::Map(_), Some(inner)) => {
                let item_same = |item: &Value| {
                    old_item(item, Some(old), schema).is_some_and(|was| same(item, was, inner))
                };
                items.len() == was.len() && items.iter().all(item_same)
            }
            _ => items == was,
        },
        _ => new == old,
    }
}
