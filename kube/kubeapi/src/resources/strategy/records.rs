//! Kinds with a rule or two: events, leases, slices, priorities, roles, bindings.

use super::field::strings;
use atoll_apimachinery::invalid::{FieldError, TOLD_MOST};
use atoll_apimachinery::names;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::IpAddr;

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What is wrong with an event, of either group.
pub(super) fn event(group: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let namespace = text(&object["metadata"]["namespace"]);
    let subject = if group.is_empty() { "involvedObject" } else { "regarding" };
    let about = text(&object[subject]["namespace"]);
    let fits =
        if about.is_empty() { matches!(namespace, "default" | "kube-system") } else { about == namespace };
    if !fits {
        let path = format!("{}.namespace", if group.is_empty() { subject } else { "involvedObject" });
        errors.push(FieldError::invalid(&path, about, "does not match event.namespace"));
    }
    if group.is_empty() {
        return errors;
    }
    if old.is_none() && object["eventTime"].is_null() {
        errors.push(FieldError::required("eventTime", ""));
    }
    for field in ["reportingController", "reportingInstance", "action", "reason"] {
        if text(&object[field]).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
    }
    let controller = text(&object["reportingController"]);
    if !controller.is_empty() {
        let wrong = names::qualified(controller);
        errors
            .extend(wrong.into_iter().map(|why| FieldError::invalid("reportingController", controller, why)));
    }
    if !matches!(text(&object["type"]), "Normal" | "Warning") {
        errors.push(FieldError::invalid("type", text(&object["type"]), "has invalid value: "));
    }
    errors
}

pub(super) fn lease(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    if let Some(seconds) = spec["leaseDurationSeconds"].as_i64().filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid("spec.leaseDurationSeconds", seconds, "must be greater than 0"));
    }
    if let Some(count) = spec["leaseTransitions"].as_i64().filter(|count| *count < 0) {
        errors.push(FieldError::invalid(
            "spec.leaseTransitions",
            count,
            "must be greater than or equal to 0",
        ));
    }
    errors
}

/// Most endpoints and ports of a slice, as in kube-apiserver.
const MOST_ENDPOINTS: usize = 1000;
const MOST_PORTS: usize = 20_000;

pub(super) fn endpoint_slice(object: &Value, old: Option<&Value>, loopback: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let kind = text(&object["addressType"]);
    if kind.is_empty() {
        errors.push(FieldError::required("addressType", ""));
    }
    if old.is_some_and(|old| old["addressType"] != object["addressType"]) {
        errors.push(FieldError::invalid("addressType", kind, "field is immutable"));
    }
    for (field, most) in [("endpoints", MOST_ENDPOINTS), ("ports", MOST_PORTS)] {
        let count = object[field].as_array().map_or(0, Vec::len);
        if count > most {
            errors.push(FieldError::too_many(field, count as u64, most as u64));
        }
    }
    for (index, endpoint) in object["endpoints"].as_array().into_iter().flatten().enumerate() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let path = format!("endpoints[{index}].addresses");
        let none = Vec::new();
        let addresses = endpoint["addresses"].as_array().unwrap_or(&none);
        if addresses.is_empty() {
            errors.push(FieldError::required(&path, "must contain at least 1 address"));
        }
        if addresses.len() > 100 {
            errors.push(FieldError::too_many(&path, addresses.len() as u64, 100));
        }
        for (at, address) in addresses.iter().enumerate() {
            let path = format!("{path}[{at}]");
            let given = text(address);
            let parsed: Option<IpAddr> = given.parse().ok();
            let wrong = match (kind, parsed) {
                ("IPv4" | "IPv6", None) => {
                    Some("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)")
                }
                ("IPv4", Some(IpAddr::V6(_))) => Some("must be an IPv4 address"),
                ("IPv6", Some(IpAddr::V4(_))) => Some("must be an IPv6 address"),
                (_, Some(address)) if address.is_unspecified() => Some("may not be unspecified (0.0.0.0)"),
                (_, Some(address)) if address.is_loopback() && !loopback => {
                    Some("may not be in the loopback range (127.0.0.0/8, ::1/128)")
                }
                _ => None,
            };
            if let Some(why) = wrong {
                errors.push(FieldError::invalid(&path, given, why));
            }
        }
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (index, port) in object["ports"].as_array().into_iter().flatten().enumerate() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let name = text(&port["name"]);
        let path = format!("ports[{index}].name");
        if !name.is_empty() {
            let wrong = names::dns1123_label(name);
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path, name, why)));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate("ports", name));
        }
    }
    errors
}

