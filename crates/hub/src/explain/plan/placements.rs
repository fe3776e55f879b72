//! Where templates would go, compared with where they are. Pure.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::explain::Remark;
use atoll_api::explain::plan::{Change, CopyChange, FieldChange, PlacementChange};
use atoll_api::names::code::Code;
use atoll_engine::names::ClusterId;
use atoll_engine::placement::{Copy, Outcome, Placed};
use serde_json::Value;

use super::fields::Fields;
use crate::policies::Moved;

/// So many fields of a copy are told.
const FIELDS: usize = 16;
/// A value is told up to this length.
const LONGEST: usize = 120;

/// What changes of a template; nothing if only what users do not see does.
pub(super) fn change(moved: &Moved) -> Option<PlacementChange> {
    let (was, is) = (placed(&moved.before), placed(&moved.after));
    let mut fields = Fields::default();
    let policy = |placed: Option<&Placed>| {
        let policy = placed.and_then(|placed| placed.decision.as_ref()?.policy.clone());
        policy.map_or(String::new(), |id| match id.namespace {
            Some(namespace) => format!("{namespace}/{}", id.name),
            None => id.name,
        })
    };
    fields.note("policy", &policy(was), &policy(is), String::clone);
    let none = BTreeMap::new();
    let copies = |placed: Option<&'_ Placed>| placed.map(|placed| placed.copies.clone());
    let (was_copies, is_copies) = (copies(was).unwrap_or(none.clone()), copies(is).unwrap_or(none));
    let stays = match &moved.after {
        Outcome::Undecided => true,
        Outcome::Nowhere { preserve } => *preserve,
        Outcome::Placed(_) => false,
    };
    let ids: BTreeSet<&ClusterId> = was_copies.keys().chain(is_copies.keys()).filter(|_| !stays).collect();
    let clusters = ids.into_iter().filter_map(|id| copy(id, was_copies.get(id), is_copies.get(id))).collect();
    let remarks = remarks(&moved.after).into_iter();
    let known = self::remarks(&moved.before);
    let change = PlacementChange {
        object: format!(
            "{} {}{}{}",
            moved.template.kind.kind,
            moved.template.namespace,
            if moved.template.namespace.is_empty() { "" } else { "/" },
            moved.template.name
        ),
        fields: fields.0,
        clusters,
        remarks: remarks.filter(|remark| !known.contains(remark)).collect(),
    };
    let quiet = change.fields.is_empty() && change.clusters.is_empty() && change.remarks.is_empty();
    (!quiet).then_some(change)
}

/// The template as it is placed, if it is.
pub(super) fn placed(outcome: &Outcome) -> Option<&Placed> {
    match outcome {
        Outcome::Placed(placed) => Some(placed),
        Outcome::Undecided | Outcome::Nowhere { .. } => None,
    }
}

fn copy(id: &ClusterId, was: Option<&Copy>, is: Option<&Copy>) -> Option<CopyChange> {
    let mut fields = Vec::new();
    let change = match (was, is) {
        (None, None) => return None,
        (None, Some(is)) => {
            if let Some(replicas) =
                is.object.as_ref().ok().and_then(|object| object.pointer("/spec/replicas"))
            {
                fields.push(FieldChange {
                    field: "spec.replicas".to_owned(),
                    before: String::new(),
                    after: shown(replicas),
                });
            }
            Change::Add
        }
        (Some(_), None) => Change::Remove,
        (Some(was), Some(is)) => {
            if let (Ok(was), Ok(is)) = (&was.object, &is.object) {
                differing("", was, is, &mut fields);
            }
            Change::Change
        }
    };
    let withheld = |copy: Option<&Copy>| {
        copy.and_then(|copy| copy.object.as_ref().err()).map_or(String::new(), ToString::to_string)
    };
    let suspended = |copy: Option<&Copy>| copy.is_some_and(|copy| copy.suspended).to_string();
    let mut more = Fields::default();
    if change != Change::Remove {
        more.note("withheld", &withheld(was), &withheld(is), String::clone);
        more.note("suspended", &suspended(was), &suspended(is), String::clone);
    }
    fields.extend(more.0);
    let changed = change != Change::Change || !fields.is_empty();
    changed.then(|| CopyChange { cluster: id.to_string(), change, fields })
}

/// Fields that differ, by their paths.
fn differing(path: &str, was: &Value, is: &Value, into: &mut Vec<FieldChange>) {
    if was == is || into.len() >= FIELDS {
        return;
    }
    match (was, is) {
        (Value::Object(was), Value::Object(is)) => {
            let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                let none = &Value::Null;
                differing(&path, was.get(key).unwrap_or(none), is.get(key).unwrap_or(none), into);
            }
        }
        (Value::Array(was), Value::Array(is)) if was.len() == is.len() => {
            for (number, (was, is)) in was.iter().zip(is).enumerate() {
                differing(&format!("{path}[{number}]"), was, is, into);
            }
        }
        (was, is) => {
            into.push(FieldChange { field: path.to_owned(), before: shown(was), after: shown(is) });
        }
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    };
    let cut = text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default();
    if cut.len() < text.len() { format!("{cut}…") } else { text }
}

/// Why it does not go where it should.
fn remarks(outcome: &Outcome) -> Vec<Remark> {
    let Some(placed) = placed(outcome) else {
        return match outcome {
            Outcome::Undecided => vec![Remark::new(
                Code::CopyPending,
                "Whether the author of its policy has the rights is not known yet; the hub asks when the policy is applied.",
            )],
            Outcome::Nowhere { .. } | Outcome::Placed(_) => Vec::new(),
        };
    };
    let nowhere = placed.nowhere.iter().map(|why| Remark::new(Code::Unschedulable, why.text()));
    let unknown = placed.unknown.iter().map(|name| {
        Remark::new(Code::NotAMember, format!("the policy names {name:.100}, which is not a member"))
    });
    nowhere.chain(unknown).collect()
}
