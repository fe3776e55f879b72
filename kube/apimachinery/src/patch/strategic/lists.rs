//! Lists in a strategic merge patch: items merge by a key, values as a set, or the list is replaced.

use super::order::{self, Places};
use super::{Fields, PATCH, merge_key, no_merge_key, unknown_directive, wrong_type};
use crate::patch::PatchError;
use crate::schema::Schema;
use serde_json::Value;
use std::collections::HashSet;
use std::mem::discriminant;

/// What the items of a list are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Items {
    Objects,
    Values,
}

/// Merges a list as its field's strategy says.
pub(super) fn merge(
    list: Vec<Value>,
    change: Vec<Value>,
    field: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    let Some(field) = field.filter(|field| field.patch.merge) else { return Ok(change) };
    if list.is_empty() && change.is_empty() {
        return Ok(list);
    }
    let key = merge_key(Some(&field.patch));
    let kind = kind(&[&list, &change])?;
    let (merged, list, change) = match kind {
        Items::Values => {
            let merged = distinct(list.iter().chain(&change).cloned().collect());
            (merged, list, change)
        }
        Items::Objects => {
            let Some(key) = key else {
                return Err(PatchError::Failed("cannot merge lists without merge key for struct".to_owned()));
            };
            let (list, change) = obey(list, change, key)?;
            (merge_items(list.clone(), &change, key, field.items.as_deref())?, list, change)
        }
    };
    let (named, others) = order::partition(merged, &change, key)?;
    order::interleave(named, others, &change, &list, key, kind)
}

/// Takes values out of a set.
pub(super) fn delete(list: Vec<Value>, gone: &[Value]) -> Result<Vec<Value>, PatchError> {
    if list.is_empty() && gone.is_empty() {
        return Ok(list);
    }
    match kind(&[&list, gone])? {
        Items::Values => {
            let gone: HashSet<String> = gone.iter().map(ToString::to_string).collect();
            Ok(list.into_iter().filter(|item| !gone.contains(&item.to_string())).collect())
        }
        Items::Objects => {
            Err(PatchError::Failed("cannot merge lists without merge key for struct".to_owned()))
        }
    }
}

/// Are a list's items objects or plain values? They must be alike.
pub(super) fn kind(lists: &[&[Value]]) -> Result<Items, PatchError> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else {
        return Err(PatchError::Failed("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(PatchError::Unprocessable("lists of lists are not supported".to_owned()));
    }
    if items.any(|item| discriminant(item) != discriminant(first)) {
        let lists = Value::Array(lists.iter().map(|list| Value::Array(list.to_vec())).collect());
        return Err(PatchError::Failed(format!(
            "list element types are not identical: {}",
            crate::go::plain(&lists)
        )));
    }
    Ok(if first.is_object() { Items::Objects } else { Items::Values })
}

/// Carries out the `$patch` of single items: what is left of the list, and of the patch.
fn obey(mut list: Vec<Value>, change: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>), PatchError> {
    let mut plain = Vec::new();
    let mut deleted = HashSet::new();
    let mut replaces = false;
    for item in change {
        let Some((fields, directive)) = item.as_object().and_then(|item| Some((item, item.get(PATCH)?)))
        else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("delete") => {
                let Some(gone) = fields.get(key) else { return Err(no_merge_key(fields, key)) };
                deleted.insert(gone.to_string());
            }
            Some("replace") => replaces = true,
            Some("merge") => {
                return Err(PatchError::Failed(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            _ => return Err(unknown_directive(directive, fields)),
        }
    }
    if !deleted.is_empty() {
        list.retain(|item| item.get(key).is_none_or(|identity| !deleted.contains(&identity.to_string())));
    }
    Ok(if replaces { (plain, Vec::new()) } else { (list, plain) })
}

fn merge_items(
    mut list: Vec<Value>,
    change: &[Value],
    key: &str,
    schema: Option<&Schema>,
) -> Result<Vec<Value>, PatchError> {
    let mut places = Places::of(&list, Some(key), Items::Objects);
    for item in change {
        let fields = fields(item)?;
        let Some(identity) = fields.get(key) else { return Err(no_merge_key(fields, key)) };
        match places.get(item).and_then(|place| list.get_mut(place)) {
            Some(Value::Object(before)) => {
                *before = super::merge(std::mem::take(before), fields.clone(), schema)?;
            }
            _ => {
                places.add(identity, list.len());
                list.push(item.clone());
            }
        }
    }
    Ok(list)
}

pub(super) fn fields(item: &Value) -> Result<&Fields, PatchError> {
    item.as_object().ok_or_else(|| wrong_type(&Value::Object(Fields::new()), item))
}

/// Without repetitions. The order is that of the patch and of the live list, and is made afterwards.
fn distinct(mut values: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    values.retain(|value| seen.insert(value.to_string()));
    values
}
