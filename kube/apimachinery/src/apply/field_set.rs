//! Which fields does a value have? Leaves, keys of maps, and items of lists.

use super::element::Element;
use super::set::Set;
use super::shape::{Chosen, List, Type};
use crate::schema::ListKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// The fields that a value has.
pub(super) fn field_set(value: &Value, of: Type<'_>) -> Set {
    let mut set = Set::default();
    visit(value, of, &mut Vec::new(), &mut set);
    set
}

fn visit(value: &Value, of: Type<'_>, path: &mut Vec<Element>, set: &mut Set) {
    let atom = of.atom();
    match atom.chosen(atom.form(value)) {
        None | Some(Chosen::Scalar(_)) => set.insert(path),
        Some(Chosen::List(list)) if *list.kind == ListKind::Atomic => set.insert(path),
        Some(Chosen::List(list)) => {
            visit_items(value.as_array().map_or(&[][..], Vec::as_slice), list, path, set);
        }
        Some(Chosen::Map(fields)) if fields.atomic => set.insert(path),
        Some(Chosen::Map(fields)) => {
            for (name, value) in value.as_object().into_iter().flatten() {
                let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                path.push(Element::field(name));
                if let Some(of) = fields.field(name) {
                    visit(value, of, path, set);
                }
                if empty || !fields.declares(name) {
                    set.insert(path);
                }
                path.pop();
            }
        }
    }
}

fn visit_items(items: &[Value], list: List<'_>, path: &mut Vec<Element>, set: &mut Set) {
    let elements: Vec<_> = items.iter().filter_map(|item| Some((list.element(item).ok()?, item))).collect();
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> =
        elements.iter().filter(|(element, _)| !seen.insert(element)).map(|(e, _)| e).collect();
    for (element, item) in &elements {
        path.push(element.clone());
        // Items of the same key are one, owned as a whole.
        if !twice.contains(element) {
            visit(item, list.items, path, set);
        }
        set.insert(path);
        path.pop();
    }
}
