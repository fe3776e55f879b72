//! Conditions in the hub's API: how they are written, and since when they are so.

use serde_json::{Value, json};

/// A longer message is cut: API servers take no more than some kilobytes.
const LONGEST: usize = 4000;

/// A condition without its time.
pub(crate) fn condition(of: &str, is: bool, reason: &str, message: &str) -> Value {
    let message: String = message.chars().take(LONGEST).collect();
    json!({ "type": of, "status": if is { "True" } else { "False" }, "reason": reason, "message": message })
}

/// The condition with the time since when it is so: that of `before`, a status, while it stays.
pub(crate) fn dated(mut condition: Value, before: &Value, now: &str) -> Value {
    let old =
        before["conditions"].as_array().into_iter().flatten().find(|old| old["type"] == condition["type"]);
    let since =
        old.filter(|old| old["status"] == condition["status"]).map(|old| old["lastTransitionTime"].clone());
    condition["lastTransitionTime"] = since.unwrap_or_else(|| now.into());
    condition
}
