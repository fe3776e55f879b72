//! The annotation of client-side `kubectl apply`, when kubectl goes over to the server's.

use super::conform::{Duplicates, conform};
use super::field_set::field_set;
use super::ownership::Rules;
use super::set::Set;
use serde_json::Value;

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The only manager for whom the annotation counts.
pub(super) const KUBECTL: &str = "kubectl";
/// Annotations may not be larger than this together.
const MOST_BYTES: usize = 256 << 10;

/// The fields that client-side apply set and that are still as it set them: kubectl may take them without a conflict.
pub(super) fn may_take(live: &Value, rules: &Rules<'_>, api_version: &str) -> Option<Set> {
    let last = annotations(live)?.get(ANNOTATION)?.as_str()?;
    let last: Value = serde_json::from_str(last).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(api_version) {
        return None;
    }
    conform(&last, rules.of, Duplicates::Refused).ok()?;
    let whole = Rules { of: rules.of, ignored: Set::default() };
    let changed = whole.changed(&last, live);
    let set = field_set(&last, rules.of);
    Some(set.difference(&changed.modified).difference(&changed.added).difference(&changed.removed))
}

/// Keeps the annotation, where there is one, equal to what was applied.
pub(super) fn update(object: &mut Value, applied: &Value) {
    if annotations(object)
        .and_then(|all| all.get(ANNOTATION))
        .and_then(Value::as_str)
        .is_none_or(str::is_empty)
    {
        return;
    }
    let mut applied = applied.clone();
    if let Some(annotations) = applied.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
        annotations.remove(ANNOTATION);
        if annotations.is_empty()
            && let Some(metadata) = applied.get_mut("metadata").and_then(Value::as_object_mut)
        {
            metadata.remove("annotations");
        }
    }
    let text = format!("{}\n", crate::go::json(&applied));
    let Some(annotations) = object.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) else {
        return;
    };
    let size = |(name, value): (&String, &Value)| name.len() + value.as_str().map_or(0, str::len);
    let others: usize = annotations.iter().filter(|(name, _)| *name != ANNOTATION).map(size).sum();
    if others + ANNOTATION.len() + text.len() > MOST_BYTES {
        annotations.remove(ANNOTATION);
    } else {
        annotations.insert(ANNOTATION.to_owned(), Value::String(text));
    }
}

fn annotations(object: &Value) -> Option<&serde_json::Map<String, Value>> {
    object.pointer("/metadata/annotations")?.as_object()
}
