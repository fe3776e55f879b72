//! The order of a merged list: what the patch names in its order, the rest where the live list had it.

use super::lists::{self, Items, fields};
use super::{Fields, PATCH, SET_ORDER, merge_key, no_merge_key, without_directives, wrong_type};
use crate::go;
use crate::patch::PatchError;
use crate::schema::Schema;
use serde_json::Value;
use std::cmp::Ordering;
use std::collections::HashMap;

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
    let places = Places::of(by, key, if key.is_some() { Items::Objects } else { Items::Values });
    for item in items {
        identity(&item, key)?;
        if places.get(&item).is_some() { named.push(item) } else { others.push(item) }
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
    let places = Places::of(live, key, kind);
    let mut merged = Vec::with_capacity(named.len() + others.len());
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    loop {
        let first = match (others.peek(), named.peek()) {
            (None, None) => return Ok(merged),
            (Some(_), None) => others.next(),
            (None, Some(_)) => named.next(),
            (Some(other), Some(name)) => match (places.get(other), places.get(name)) {
                (Some(other), Some(name)) if other < name => others.next(),
                _ => named.next(),
            },
        };
        merged.extend(first);
    }
}

fn sorted(
    items: Vec<Value>,
    order: &[Value],
    key: Option<&str>,
    kind: Items,
) -> Result<Vec<Value>, PatchError> {
    if let (Items::Objects, Some(_)) = (kind, key) {
        for item in items.iter().chain(order) {
            identity(item, key)?;
        }
    }
    let places = Places::of(order, key, kind);
    let mut placed: Vec<(Option<usize>, Value)> =
        items.into_iter().map(|item| (places.get(&item), item)).collect();
    placed.sort_by(|a, b| match (a.0, b.0) {
        (Some(a), Some(b)) => a.cmp(&b),
        _ => Ordering::Equal,
    });
    Ok(placed.into_iter().map(|(_, item)| item).collect())
}

/// Where the items of a list are, by what tells them apart.
pub(super) struct Places<'a> {
    key: Option<&'a str>,
    by_identity: HashMap<String, usize>,
}

impl<'a> Places<'a> {
    pub(super) fn of(list: &[Value], key: Option<&'a str>, kind: Items) -> Self {
        let mut places = Self { key: key.filter(|_| kind == Items::Objects), by_identity: HashMap::new() };
        for (place, item) in list.iter().enumerate() {
            // Of several alike the first counts.
            places.by_identity.entry(places.text(item)).or_insert(place);
        }
        places
    }

    pub(super) fn get(&self, item: &Value) -> Option<usize> {
        self.by_identity.get(&self.text(item)).copied()
    }

    /// The item with this merge key is now here.
    pub(super) fn add(&mut self, identity: &Value, place: usize) {
        self.by_identity.entry(identity.to_string()).or_insert(place);
    }

    /// Equal items are equal texts; one without the merge key has none.
    fn text(&self, item: &Value) -> String {
        match self.key {
            Some(key) => item.get(key).map(ToString::to_string).unwrap_or_default(),
            None => item.to_string(),
        }
    }
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
