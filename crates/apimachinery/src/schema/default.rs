//! Fills in what an object does not say.

use super::Schema;
use serde_json::Value;

/// Gives every absent field its default, and replaces or drops `null` where the schema does not allow it.
pub fn default(value: &mut Value, schema: &Schema) {
    match value {
        Value::Object(fields) => {
            for (name, property) in &schema.properties {
                let Some(filler) = &property.default else { continue };
                let wanting = fields.get(name).is_none_or(|is| is.is_null() && !property.nullable);
                if wanting {
                    fields.insert(name.clone(), filler.clone());
                }
            }
            // Null says nothing where it may not stand and nothing replaces it.
            fields.retain(|name, field| {
                let inner = schema.field(name);
                !(field.is_null() && inner.is_some_and(|inner| !inner.nullable && inner.default.is_none()))
            });
            for (name, field) in fields.iter_mut() {
                let Some(inner) = schema.field(name) else { continue };
                if field.is_null()
                    && !inner.nullable
                    && let Some(filler) = &inner.default
                {
                    *field = filler.clone();
                }
                default(field, inner);
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
                default(item, inner);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
