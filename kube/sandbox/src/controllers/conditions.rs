//! Conditions in a status: what is so, since when, and why.

use atoll_apimachinery::conditions::since;
use jiff::Timestamp;
use serde_json::{Value, json};

/// A condition to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Condition<'a> {
    pub(crate) kind: &'a str,
    pub(crate) status: &'a str,
    pub(crate) reason: &'a str,
    pub(crate) message: &'a str,
}

/// The time as objects carry it: in whole seconds.
pub(crate) fn stamp(at: Timestamp) -> Value {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string().into()
}

/// The condition of this kind.
pub(crate) fn find<'a>(status: &'a Value, kind: &str) -> Option<&'a Value> {
    atoll_apimachinery::conditions::find(&status["conditions"], kind)
}

/// A condition's reason, or nothing.
pub(crate) fn reason<'a>(status: &'a Value, kind: &str) -> &'a str {
    find(status, kind).and_then(|one| one["reason"].as_str()).unwrap_or_default()
}

/// Removes a condition.
pub(crate) fn remove(conditions: &mut Vec<Value>, kind: &str) {
    conditions.retain(|one| one["type"] != kind);
}

/// Sets a condition of a workload, which says when it was last updated. One with the same status and reason stays.
pub(crate) fn set(conditions: &mut Vec<Value>, wanted: Condition<'_>, now: Timestamp) {
    let same = |one: &Value| {
        one["type"] == wanted.kind && one["status"] == wanted.status && one["reason"] == wanted.reason
    };
    if !conditions.iter().any(same) {
        renew(conditions, wanted, now);
    }
}

/// Sets a condition anew, even where only the time differs.
pub(crate) fn renew(conditions: &mut Vec<Value>, wanted: Condition<'_>, now: Timestamp) {
    let old = conditions.iter().find(|one| one["type"] == wanted.kind);
    let old = old.map(|old| (&old["status"], old["lastTransitionTime"].clone()));
    let since = since(old, &Value::from(wanted.status), stamp(now));
    let new = json!({
        "type": wanted.kind, "status": wanted.status, "reason": wanted.reason, "message": wanted.message,
        "lastUpdateTime": stamp(now), "lastTransitionTime": since,
    });
    remove(conditions, wanted.kind);
    conditions.push(new);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_the_time_since_when_it_is_so() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let wanted = |status, reason| Condition { kind: "Available", status, reason, message: "" };
        let mut all = Vec::new();
        set(&mut all, wanted("True", "A"), at(1));
        set(&mut all, wanted("True", "A"), at(2));
        assert_eq!(all[0]["lastUpdateTime"], stamp(at(1)));
        set(&mut all, wanted("True", "B"), at(3));
        assert_eq!(
            (&all[0]["lastUpdateTime"], &all[0]["lastTransitionTime"]),
            (&stamp(at(3)), &stamp(at(1)))
        );
        set(&mut all, wanted("False", "B"), at(4));
        assert_eq!((all.len(), &all[0]["lastTransitionTime"]), (1, &stamp(at(4))));
    }
}
