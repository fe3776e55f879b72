//! Objects of any kind, as a person at a terminal handles them: what `get`, `describe`, `apply`, `delete`, `logs` and `exec` share.
//!
//! ```text
//!   a word ("deploy") or a kind ─▶ catalog ─▶ paths ─▶ rest ─▶ table ─▶ stdout
//!   files ─▶ manifests ─▶ objects ───────────────┘  └─▶ describe ─▶ stdout
//! ```

pub(crate) mod catalog;
pub(crate) mod describe;
pub(crate) mod manifests;
pub(crate) mod pods;
pub(crate) mod promotion;
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

/// The conditions of an object, a line each; none if it has none.
pub(crate) fn conditions_table(object: &Value) -> Option<String> {
    let list = object.pointer("/status/conditions").and_then(Value::as_array);
    let rows = list.into_iter().flatten().map(|one| {
        let cell = |key: &str| one.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        vec![cell("type"), cell("status"), cell("reason"), cell("message")]
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| crate::output::table(&["TYPE", "STATUS", "REASON", "MESSAGE"], &rows))
}
