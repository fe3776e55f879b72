//! Namespaces, configuration, access, events.

use super::object::{Object, UNKNOWN, UNSET, text};
use serde_json::Value;

pub(super) fn name_and_age(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.age()]
}

pub(super) fn namespace(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("status.phase").into(), object.age()]
}

pub(super) fn config_map(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), (object.size("data") + object.size("binaryData")).into(), object.age()]
}

pub(super) fn secret(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("type").into(), object.size("data").into(), object.age()]
}

pub(super) fn lease(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.text("spec.holderIdentity").into(), object.age()]
}

pub(super) fn priority_class(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.number("value").into(),
        object.flag("globalDefault").into(),
        object.age(),
        object.text("preemptionPolicy").into(),
    ]
}

pub(super) fn resource_quota(object: &Object<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (resource, hard) in object.field("status.hard").and_then(Value::as_object).into_iter().flatten() {
        let used = object.field("status.used").map_or("", |used| text(used, resource));
        let used = if used.is_empty() { "0" } else { used };
        let shown = format!("{resource}: {used}/{}", hard.as_str().unwrap_or_default());
        if resource.starts_with("limits.") { limits.push(shown) } else { requests.push(shown) }
    }
    vec![object.name(), requests.join(", ").into(), limits.join(", ").into(), object.age()]
}

pub(super) fn role_binding(object: &Object<'_>) -> Vec<Value> {
    let named = |kind: &str| {
        let subjects = object.items("subjects").iter().filter(|subject| text(subject, "kind") == kind);
        let names = subjects.map(|subject| match text(subject, "namespace") {
            "" => text(subject, "name").to_owned(),
            namespace => format!("{namespace}/{}", text(subject, "name")),
        });
        names.collect::<Vec<_>>().join(", ").into()
    };
    let role = format!("{}/{}", object.text("roleRef.kind"), object.text("roleRef.name"));
    vec![object.name(), role.into(), object.age(), named("User"), named("Group"), named("ServiceAccount")]
}

pub(super) fn webhooks(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.items("webhooks").len().into(), object.age()]
}

pub(super) fn policy(object: &Object<'_>) -> Vec<Value> {
    let params = match object.field("spec.paramKind") {
        Some(kind) => format!("{}/{}", text(kind, "apiVersion"), text(kind, "kind")),
        None => UNSET.to_owned(),
    };
    vec![object.name(), object.items("spec.validations").len().into(), params.into(), object.age()]
}

pub(super) fn policy_binding(object: &Object<'_>) -> Vec<Value> {
    let params = match (object.text("spec.paramRef.namespace"), object.text("spec.paramRef.name")) {
        (_, "") => UNSET.to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![object.name(), object.text("spec.policyName").into(), params.into(), object.age()]
}

pub(super) fn api_service(object: &Object<'_>) -> Vec<Value> {
    let service = match object.field("spec.service") {
        Some(service) => format!("{}/{}", text(service, "namespace"), text(service, "name")),
        None => "Local".to_owned(),
    };
    let mut conditions = object.items("status.conditions").iter();
    let available = conditions.rfind(|condition| text(condition, "type") == "Available");
    let available = match available {
        Some(condition) if text(condition, "status") == "True" => "True".to_owned(),
        Some(condition) => format!("{} ({})", text(condition, "status"), text(condition, "reason")),
        None => "Unknown".to_owned(),
    };
    vec![object.name(), service.into(), available.into(), object.age()]
}

pub(super) fn event(object: &Object<'_>) -> Vec<Value> {
    // Events of the newer API say the same in other fields.
    let either =
        |old: &str, new: &str| if object.text(old).is_empty() { object.text(new) } else { object.text(old) };
    let since = |old: &str, new: &str| match (object.time(old), object.time(new)) {
        (None, None) => UNKNOWN.to_owned(),
        (Some(_), _) => object.since(old),
        (None, Some(_)) => object.since(new),
    };
    let mut first = since("firstTimestamp", "deprecatedFirstTimestamp");
    if first == UNKNOWN {
        first = object.since("eventTime");
    }
    let mut last = since("lastTimestamp", "deprecatedLastTimestamp");
    if last == UNKNOWN {
        last.clone_from(&first);
    }
    let mut count = object.number("count").max(object.number("deprecatedCount")).max(1);
    if object.field("series").is_some() {
        last = object.since("series.lastObservedTime");
        count = object.number("series.count");
    }
    let kind = either("involvedObject.kind", "regarding.kind").to_lowercase();
    let target = match either("involvedObject.name", "regarding.name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    let component = match either("source.component", "deprecatedSource.component") {
        "" => either("reportingComponent", "reportingController"),
        component => component,
    };
    let host = match either("source.host", "deprecatedSource.host") {
        "" => object.text("reportingInstance"),
        host => host,
    };
    let source = if host.is_empty() { component.to_owned() } else { format!("{component}, {host}") };
    vec![
        last.into(),
        object.text("type").into(),
        object.text("reason").into(),
        target.into(),
        either("involvedObject.fieldPath", "regarding.fieldPath").into(),
        source.into(),
        either("message", "note").trim().into(),
        first.into(),
        count.into(),
        object.name(),
    ]
}
