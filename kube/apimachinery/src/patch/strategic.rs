//! Strategic merge patch: a merge patch that knows how lists merge.
//!
//! ```text
//!   $patch: replace | delete          of the object or the list item that it stands in
//!   $retainKeys: [a, b]               all other keys of the object go
//!   $deleteFromPrimitiveList/x: [a]   values that go from the set `x`
//!   $setElementOrder/x: [a, b]        the order of `x` after the merge
//! ```

mod lists;
mod order;

use super::PatchError;
use crate::go;
use crate::schema::{PatchStrategy, Schema};
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::mem::discriminant;

const PATCH: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

type Fields = Map<String, Value>;

/// Merges `patch` into `object`, lists by the schema's strategies and the patch's directives.
///
/// # Errors
/// When a directive or a list's shape makes no sense.
pub fn strategic(object: &Value, patch: &Value, schema: &Schema) -> Result<Value, PatchError> {
    let (Value::Object(object), Value::Object(patch)) = (object, patch) else {
        return Err(PatchError::Malformed("invalid JSON document".to_owned()));
    };
    merge(object.clone(), patch.clone(), Some(schema)).map(Value::Object)
}

fn merge(mut object: Fields, mut patch: Fields, schema: Option<&Schema>) -> Result<Fields, PatchError> {
    if let Some(directive) = patch.get(PATCH) {
        return match directive.as_str() {
            Some("replace") => {
                patch.remove(PATCH);
                Ok(patch)
            }
            Some("delete") => Ok(Fields::new()),
            _ => Err(unknown_directive(directive, &patch)),
        };
    }
    retain_keys(&mut object, &mut patch)?;
    order::merge_ordered(&mut object, &mut patch, schema)?;
    for (key, change) in patch {
        let deletes = key.strip_prefix(DELETE_FROM);
        let name = match deletes {
            None => key.as_str(),
            Some(rest) => rest
                .strip_prefix('/')
                .ok_or_else(|| PatchError::Malformed("invalid patch format of primitive list".to_owned()))?,
        };
        if change.is_null() {
            object.remove(name);
            continue;
        }
        let field = schema.and_then(|schema| schema.field(name));
        let merged = match (object.remove(name), change) {
            (Some(Value::Object(object)), Value::Object(change)) => {
                let replaces = field.is_some_and(|field| field.patch.replace);
                let merged = if replaces { change } else { merge(object, change, field)? };
                Some(Value::Object(merged))
            }
            (Some(Value::Array(list)), Value::Array(change)) => {
                let merged = if deletes.is_some() {
                    lists::delete(list, &change)?
                } else {
                    lists::merge(list, change, field)?
                };
                Some(Value::Array(merged))
            }
            (before, _) if deletes.is_some() => before,
            (before, mut change) => {
                let alike = before.is_some_and(|before| discriminant(&before) == discriminant(&change));
                if !alike {
                    drop_nulls(&mut change);
                }
                without_directives(change)
            }
        };
        if let Some(merged) = merged {
            object.insert(name.to_owned(), merged);
        }
    }
    Ok(object)
}

/// Drops the keys that a `$retainKeys` does not name; the patch may set no others.
fn retain_keys(object: &mut Fields, patch: &mut Fields) -> Result<(), PatchError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let malformed = || PatchError::Malformed("invalid patch format of retainKeys".to_owned());
    let retained = retained.as_array().ok_or_else(malformed)?;
    let retained: BTreeSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let retains = |name: &str| retained.contains(name);
    let free = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, change)| !change.is_null() && !free(name) && !retains(name)) {
        return Err(malformed());
    }
    object.retain(|name, _| retains(name));
    Ok(())
}

/// A new value: what only directs the merge has no place in it. None when all of it is a directive.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(PATCH) => None,
        Value::Object(fields) => {
            let kept =
                fields.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        scalar => Some(scalar),
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn merge_key(strategy: Option<&PatchStrategy>) -> Option<&str> {
    strategy?.merge_key.as_deref()
}

fn unknown_directive(directive: &Value, within: &Fields) -> PatchError {
    let within = go::plain(&Value::Object(within.clone()));
    PatchError::Failed(format!("unknown patch type: {} in map: {within}", go::plain(directive)))
}

fn no_merge_key(item: &Fields, key: &str) -> PatchError {
    let item = go::plain(&Value::Object(item.clone()));
    PatchError::Failed(format!("map: {item} does not contain declared merge key: {key}"))
}

fn wrong_type(expected: &Value, found: &Value) -> PatchError {
    PatchError::Failed(format!(
        "expected a {}, but received a {}",
        go::type_name(expected),
        go::type_name(found)
    ))
}