pub(super) fn priority_class(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let Some(old) = old else { return Vec::new() };
    let mut errors = Vec::new();
    if object["value"] != old["value"] {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    if object["preemptionPolicy"] != old["preemptionPolicy"] {
        let shown = object["preemptionPolicy"].clone();
        errors.push(FieldError::invalid("preemptionPolicy", shown, "field is immutable"));
    }
    errors
}

pub(super) fn policy(object: &Value) -> Vec<FieldError> {
    let some = |field: &str| object["spec"][field].as_array().is_some_and(|list| !list.is_empty());
    let mut errors = Vec::new();
    if !some("validations") && !some("auditAnnotations") {
        let why = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required("spec.validations", why));
    }
    if let Err(found) = atoll_apimachinery::admission::Policy::compile(object) {
        errors.extend(found.into_iter().filter(|error| error.field != "spec.validations"));
    }
    errors
}

pub(super) fn policy_binding(object: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    if text(&spec["policyName"]).is_empty() {
        errors.push(FieldError::required("spec.policyName", ""));
    }
    let actions: Vec<&str> = strings(&spec["validationActions"]).collect();
    if actions.is_empty() {
        errors.push(FieldError::required("spec.validationActions", ""));
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let why = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        let shown: Vec<Value> = actions.iter().map(|action| Value::from(*action)).collect();
        errors.push(FieldError::invalid("spec.validationActions", shown, why));
    }
    errors
}

/// Roles and their bindings, of a namespace or of the cluster.
pub(super) fn rbac(object: &Value, old: Option<&Value>, namespaced: bool) -> Vec<FieldError> {
    if object.get("roleRef").is_some() || text(&object["kind"]).ends_with("Binding") {
        return binding(object, old, namespaced);
    }
    let mut errors = Vec::new();
    for (index, rule) in object["rules"].as_array().into_iter().flatten().enumerate() {
        let path = |field: &str| format!("rules[{index}].{field}");
        let given = |field: &str| strings(&rule[field]).next().is_some();
        if !given("verbs") {
            errors.push(FieldError::required(&path("verbs"), "verbs must contain at least one value"));
        }
        if given("nonResourceURLs") {
            let shown = rule["nonResourceURLs"].clone();
            if namespaced {
                let why = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&path("nonResourceURLs"), shown, why));
            } else if given("apiGroups") || given("resources") || given("resourceNames") {
                let why = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&path("nonResourceURLs"), shown, why));
            }
            continue;
        }
        if !given("apiGroups") {
            errors.push(FieldError::required(
                &path("apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if !given("resources") {
            errors.push(FieldError::required(
                &path("resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
    errors
}

fn binding(object: &Value, old: Option<&Value>, namespaced: bool) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let role = &object["roleRef"];
    let kinds: &[&str] = if namespaced { &["Role", "ClusterRole"] } else { &["ClusterRole"] };
    if text(&role["apiGroup"]) != crate::access::rbac::GROUP {
        let given = role["apiGroup"].clone();
        errors.push(FieldError::not_supported("roleRef.apiGroup", given, &[crate::access::rbac::GROUP]));
    }
    if !kinds.contains(&text(&role["kind"])) {
        errors.push(FieldError::not_supported("roleRef.kind", role["kind"].clone(), kinds));
    }
    if text(&role["name"]).is_empty() {
        errors.push(FieldError::required("roleRef.name", ""));
    }
    for (index, subject) in object["subjects"].as_array().into_iter().flatten().enumerate() {
        let path = |field: &str| format!("subjects[{index}].{field}");
        if text(&subject["name"]).is_empty() {
            errors.push(FieldError::required(&path("name"), ""));
        }
        match text(&subject["kind"]) {
            "ServiceAccount" => {
                if text(&subject["namespace"]).is_empty() && !namespaced {
                    errors.push(FieldError::required(&path("namespace"), ""));
                }
            }
            "User" | "Group" => {}
            other => {
                let known = ["ServiceAccount", "User", "Group"];
                errors.push(FieldError::not_supported(&path("kind"), other, &known));
            }
        }
    }
    if old.is_some_and(|old| old["roleRef"] != *role) {
        errors.push(FieldError::invalid("roleRef", role.clone(), "cannot change roleRef"));
    }
    errors
}
