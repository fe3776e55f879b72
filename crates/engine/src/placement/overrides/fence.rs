//! What no override changes: which object it is, whose it is, and what only a cluster writes.

use atoll_api::names::is_mark;
use serde_json::{Map, Value};

use crate::placement::prune::METADATA;

/// Why a copy may not be changed like this; nothing if it may.
pub(super) fn check(before: &Value, after: &Value) -> Result<(), String> {
    let (Some(object), Some(meta)) = (after.as_object(), after["metadata"].as_object()) else {
        return Err("what is left is not an object".to_owned());
    };
    for at in ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace"] {
        if before.pointer(at) != after.pointer(at) {
            return Err(format!("it changes {at}: an override can't make another object of it"));
        }
    }
    if object.contains_key("status") {
        return Err("it sets /status, which only the cluster writes".to_owned());
    }
    if let Some(field) = meta.keys().find(|field| !METADATA.contains(&field.as_str())) {
        return Err(format!(
            "it sets /metadata/{field}: of the metadata only labels and annotations can differ"
        ));
    }
    for field in ["labels", "annotations"] {
        let marks = |object: &Value| -> Map<String, Value> {
            let all = object["metadata"][field].as_object().cloned().unwrap_or_default();
            all.into_iter().filter(|(key, _)| is_mark(key)).collect()
        };
        let strings = |map: &Map<String, Value>| map.values().all(Value::is_string);
        if meta.get(field).is_some_and(|map| !map.as_object().is_some_and(strings)) {
            return Err(format!("it makes /metadata/{field} something else than a map of strings"));
        }
        let (before, after) = (marks(before), marks(after));
        if let Some(key) = before.keys().chain(after.keys()).find(|key| before.get(*key) != after.get(*key)) {
            return Err(format!("it changes {key} in /metadata/{field}, by which the hub knows its own"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_override_cannot_change_identity_ownership_or_status() {
        let copy = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": "c", "namespace": "shop", "labels": {"a": "1"}}, "data": {"k": "v"}});
        let with = |at: &str, value: Value| {
            let mut copy = copy.clone();
            let (parent, field) = at.rsplit_once('/').unwrap();
            copy.pointer_mut(parent).unwrap()[field] = value;
            copy
        };
        for (at, value) in [
            ("/kind", json!("Secret")),
            ("/apiVersion", json!("v2")),
            ("/metadata/name", json!("other")),
            ("/metadata/namespace", json!("kube-system")),
            ("/metadata/ownerReferences", json!([])),
            ("/metadata/finalizers", json!(["a/b"])),
            ("/metadata/labels", json!("text")),
            ("/metadata/labels/a", json!(5)),
            ("/metadata/labels", json!({"atoll.dev/hub": "me"})),
            ("/metadata/annotations", json!({"atoll.dev/adopted": "true"})),
            ("/metadata/labels", json!({"atoll.dev/propagated-by": "me"})),
            ("/metadata", json!(7)),
            ("/status", json!({})),
        ] {
            assert!(check(&copy, &with(at, value.clone())).is_err(), "{at} {value}");
        }
        for value in [json!(5), Value::Null] {
            assert!(check(&copy, &value).is_err());
        }
        for (at, value) in [
            ("/data", json!({"k": "w"})),
            ("/metadata/labels", json!({"b": "2"})),
            ("/metadata/annotations", json!({"atoll.dev/locality": "local-first"})),
        ] {
            assert_eq!(check(&copy, &with(at, value)), Ok(()), "{at}");
        }
    }
}
