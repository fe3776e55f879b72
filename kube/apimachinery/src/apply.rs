//! Who owns which field: server-side apply, and the tracking of ordinary writes.
//!
//! ```text
//!   apply   live + what a manager wants ──▶ merged object, or conflicts with other managers
//!   track   before + after a write      ──▶ the same object with its managedFields brought up to date
//! ```
//!
//! Both keep `metadata.managedFields` as a kube-apiserver does, field for field. The rules are in `ownership`.

mod cap;
mod compare;
mod conform;
mod element;
mod field_set;

mod last_applied;
mod managed;
mod merge;
mod ownership;
mod reconcile;
mod remove;
mod set;
mod shape;

use crate::builtin;
use crate::schema::Schema;
use conform::{Duplicates, conform};
use element::{Element, same};
use managed::{Managed, Owner};
use ownership::{MergeError, Rules, Taken};
use serde_json::{Value, json};
use set::Set;
use shape::Type;
use std::fmt::Write;

/// Who writes, and how.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Manager {
    /// `fieldManager` of the request, or the user agent up to its first slash.
    pub name: String,
    /// How it writes.
    pub operation: Operation,
    /// The version that the request speaks, `apps/v1`.
    pub api_version: String,
    /// The subresource that it writes to: `status`, `scale`; none for the object itself.
    pub subresource: Option<String>,
    /// Fields that a write by this way never changes, so that no manager comes to own them: `status` on the object itself,
    /// `spec` on its status. Dots part the names.
    pub resets: Vec<String>,
}

/// How a manager writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Anything else: create, update, the other patches.
    Update,
}

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The other manager as a person reads it: `"kubectl" using v1`.
    pub manager: String,
    /// The field: `.spec.containers[name="a"].image`.
    pub field: String,
}

/// Why an apply did not happen. The text is what an API server prints.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Other managers own fields with other values: 409 `Conflict`, one cause per field.
    #[error("{}", conflicts_text(.0))]
    Conflicts(Vec<Conflict>),
    /// The request makes no sense: 400 `BadRequest`.
    #[error("{0}")]
    Malformed(String),
    /// The applied object does not fit the schema: 500 `InternalError`, as an API server has it.
    #[error("{0}")]
    Untyped(String),
}

