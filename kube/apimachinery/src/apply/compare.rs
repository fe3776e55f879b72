//! What differs between two values, field by field.

use super::element::{Element, same};
use super::set::Set;
use super::shape::{Chosen, Fields, Form, List, Type};
use crate::schema::ListKind;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The fields that differ; each is in one of the three.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Comparison {
    pub(super) removed: Set,
    pub(super) modified: Set,
    pub(super) added: Set,
}

impl Comparison {
    /// Without some fields and all that is below them.
    pub(super) fn without(&self, fields: &Set) -> Self {
        Self {
            removed: self.removed.without(fields),
            modified: self.modified.without(fields),
            added: self.added.without(fields),
        }
    }
}

/// Compares two values of one type.
pub(super) fn compare(before: &Value, after: &Value, of: Type<'_>) -> Comparison {
    let mut walk = Walk { path: Vec::new(), found: Comparison::default() };
    walk.both(Some(before), Some(after), of);
    walk.found
}

struct Walk {
    path: Vec<Element>,
    found: Comparison,
}

impl Walk {
    fn both(&mut self, before: Option<&Value>, after: Option<&Value>, of: Type<'_>) {
        let atom = of.atom();
        let forms = (before.map(|value| atom.form(value)), after.map(|value| atom.form(value)));
        let leaf = match forms {
            (None, None) => return,
            (Some(form), None) | (None, Some(form)) => self.as_form(before, after, of, form),
            (Some(was), Some(is)) => {
                if was != is {
                    self.as_form(before, after, of, was);
                }
                self.as_form(before, after, of, is)
            }
        };
        if !leaf {
            match (before, after) {
                (None, _) => self.found.added.insert(&self.path),
                (_, None) => self.found.removed.insert(&self.path),
                _ => {}
            }
        }
    }

    /// Compares as one form; says whether it was a leaf.
    fn as_form(&mut self, before: Option<&Value>, after: Option<&Value>, of: Type<'_>, form: Form) -> bool {
        match of.atom().chosen(form) {
            None => false,
            Some(Chosen::Scalar(_)) => self.leaf(before, after),
            Some(Chosen::List(list)) => {
                let (was, is) = (items(before), items(after));
                if *list.kind == ListKind::Atomic || (was.is_empty() && is.is_empty()) {
                    return self.leaf(before, after);
                }
                self.list(was, is, list);
                false
            }
            Some(Chosen::Map(fields)) => {
                let (was, is) = (before.and_then(Value::as_object), after.and_then(Value::as_object));
                if fields.atomic || (was.is_none_or(Map::is_empty) && is.is_none_or(Map::is_empty)) {
                    return self.leaf(before, after);
                }
                self.map(was, is, fields);
                false
            }
        }
    }

    fn leaf(&mut self, before: Option<&Value>, after: Option<&Value>) -> bool {
        match (before, after) {
            (None, _) => self.found.added.insert(&self.path),
            (_, None) => self.found.removed.insert(&self.path),
            (Some(before), Some(after)) if !same(before, after) => self.found.modified.insert(&self.path),
            _ => {}
        }
        true
    }

    fn map(&mut self, was: Option<&Map<String, Value>>, is: Option<&Map<String, Value>>, fields: Fields<'_>) {
        let old = was
            .into_iter()
            .flatten()
            .map(|(name, value)| (name, Some(value), is.and_then(|is| is.get(name))));
        let new = is.into_iter().flatten().filter(|(name, _)| was.is_none_or(|was| !was.contains_key(*name)));
        let new = new.map(|(name, value)| (name, None, Some(value)));
        for (name, before, after) in old.chain(new) {
            let Some(of) = fields.field(name) else { continue };
            self.path.push(Element::field(name));
            self.both(before, after, of);
            self.path.pop();
        }
    }

    fn list(&mut self, was: &[Value], is: &[Value], list: List<'_>) {
        let mut elements: BTreeMap<Element, (Vec<&Value>, Vec<&Value>)> = BTreeMap::new();
        for item in was {
            let Ok(element) = list.element(item) else { continue };
            elements.entry(element).or_default().0.push(item);
        }
        for item in is {
            let Ok(element) = list.element(item) else { continue };
            elements.entry(element).or_default().1.push(item);
        }
        for (element, (was, is)) in elements {
            self.path.push(element);
            self.item(&was, &is, list);
            self.path.pop();
        }
    }

    /// Compares what one key had with what it has. Several items of one key are one leaf.
    fn item(&mut self, was: &[&Value], is: &[&Value], list: List<'_>) {
        match (was, is) {
            ([] | [_], [] | [_]) => self.both(was.first().copied(), is.first().copied(), list.items),
            ([_, _, ..], [_, _, ..]) => {
                let equal = was.len() == is.len() && was.iter().zip(is).all(|(was, is)| same(was, is));
                if !equal {
                    self.found.modified.insert(&self.path);
                }
            }
            ([_, _, ..], _) => {
                self.both(None, is.first().copied(), list.items);
                self.found.removed.insert(&self.path);
            }
            (_, [_, _, ..]) => {
                self.both(was.first().copied(), None, list.items);
                self.found.added.insert(&self.path);
            }
        }
    }
}

fn items(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
