//! Does a value have the shape of its type? Only what ownership needs: validation is the schema's.

use super::element::Element;
use super::shape::{Chosen, List, Scalar, Type};
use crate::go;
use crate::invalid::{TOLD_MOST, told};
use crate::schema::ListKind;
use serde_json::Value;
use std::collections::BTreeSet;

/// May a list hold two items of the same key? An old object may, an applied one may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Duplicates {
    Allowed,
    Refused,
}

/// What does not fit, in an API server's words.
pub(super) fn conform(value: &Value, of: Type<'_>, duplicates: Duplicates) -> Result<(), String> {
    let mut problems = Vec::new();
    visit(value, of, duplicates, &mut String::new(), &mut problems);
    match problems.as_slice() {
        [] => Ok(()),
        [one] => Err(one.clone()),
        many => Err(format!("errors:\n  {}", many.join("\n  "))),
    }
}

fn visit(value: &Value, of: Type<'_>, duplicates: Duplicates, path: &mut String, problems: &mut Vec<String>) {
    let atom = of.atom();
    if value.is_null() || problems.len() >= TOLD_MOST {
        return;
    }
    match atom.chosen(atom.form(value)) {
        Some(Chosen::Scalar(scalar)) => {
            if let Some(problem) = mismatch(value, scalar) {
                report(path, &problem, problems);
            }
        }
        Some(Chosen::List(list)) => match value {
            Value::Array(items) => visit_items(items, list, duplicates, path, problems),
            other => report(path, &format!("expected list, got &{{{}}}", go::plain(other)), problems),
        },
        Some(Chosen::Map(fields)) => match value {
            Value::Object(values) => {
                for (name, value) in values {
                    let Some(of) = fields.field(name) else {
                        report(&format!("{path}.{name}"), "field not declared in schema", problems);
                        return;
                    };
                    within(path, &Element::field(name), |path| visit(value, of, duplicates, path, problems));
                }
            }
            other => report(path, &format!("expected map, got &{{{}}}", go::plain(other)), problems),
        },
        None => {}
    }
}

fn visit_items(
    items: &[Value],
    list: List<'_>,
    duplicates: Duplicates,
    path: &mut String,
    problems: &mut Vec<String>,
) {
    let mut seen = BTreeSet::new();
    for (at, item) in items.iter().enumerate() {
        let element = if *list.kind == ListKind::Atomic {
            Element::Index(i64::try_from(at).unwrap_or(i64::MAX))
        } else {
            match list.element(item) {
                Ok(element) => element,
                Err(problem) => return report(path, &format!("element {at}: {problem}"), problems),
            }
        };
        if problems.len() >= TOLD_MOST {
            return;
        }
        if !seen.insert(element.clone()) && duplicates == Duplicates::Refused {
            report(path, &format!("duplicate entries for key {element}"), problems);
        }
        within(path, &element, |path| visit(item, list.items, duplicates, path, problems));
    }
}

fn mismatch(value: &Value, scalar: Scalar) -> Option<String> {
    match scalar {
        Scalar::Numeric if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {}", go::type_name(value)))
        }
        Scalar::Text if !value.is_string() => {
            Some(format!("expected string, got &value.valueUnstructured{{Value:{}}}", go::literal(value)))
        }
        Scalar::Boolean if !value.is_boolean() => {
            Some(format!("expected boolean, got &{{{}}}", go::plain(value)))
        }
        Scalar::Any if value.is_array() || value.is_object() => {
            Some(format!("expected any scalar, got &{{{}}}", go::plain(value)))
        }
        _ => None,
    }
}

fn report(path: &str, problem: &str, problems: &mut Vec<String>) {
    let (path, problem) = (told(path), told(problem));
    problems.push(if path.is_empty() { problem.into_owned() } else { format!("{path}: {problem}") });
}

fn within(path: &mut String, element: &Element, inner: impl FnOnce(&mut String)) {
    let length = path.len();
    path.push_str(&element.to_string());
    inner(path);
    path.truncate(length);
}
