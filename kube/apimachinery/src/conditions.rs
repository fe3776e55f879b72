//! Conditions in a status: which there are, and since when each is so. The rule is Kubernetes': the time is that of the last
//! change of the *status*; reason and message may change without it.

use serde_json::Value;

/// Since when a condition has this status: since `before`, its status and its time, while that is the same; or else since now.
pub fn since<S: PartialEq + ?Sized, T>(before: Option<(&S, T)>, status: &S, now: T) -> T {
    before.filter(|(old, _)| *old == status).map_or(now, |(_, since)| since)
}

/// The condition of a type.
pub fn find<'a>(conditions: &'a Value, of: &str) -> Option<&'a Value> {
    conditions.as_array().into_iter().flatten().find(|one| one["type"] == of)
}

/// The condition with its time, given those that were there before.
pub fn dated(mut condition: Value, before: &Value, now: &str) -> Value {
    let old = find(before, condition["type"].as_str().unwrap_or_default());
    let old = old.map(|old| (&old["status"], old["lastTransitionTime"].clone()));
    let since = since(old, &condition["status"], now.into());
    condition["lastTransitionTime"] = since;
    condition
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_condition_keeps_its_time_while_its_status_stays() {
        let ready = |status: &str, reason: &str| json!({"type": "Ready", "status": status, "reason": reason});
        let first = dated(ready("True", "A"), &Value::Null, "t1");
        assert_eq!(first["lastTransitionTime"], "t1");
        let before = json!([{"type": "Other", "status": "False", "lastTransitionTime": "t0"}, first]);
        let same = dated(ready("True", "B"), &before, "t2");
        assert_eq!((&same["lastTransitionTime"], &same["reason"]), (&json!("t1"), &json!("B")));
        assert_eq!(dated(ready("False", "B"), &before, "t2")["lastTransitionTime"], "t2");
    }
}
