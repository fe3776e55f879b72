//! The live value with an applied one laid over it. Nothing is removed, and the applied order of list items wins.

use super::element::Element;
use super::shape::{Chosen, Fields, List, Type};
use crate::schema::ListKind;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Lays `applied` over `live`.
///
/// # Errors
/// When items of a list can't be told apart.
pub(super) fn merge(live: &Value, applied: &Value, of: Type<'_>) -> Result<Value, String> {
    Ok(both(Some(live), Some(applied), of)?.unwrap_or(Value::Null))
}

fn both(live: Option<&Value>, applied: Option<&Value>, of: Type<'_>) -> Result<Option<Value>, String> {
    let atom = of.atom();
    let Some(value) = applied.or(live) else { return Ok(None) };
    match atom.chosen(atom.form(value)) {
        Some(Chosen::List(list)) => {
            let (was, is) = (items(live), items(applied));
            if *list.kind == ListKind::Atomic || (was.is_empty() && is.is_empty()) {
                return Ok(Some(value.clone()));
            }
            let merged = merge_lists(was, is, list)?;
            Ok(Some(Value::Array(merged))
                .filter(|merged| merged.as_array().is_some_and(|items| !items.is_empty())))
        }
        Some(Chosen::Map(fields)) => {
            let (was, is) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
            if fields.atomic || (was.is_none_or(Map::is_empty) && is.is_none_or(Map::is_empty)) {
                return Ok(Some(value.clone()));
            }
            let merged = merge_maps(was, is, fields)?;
            Ok(Some(merged).filter(|merged| !merged.is_empty()).map(Value::Object))
        }
        Some(Chosen::Scalar(_)) | None => Ok(Some(value.clone())),
    }
}

fn merge_maps(
    live: Option<&Map<String, Value>>,
    applied: Option<&Map<String, Value>>,
    fields: Fields<'_>,
) -> Result<Map<String, Value>, String> {
    let mut merged = Map::new();
    let names: BTreeSet<_> = live.into_iter().chain(applied).flat_map(Map::keys).collect();
    for name in names {
        let Some(of) = fields.field(name) else { continue };
        let (live, applied) =
            (live.and_then(|live| live.get(name)), applied.and_then(|applied| applied.get(name)));
        if let Some(value) = both(live, applied, of)? {
            merged.insert(name.clone(), value);
        }
    }
    Ok(merged)
}

/// Items that only one side has keep their place among the items that both have, which come in the applied order.
fn merge_lists(live: &[Value], applied: &[Value], list: List<'_>) -> Result<Vec<Value>, String> {
    let (live_elements, applied_elements) = (elements(live, list)?, elements(applied, list)?);
    let mut live_by_element: BTreeMap<&Element, Option<&Value>> = BTreeMap::new();
    for (element, item) in live_elements.iter().zip(live) {
        // Two live items of one key merge with nothing.
        live_by_element.entry(element).and_modify(|item| *item = None).or_insert(Some(item));
    }
    let mut applied_by_element = BTreeMap::new();
    for (element, item) in applied_elements.iter().zip(applied) {
        if applied_by_element.insert(element, item).is_some() {
            return Err(format!("duplicate entries for key {element}"));
        }
    }
    let mut shared: VecDeque<&Element> =
        applied_elements.iter().filter(|element| live_by_element.contains_key(element)).collect();
    let mut awaited = shared.pop_front();
    let mut merged = Vec::with_capacity(live.len().max(applied.len()));
    let mut done = BTreeSet::new();
    let (mut at_live, mut at_applied) = (0, 0);
    while at_live < live.len() || at_applied < applied.len() {
        if at_live < live.len() && at_applied < applied.len() {
            let element = &live_elements[at_live];
            if *element == applied_elements[at_applied] {
                done.insert(element);
                merged.extend(merge_items(&live_by_element, &applied_by_element, element, list)?);
                at_live += 1;
                at_applied += 1;
                awaited = shared.pop_front();
                continue;
            }
            if applied_by_element.contains_key(element) && awaited.is_some_and(|awaited| awaited != element) {
                // It comes later, where the applied order has it.
                at_live += 1;
                continue;
            }
        }
        if at_live < live.len() {
            let element = &live_elements[at_live];
            if !applied_by_element.contains_key(element) {
                merged.extend(both(Some(&live[at_live]), None, list.items)?);
                at_live += 1;
                continue;
            }
            if done.contains(element) {
                at_live += 1;
            }
        }
        if at_applied < applied.len() {
            let element = &applied_elements[at_applied];
            done.insert(element);
            merged.extend(merge_items(&live_by_element, &applied_by_element, element, list)?);
            at_applied += 1;
            if awaited == Some(element) {
                awaited = shared.pop_front();
            }
        }
    }
    Ok(merged)
}

fn merge_items(
    live: &BTreeMap<&Element, Option<&Value>>,
    applied: &BTreeMap<&Element, &Value>,
    element: &Element,
    list: List<'_>,
) -> Result<Option<Value>, String> {
    // A live item that is there twice counts as null.
    let live = live.get(element).map(|live| live.unwrap_or(&Value::Null));
    both(live, applied.get(element).copied(), list.items)
}

fn elements(items: &[Value], list: List<'_>) -> Result<Vec<Element>, String> {
    let numbered = items.iter().enumerate();
    numbered
        .map(|(at, item)| list.element(item).map_err(|problem| format!("element {at}: {problem}")))
        .collect()
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
