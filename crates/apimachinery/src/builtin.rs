//! The schemas of Kubernetes' own kinds, from facts read off a real API server.

use crate::schema::Schema;
use serde_json::Value;

/// The schema of a built-in kind; the core group is `""`.
#[must_use]
pub fn schema(group: &str, version: &str, kind: &str) -> Option<&'static Schema> {
    let _ = (group, version, kind);
    None
}

/// Gives an object of a built-in kind the shape that decoding and encoding it has on a real API server: structures that
/// are never left out are there, and what is empty is gone.
pub fn normalize(object: &mut Value, schema: &Schema) {
    let _ = (object, schema);
}

/// The fields that a write to a kind's `subresource` (none: to the object itself) does not touch; for
/// [`crate::apply::Manager::resets`].
#[must_use]
pub fn resets(group: &str, kind: &str, subresource: Option<&str>) -> Vec<String> {
    let _ = (group, kind, subresource);
    Vec::new()
}

/// The schema of every object's metadata.
pub(crate) fn object_meta() -> &'static Schema {
    static META: std::sync::OnceLock<Schema> = std::sync::OnceLock::new();
    META.get_or_init(Schema::default)
}
