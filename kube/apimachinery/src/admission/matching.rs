//! Which requests a policy or a binding speaks about.

use super::Request;
use super::policy::{listed, text};
use crate::selector::labels;
use serde_json::Value;

/// Do these `matchConstraints` or `matchResources` take in the request? A selector that can't be read takes in all:
/// a policy must not be slipped past by a slip in it.
pub(super) fn matches(resources: &Value, request: &Request<'_>) -> bool {
    if exempt(request) {
        return false;
    }
    let equivalent = text(resources, "matchPolicy") != "Exact";
    let any = |field: &str| listed(resources, field).any(|rule| takes(rule, request, equivalent));
    let ruled = listed(resources, "resourceRules").next().is_none() || any("resourceRules");
    ruled
        && !any("excludeResourceRules")
        && namespace_selected(resources, request)
        && object_selected(resources, request)
}

/// Whether rules may speak of a resource at all: found out without the object, or its namespace.
pub(super) fn concerns(resources: &Value, group: &str, plural: &str) -> bool {
    let speaks = |rule: &Value| {
        let groups = listed(rule, "apiGroups").filter_map(Value::as_str);
        let plurals = listed(rule, "resources").filter_map(Value::as_str);
        groups.into_iter().any(|one| one == "*" || one == group)
            && plurals.into_iter().any(|one| {
                let one = one.split('/').next().unwrap_or_default();
                one == "*" || one == plural
            })
    };
    let mut rules = listed(resources, "resourceRules").peekable();
    rules.peek().is_none() || rules.any(speaks)
}

/// Policies do not judge policies: one could lock out its own removal.
fn exempt(request: &Request<'_>) -> bool {
    const POLICIES: &[&str] = &[
        "validatingadmissionpolicies",
        "validatingadmissionpolicybindings",
        "mutatingadmissionpolicies",
        "mutatingadmissionpolicybindings",
    ];
    request.group == "admissionregistration.k8s.io" && POLICIES.contains(&request.resource)
}

fn takes(rule: &Value, request: &Request<'_>, equivalent: bool) -> bool {
    let has = |field: &str, wanted: &str| listed(rule, field).any(|one| one == "*" || one == wanted);
    let scoped = match text(rule, "scope") {
        "Cluster" => request.namespace.is_empty() || request.resource == "namespaces",
        "Namespaced" => !request.namespace.is_empty() && request.resource != "namespaces",
        _ => true,
    };
    let mut names = listed(rule, "resourceNames").peekable();
    let named = names.peek().is_none() || names.any(|name| name == request.name);
    scoped
        && named
        && has("operations", request.operation)
        && has("apiGroups", request.group)
        && (equivalent || has("apiVersions", request.version))
        && listed(rule, "resources").filter_map(Value::as_str).any(|one| resource_is(one, request))
}

fn resource_is(pattern: &str, request: &Request<'_>) -> bool {
    let (resource, subresource) = pattern.split_once('/').unwrap_or((pattern, ""));
    let fits = |pattern: &str, is: &str| pattern == "*" || pattern == is;
    fits(resource, request.resource) && fits(subresource, request.subresource)
}

fn selector(resources: &Value, field: &str) -> Option<labels::Selector> {
    let selector = labels::from_object(resources.get(field)?).ok()?;
    (!selector.is_empty()).then_some(selector)
}

fn namespace_selected(resources: &Value, request: &Request<'_>) -> bool {
    let Some(selector) = selector(resources, "namespaceSelector") else { return true };
    if request.group.is_empty() && request.resource == "namespaces" {
        let namespace = request.object.or(request.old_object).or(request.namespace_object);
        return namespace.is_none_or(|namespace| selector.matches_object(namespace));
    }
    // What is in no namespace is selected by all of these.
    request.namespace.is_empty()
        || request.namespace_object.is_none_or(|namespace| selector.matches_object(namespace))
}

fn object_selected(resources: &Value, request: &Request<'_>) -> bool {
    let Some(selector) = selector(resources, "objectSelector") else { return true };
    [request.object, request.old_object].into_iter().flatten().any(|object| selector.matches_object(object))
}
