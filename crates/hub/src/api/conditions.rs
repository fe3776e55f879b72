//! Conditions in the hub's API: how they are written, and since when they are so.

use atoll_apimachinery::conditions;
use serde_json::{Value, json};

/// A longer message is cut: API servers take no more than some kilobytes.
const LONGEST: usize = 4000;

/// A condition without its time.
pub(crate) fn condition(of: &str, is: bool, reason: &str, message: &str) -> Value {
    let message: String = message.chars().take(LONGEST).collect();
    json!({ "type": of, "status": if is { "True" } else { "False" }, "reason": reason, "message": message })
}

/// The condition with the time since when it is so: that of `before`, a status, while it stays.
pub(crate) fn dated(condition: Value, before: &Value, now: &str) -> Value {
    conditions::dated(condition, &before["conditions"], now)
}
