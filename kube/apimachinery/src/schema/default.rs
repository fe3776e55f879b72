//! Fills in what an object does not say.

use super::Schema;
use serde_json::Value;

/// Gives every absent field its default, and replaces or drops `null` where the schema does not allow it: what a body is
/// subject to when it is read.
pub fn default(value: &mut Value, schema: &Schema) {
    drop_nulls(value, schema);
    fill(value, schema);
}

/// Drops `null` where it may not stand and nothing replaces it: there it says nothing.
fn drop_nulls(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, field| {
                let inner = schema.field(name);
                !(field.is_null() && inner.is_some_and(|inner| !inner.nullable && inner.default.is_none()))
            });
            for (name, field) in fields.iter_mut() {
                if let Some(inner) = schema.field(name) {
                    drop_nulls(field, inner);
                }
            }
        }
        Value::Array(items) => {
            if let Some(inner) = schema.items.as_deref() {
                items.iter_mut().for_each(|item| drop_nulls(item, inner));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives every absent field its default, and `null` too where the schema does not allow it. Other `null`s stay: what
/// server-side apply merged is not read again, and is refused for them.
pub fn fill(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(filler) = &property.default else { continue };
                let wanting = fields.get(name).is_none_or(|is| is.is_null() && !property.nullable);
                if wanting {
                    fields.insert(name.clone(), filler.clone());
                }
            }
            for (name, field) in fields.iter_mut() {
                let Some(inner) = schema.field(name) else { continue };
                if field.is_null()
                    && !inner.nullable
                    && let Some(filler) = &inner.default
                {
                    *field = filler.clone();
                }
                fill(field, inner);
            }
        }
        Value::Array(items) => {
            let Some(inner) = schema.items.as_deref() else { return };
            for item in items {
                if item.is_null()
                    && !inner.nullable
                    && let Some(filler) = &inner.default
                {
                    *item = filler.clone();
                }
                fill(item, inner);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
