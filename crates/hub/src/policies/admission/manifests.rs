//! What the hub asks of its API server's admission: only the hub writes bindings, and policies say who wrote them.

use atoll_api::names::admission::{AUTHORS, BINDINGS};
use atoll_api::names::annotation::AUTHOR;
use atoll_api::names::kind::{STAMPED, work};
use serde_json::{Value, json};

/// The group of admission policies.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// Only the hub creates or changes bindings. Deleting one does no harm: the hub's finalizer holds it, and the hub makes it anew.
pub(super) fn bindings(hub: &str) -> [Value; 2] {
    let plurals = [work::RESOURCE_BINDINGS, work::CLUSTER_RESOURCE_BINDINGS];
    let resources: Vec<String> =
        plurals.iter().flat_map(|plural| [(*plural).to_owned(), format!("{plural}/status")]).collect();
    let policy = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": BINDINGS },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": { "resourceRules": [{
                "apiGroups": [work::GROUP], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"],
                "resources": resources,
            }]},
            "validations": [{
                "expression": format!("request.userInfo.username == {}", quoted(hub)),
                "message": "a binding is the hub's own memory: only the hub writes it",
                "reason": "Forbidden",
            }],
        },
    });
    [policy, binding("ValidatingAdmissionPolicyBinding", "v1", BINDINGS, true)]
}

/// The API server writes who wrote a policy: at its creation, with every change of its spec, and where there is no stamp yet.
pub(super) fn stamping(hub: &str, version: &str) -> [Value; 2] {
    let policy = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": "MutatingAdmissionPolicy",
        "metadata": { "name": AUTHORS },
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": matched(),
            "matchConditions": conditions(hub),
            "variables": variables(),
            "mutations": [{
                "patchType": "ApplyConfiguration",
                "applyConfiguration": { "expression": format!(
                    "Object{{metadata: Object.metadata{{annotations: {{{}: variables.stamp}}}}}}", quoted(AUTHOR)) },
            }],
        },
    });
    [policy, binding("MutatingAdmissionPolicyBinding", version, AUTHORS, false)]
}

/// What a stamp says is what the API server would write.
pub(super) fn checking(hub: &str) -> [Value; 2] {
    let policy = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": "ValidatingAdmissionPolicy",
        "metadata": { "name": AUTHORS },
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": matched(),
            "matchConditions": conditions(hub),
            "variables": variables(),
            "validations": [{
                "expression": format!(
                    "has(object.metadata.annotations) && {0} in object.metadata.annotations \
                     && object.metadata.annotations[{0}] == variables.stamp", quoted(AUTHOR)),
                "message": format!("only the API server writes {AUTHOR}"),
                "reason": "Forbidden",
            }],
        },
    });
    [policy, binding("ValidatingAdmissionPolicyBinding", "v1", AUTHORS, true)]
}

fn binding(kind: &str, version: &str, policy: &str, denies: bool) -> Value {
    let mut binding = json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": kind,
        "metadata": { "name": policy },
        "spec": { "policyName": policy },
    });
    if denies {
        binding["spec"]["validationActions"] = json!(["Deny"]);
    }
    binding
}

fn matched() -> Value {
    let rules = STAMPED.map(|(group, plural)| {
        json!({ "apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE"], "resources": [plural] })
    });
    json!({ "resourceRules": rules })
}

/// The hub's own writes (finalizers, labels) are not looked at: it changes no spec.
fn conditions(hub: &str) -> Value {
    json!([{
        "name": "not-the-hubs-own-marks",
        "expression": format!(
            "request.operation == 'CREATE' || request.userInfo.username != {} || object.spec != oldObject.spec",
            quoted(hub)),
    }])
}

fn variables() -> Value {
    let key = quoted(AUTHOR);
    let list = |of: &str| format!("'[' + {of}.map(one, strings.quote(one)).join(',') + ']'");
    let groups = list("request.userInfo.groups");
    let extra = list("request.userInfo.extra[key]");
    json!([
        // The stamp that is kept: of an object whose spec is as it was.
        { "name": "kept", "expression": format!(
            "request.operation == 'UPDATE' && object.spec == oldObject.spec && has(oldObject.metadata.annotations) \
             && {key} in oldObject.metadata.annotations ? oldObject.metadata.annotations[{key}] : ''") },
        { "name": "groups", "expression": format!("has(request.userInfo.groups) ? {groups} : '[]'") },
        { "name": "extra", "expression": format!(
            "has(request.userInfo.extra) ? '{{' + request.userInfo.extra.map(key, strings.quote(key) + ':' + {extra}).join(',') + '}}' : '{{}}'") },
        { "name": "stamp", "expression":
            "variables.kept != '' ? variables.kept : '{\"username\":' + strings.quote(request.userInfo.username) \
             + ',\"uid\":' + strings.quote(has(request.userInfo.uid) ? request.userInfo.uid : '') \
             + ',\"groups\":' + variables.groups + ',\"extra\":' + variables.extra + '}'" },
    ])
}

/// A string in CEL.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_name_stays_a_string() {
        let [policy, _] = bindings(r#"o" || true || ""#);
        let expression = policy["spec"]["validations"][0]["expression"].as_str().unwrap();
        assert_eq!(expression, r#"request.userInfo.username == "o\" || true || \"""#);
    }
}
