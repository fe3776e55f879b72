//! Objects of any kind, as a person at a terminal handles them: what `get`, `apply` and `delete` share.
//!
//! ```text
//!   a word ("deploy") or a kind ─▶ catalog ─▶ paths ─▶ rest ─▶ table ─▶ stdout
//!   files ─▶ manifests ─▶ objects ───────────────┘
//! ```

pub(crate) mod catalog;
pub(crate) mod manifests;
pub(crate) mod rest;
pub(crate) mod table;
pub(crate) mod targets;

use serde_json::Value;

/// A text in an object, empty if there is none.
pub(crate) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Takes out what only the API server needs.
pub(crate) fn hide_managers(object: &mut Value) {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
}