impl Conflict {
    /// The message of the conflict's cause in a Status, whose reason is `FieldManagerConflict`.
    #[must_use]
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

fn conflicts_text(conflicts: &[Conflict]) -> String {
    if let [one] = conflicts {
        return format!("Apply failed with 1 conflict: {}: {}", one.message(), one.field);
    }
    let mut text = format!("Apply failed with {} conflicts: ", conflicts.len());
    let mut manager = None;
    for (at, conflict) in conflicts.iter().enumerate() {
        if manager != Some(&conflict.manager) {
            manager = Some(&conflict.manager);
            let _ = write!(text, "{}conflicts with {}:", if at == 0 { "" } else { "\n" }, conflict.manager);
        }
        let _ = write!(text, "\n- {}", conflict.field);
    }
    text
}

/// Merges what a manager wants into the live object.
///
/// The result has no defaults filled in and is not validated yet; a server that changes it calls [`settle`] afterwards.
///
/// # Errors
/// When other managers own fields with other values and `force` is not set, or the applied object is not of the schema.
pub fn apply(
    live: Option<&Value>,
    applied: &Value,
    schema: &Schema,
    by: &Manager,
    force: bool,
    now: &str,
) -> Result<Value, ApplyError> {
    if applied.pointer("/metadata/managedFields").is_some_and(|fields| !fields.is_null()) {
        return Err(ApplyError::Malformed("metadata.managedFields must be nil".to_owned()));
    }
    if applied.get("apiVersion").and_then(Value::as_str) != Some(&by.api_version) {
        return Err(ApplyError::Malformed(format!("invalid object type: {}", type_of(applied))));
    }
    let rules = rules(schema, by);
    let empty = empty(applied, schema);
    let mut object = live.cloned().unwrap_or_else(|| empty.clone());
    builtin::normalize(&mut object, schema);
    let mut managed = managed::decode(&object)
        .map_err(|error| ApplyError::Untyped(format!("failed to decode managed fields: {error}")))?;
    managed::remove(&mut object);
    if managed.is_empty() {
        // No manager has been tracked yet: what is there belongs to the manager "before-first-apply".
        let before =
            Manager { name: "before-first-apply".to_owned(), operation: Operation::Update, ..by.clone() };
        rules.written(&empty, &object, &mut managed, &before, now);
    }
    conform(applied, rules.of, Duplicates::Refused).map_err(|problem| {
        ApplyError::Untyped(format!(
            "failed to create typed patch object ({}): {problem}",
            described(applied)
        ))
    })?;
    conform(&object, rules.of, Duplicates::Allowed).map_err(|problem| {
        ApplyError::Untyped(format!("failed to create typed live object ({}): {problem}", described(&object)))
    })?;
    let applier = Owner::of(by);
    let attempt = |managed: &mut Managed, force| {
        rules.applied(&object, applied, managed, &applier, &by.api_version, force)
    };
    let before = managed.clone();
    let mut outcome = attempt(&mut managed, force);
    if let (Err(MergeError::Taken(taken)), last_applied::KUBECTL) = (&outcome, by.name.as_str()) {
        let allowed = last_applied::may_take(&object, &rules, &by.api_version).unwrap_or_default();
        let left = without(taken, &allowed);
        if left.is_empty() {
            managed = before;
            outcome = attempt(&mut managed, true);
        } else {
            outcome = Err(MergeError::Taken(left));
        }
    }
    let changed = outcome.map_err(|refusal| match refusal {
        MergeError::Taken(taken) => ApplyError::Conflicts(conflicts(&taken)),
        MergeError::Unmergeable(problem) => ApplyError::Untyped(problem),
    })?;
    let mut result = match changed {
        Some(changed) => {
            if let Some(owned) = managed.get_mut(&applier) {
                owned.time = Some(now.to_owned());
            }
            changed
        }
        None => object,
    };
    if by.name == last_applied::KUBECTL {
        last_applied::update(&mut result, applied);
    }
    builtin::stored(&mut result, schema);
    managed::encode(&mut result, &managed);
    if let Some(live) = live {
        settle(live, &mut result);
    }
    Ok(result)
}

/// Brings `metadata.managedFields` of `new` up to date after an ordinary write.
///
/// `new` is the object as it will be stored, defaults included, with the `managedFields` that the request had, if any.
pub fn track(old: Option<&Value>, new: &mut Value, schema: &Schema, by: &Manager, now: &str) {
    let rules = rules(schema, by);
    let mut before = old.cloned().unwrap_or_else(|| empty(new, schema));
    builtin::normalize(&mut before, schema);
    let of_old = || managed::decode(&before).unwrap_or_default();
    let mut managed = if by.subresource.is_some() {
        of_old()
    } else if managed::resets(new) {
        Managed::new()
    } else {
        // A client that does not know managedFields must not delete them by leaving them out.
        managed::decode(new).ok().filter(|managed| !managed.is_empty()).unwrap_or_else(of_old)
    };
    managed::remove(new);
    managed::remove(&mut before);
    builtin::normalize(new, schema);
    let untyped =
        [&before, &*new].iter().any(|object| conform(object, rules.of, Duplicates::Allowed).is_err());
    if untyped {
        // Rather nothing than something wrong.
        return;
    }
    // An object that is not tracked stays so until the first apply.
    if !managed.is_empty() || old.is_none() {
        rules.written(&before, new, &mut managed, by, now);
        cap::cap(&mut managed);
    }
    builtin::stored(new, schema);
    managed::encode(new, &managed);
    if let Some(old) = old {
        settle(old, new);
    }
}

/// Takes the old times back where nothing but times changed, so that a write that changes nothing is none.
///
/// [`apply`] and [`track`] do it; a server that defaults or changes the object after them calls it again.
pub fn settle(old: &Value, new: &mut Value) {
    let entries =
        |object: &Value| object.pointer("/metadata/managedFields").and_then(Value::as_array).cloned();
    let (Some(was), Some(is)) = (entries(old), entries(new)) else { return };
    let untimed = |entry: &Value| {
        let mut entry = entry.clone();
        entry.as_object_mut().map(|entry| entry.remove("time"));
        entry
    };
    if was.len() != is.len() || !was.iter().zip(&is).all(|(was, is)| untimed(was) == untimed(is)) {
        return;
    }
    let mut kept = new.clone();
    if let Some(metadata) = kept.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("managedFields".to_owned(), Value::Array(was));
    }
    if same(&kept, old) {
        *new = kept;
    }
}

fn rules<'s>(schema: &'s Schema, by: &Manager) -> Rules<'s> {
    Rules { of: Type::of_object(schema), ignored: Set::of(by.resets.iter().map(String::as_str)) }
}

/// An object of the same kind with nothing in it.
fn empty(like: &Value, schema: &Schema) -> Value {
    let field = |name: &str| like.get(name).cloned().unwrap_or_default();
    let mut empty = json!({ "apiVersion": field("apiVersion"), "kind": field("kind") });
    builtin::normalize(&mut empty, schema);
    empty
}

/// `namespace/name; group/version, Kind=Kind`
fn described(object: &Value) -> String {
    let text = |name: &str| object.get("metadata").and_then(|of| of.get(name)).and_then(Value::as_str);
    let (namespace, name) = (text("namespace").unwrap_or_default(), text("name").unwrap_or_default());
    format!("{namespace}/{name}; {}", type_of(object))
}

/// `group/version, Kind=Kind`
fn type_of(object: &Value) -> String {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let core = if text("apiVersion").contains('/') { "" } else { "/" };
    format!("{core}{}, Kind={}", text("apiVersion"), text("kind"))
}

fn conflicts(taken: &Taken) -> Vec<Conflict> {
    let mut conflicts = Vec::new();
    for (owner, set) in taken {
        set.each(&mut |path: &[Element]| {
            let field = path.iter().map(ToString::to_string).collect();
            conflicts.push(Conflict { manager: owner.described(), field });
        });
    }
    conflicts
}

fn without(taken: &Taken, allowed: &Set) -> Taken {
    let left = taken.iter().map(|(owner, set)| {
        let mut left = Set::default();
        set.each(&mut |path: &[Element]| {
            if !allowed.contains(path) {
                left.insert(path);
            }
        });
        (owner.clone(), left)
    });
    left.filter(|(_, left)| !left.is_empty()).collect()
}
