//! Who owns which field: server-side apply, and the tracking of ordinary writes.
//!
//! ```text
//!   apply   live + what a manager wants ──▶ merged object, or conflicts with other managers
//!   track   before + after a write      ──▶ the same object with its managedFields brought up to date
//! ```
//!
//! Both keep `metadata.managedFields` as a kube-apiserver does, field for field.

use crate::schema::Schema;
use serde_json::Value;

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
    /// Fields that a write by this way never changes, so that nobody comes to own them: `status` on the object itself,
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
    /// The applied object does not fit the schema: 500 `InternalError` as an API server has it.
    #[error("{0}")]
    Untyped(String),
}

fn conflicts_text(conflicts: &[Conflict]) -> String {
    let _ = conflicts;
    String::new()
}

/// Merges what a manager wants into the live object.
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
    let _ = (live, schema, by, force, now);
    Ok(applied.clone())
}

/// Brings `metadata.managedFields` of `new` up to date after an ordinary write.
pub fn track(old: Option<&Value>, new: &mut Value, schema: &Schema, by: &Manager, now: &str) {
    let _ = (old, new, schema, by, now);
}

/// Takes the old times back where nothing but times changed, so that a write that changes nothing is none.
///
/// [`apply`] and [`track`] do it; a server that defaults or changes the object after them calls it again.
pub fn settle(old: &Value, new: &mut Value) {
    let _ = (old, new);
}
