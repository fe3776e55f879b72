//! The order of a merged list: what the patch names in its order, the rest where the live list had it.

use super::lists::{self, Items, fields};
use super::{Fields, PATCH, SET_ORDER, merge_key, no_merge_key, without_directives, wrong_type};
use crate::go;
use crate::patch::PatchError;
use crate::schema::Schema;
use serde_json::Value;
use std::cmp::Ordering;

/// Merges the lists that a `$setElementOrder` is given for, and takes them out of the patch.
pub(super) fn merge_ordered(
    object: &mut Fields,
    patch: &mut Fields,
    schema: Option<&Schema>,
) -> Result<(), PatchError> {
    let directives: Vec<_> = patch.keys().filter(|key| key.starts_with(SET_ORDER)).cloned().collect();
    for directive in directives {
        let order = match patch.remove(&directive) {
            Some(Value::Array(order)) => order,
            Some(other) => return Err(wrong_type(&Value::Array(Vec::new()), &other)),
            None => continue,
        };
        let malformed = || PatchError::Malformed("invalid patch format of setElementOrder list".to_owned());
        let (prefix, name) = directive.split_once('/').ok_or_else(malformed)?;
        if prefix != SET_ORDER {
            return Err(malformed());
        }
        let (before, change) = (list_of(object.get(name))?, list_of(patch.get(name))?);
        let field = schema.and_then(|schema| schema.field(name));
        let key = merge_key(field.map(|field| &field.patch));
        agree(change.unwrap_or_default(), &order, key)?;
        let merged = match (before, change) {
            (None, None) => continue,
            (Some(before), None) => before.to_vec(),
            (None, Some(change)) => {
                change.iter().filter_map(|item| without_directives(item.clone())).collect()
            }
            (Some(before), Some(change)) => lists::merge(before.to_vec(), change.to_vec(), field)?,
        };
        let (before, change) = (before.unwrap_or_default().to_vec(), change.unwrap_or_default());
        let kind = lists::kind(&[&before, change])?;
        let (named, others) = partition(merged, &order, key)?;
        let ordered = interleave(named, others, &order, &before, key, kind)?;
        object.insert(name.to_owned(), Value::Array(ordered));
        patch.remove(name);
    }
    Ok(())
}

/// Does the order name the patch's items, and in the same order?
fn agree(change: &[Value], order: &[Value], key: Option<&str>) -> Result<(), PatchError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut wanted = Vec::new();
    for item in change {
        let deletes = key.is_some() && fields(item)?.get(PATCH).and_then(Value::as_str) == Some("delete");
        if !deletes && item.get(PATCH).is_none() {
            wanted.push(item);
        }
    }
    let mut wanted = wanted.into_iter().peekable();
    for ordered in order {
        let Some(next) = wanted.peek() else { break };
        if identity(next, key)? == identity(ordered, key)? {
            wanted.next();
        }
    }
    if wanted.peek().is_some() {
        let (change, order) = (Value::Array(change.to_vec()), Value::Array(order.to_vec()));
        return Err(PatchError::Failed(format!(
            "The order in patch list:\n{}\n doesn't match {SET_ORDER} list:\n{}\n",
            go::plain(&change),
            go::plain(&order)
        )));
    }
    Ok(())
}

/// The items that `by` names, and the others.
pub(super) fn partition(
    items: Vec<Value>,
    by: &[Value],
    key: Option<&str>,
) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let (mut named, mut others) = (Vec::new(), Vec::new());
    for item in items {
        let wanted = identity(&item, key)?;
        let found = match key {
            None => by.contains(wanted),
            Some(key) => by.iter().any(|item| item.get(key) == Some(wanted)),
        };
        if found { named.push(item) } else { others.push(item) }
    }
    Ok((named, others))
}

/// The named items in the order wanted, the others put between them where the live list had them.
pub(super) fn interleave(
    named: Vec<Value>,
    others: Vec<Value>,
    wanted: &[Value],
    live: &[Value],
    key: Option<&str>,
    kind: Items,
) -> Result<Vec<Value>, PatchError> {
    let named = sorted(named, wanted, key, kind)?;
    let others = sorted(others, live, key, kind)?;
    let mut merged = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(merged),
            (Some(_), None) => others.next(),
            (None, Some(_)) => named.next(),
            (Some(other), Some(name)) => {
                match (place(live, other, key, kind), place(live, name, key, kind)) {
                    (Some(other), Some(name)) if other < name => others.next(),
                    _ => named.next(),
                }
            }
        };
        merged.extend(first);
    }
}

fn sorted(
    mut items: Vec<Value>,
    order: &[Value],
    key: Option<&str>,
    kind: Items,
) -> Result<Vec<Value>, PatchError> {
    if let (Items::Objects, Some(_)) = (kind, key) {
        for item in items.iter().chain(order) {
            identity(item, key)?;
        }
    }
    items.sort_by(|a, b| match (place(order, a, key, kind), place(order, b, key, kind)) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    });
    Ok(items)
}

fn place(order: &[Value], item: &Value, key: Option<&str>, kind: Items) -> Option<usize> {
    let identity = |item: &Value| match (kind, key) {
        (Items::Objects, Some(key)) => item.get(key).cloned(),
        _ => Some(item.clone()),
    };
    let wanted = identity(item);
    order.iter().position(|item| identity(item) == wanted)
}

/// What tells an item apart: its merge key's value, or itself.
fn identity<'a>(item: &'a Value, key: Option<&str>) -> Result<&'a Value, PatchError> {
    let Some(key) = key else { return Ok(item) };
    let fields = fields(item)?;
    fields.get(key).ok_or_else(|| no_merge_key(fields, key))
}

fn list_of(value: Option<&Value>) -> Result<Option<&[Value]>, PatchError> {
    match value {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(wrong_type(&Value::Array(Vec::new()), other)),
    }
}
