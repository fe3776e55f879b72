//! Pods and what makes them.

mod pod;

pub(super) use pod::pod;

use super::object::{NONE, Object, UNKNOWN, UNSET, text};
use crate::table::age;
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn node(object: &Object<'_>) -> Vec<Value> {
    let conditions = object.items("status.conditions");
    let ready = conditions.iter().rfind(|condition| text(condition, "type") == "Ready");
    let mut status = match ready.map(|condition| text(condition, "status")) {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }
    .to_owned();
    if object.flag("spec.unschedulable") {
        status.push_str(",SchedulingDisabled");
    }
    let labels = object.field("metadata.labels").and_then(Value::as_object).into_iter().flatten();
    let role = |(key, value): (&String, &Value)| match key.strip_prefix("node-role.kubernetes.io/") {
        Some(role) => Some(role.to_owned()),
        None if key == "kubernetes.io/role" => value.as_str().map(str::to_owned),
        None => None,
    };
    let roles: BTreeSet<String> = labels.filter_map(role).filter(|role| !role.is_empty()).collect();
    let roles: Vec<String> = roles.into_iter().collect();
    let address = |kind: &str| {
        let mut addresses = object.items("status.addresses").iter();
        addresses
            .find(|address| text(address, "type") == kind)
            .map_or(NONE, |address| text(address, "address"))
            .into()
    };
    let mut kernel = object.text_or("status.nodeInfo.kernelVersion", UNKNOWN).to_owned();
    let architecture = object.text("status.nodeInfo.architecture");
    if !architecture.is_empty() {
        kernel.push_str(&format!(" ({architecture})"));
    }
    vec![
        object.name(),
        status.into(),
        if roles.is_empty() { NONE.into() } else { roles.join(",").into() },
        object.age(),
        object.text("status.nodeInfo.kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        object.text_or("status.nodeInfo.osImage", UNKNOWN).into(),
        kernel.into(),
        object.text_or("status.nodeInfo.containerRuntimeVersion", UNKNOWN).into(),
    ]
}

pub(super) fn pod_template(object: &Object<'_>) -> Vec<Value> {
    let [names, images] = object.containers("template.spec.containers");
    vec![object.name(), names, images, object.labels("template.metadata.labels").into()]
}

pub(super) fn replica_set(object: &Object<'_>) -> Vec<Value> {
    let [names, images] = object.containers("spec.template.spec.containers");
    // A ReplicationController's selector is a plain map.
    let plain = object.field("spec.selector").is_some_and(|selector| {
        selector.as_object().is_some_and(|fields| fields.values().all(Value::is_string))
    });
    let selector = if plain { object.labels("spec.selector") } else { object.selector("spec.selector") };
    vec![
        object.name(),
        object.number("spec.replicas").into(),
        object.number("status.replicas").into(),
        object.number("status.readyReplicas").into(),
        object.age(),
        names,
        images,
        selector.into(),
    ]
}

fn ready(object: &Object<'_>) -> Value {
    format!("{}/{}", object.number("status.readyReplicas"), object.number("spec.replicas")).into()
}

pub(super) fn deployment(object: &Object<'_>) -> Vec<Value> {
    let [names, images] = object.containers("spec.template.spec.containers");
    vec![
        object.name(),
        ready(object),
        object.number("status.updatedReplicas").into(),
        object.number("status.availableReplicas").into(),
        object.age(),
        names,
        images,
        object.selector("spec.selector").into(),
    ]
}

pub(super) fn stateful_set(object: &Object<'_>) -> Vec<Value> {
    let [names, images] = object.containers("spec.template.spec.containers");
    vec![object.name(), ready(object), object.age(), names, images]
}

pub(super) fn daemon_set(object: &Object<'_>) -> Vec<Value> {
    let [names, images] = object.containers("spec.template.spec.containers");
    let mut cells = vec![object.name()];
    for count in [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ] {
        cells.push(object.number(&format!("status.{count}")).into());
    }
    cells.push(object.labels("spec.template.spec.nodeSelector").into());
    cells.extend([object.age(), names, images, object.selector("spec.selector").into()]);
    cells
}

pub(super) fn controller_revision(object: &Object<'_>) -> Vec<Value> {
    let mut owners = object.items("metadata.ownerReferences").iter();
    let controller = owners.find(|owner| owner.get("controller").and_then(Value::as_bool) == Some(true));
    let controller = match controller {
        None => NONE.to_owned(),
        Some(owner) => {
            let kind = text(owner, "kind").to_lowercase();
            match text(owner, "apiVersion").rsplit_once('/') {
                Some((group, _)) => format!("{kind}.{group}/{}", text(owner, "name")),
                None => format!("{kind}/{}", text(owner, "name")),
            }
        }
    };
    vec![object.name(), controller.into(), object.number("revision").into(), object.age()]
}

pub(super) fn job(object: &Object<'_>) -> Vec<Value> {
    let succeeded = object.number("status.succeeded");
    let completions = match (object.field("spec.completions"), object.number("spec.parallelism")) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let took = match (object.time("status.startTime"), object.time("status.completionTime")) {
        (None, _) => String::new(),
        (Some(start), end) => age::human(start, end.unwrap_or(object.now())),
    };
    let status = if object.condition("Complete") {
        "Complete"
    } else if object.condition("Failed") {
        "Failed"
    } else if object.deleted() {
        "Terminating"
    } else {
        let rest = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        rest.into_iter().find(|condition| object.condition(condition)).unwrap_or("Running")
    };
    let [names, images] = object.containers("spec.template.spec.containers");
    vec![
        object.name(),
        status.into(),
        completions.into(),
        took.into(),
        object.age(),
        names,
        images,
        object.selector("spec.selector").into(),
    ]
}

pub(super) fn cron_job(object: &Object<'_>) -> Vec<Value> {
    let last = match object.field("status.lastScheduleTime") {
        Some(_) => object.since("status.lastScheduleTime"),
        None => NONE.to_owned(),
    };
    let suspend = object.field("spec.suspend").and_then(Value::as_bool);
    let suspend =
        suspend.map_or_else(|| UNSET.to_owned(), |flag| if flag { "True" } else { "False" }.to_owned());
    let [names, images] = object.containers("spec.jobTemplate.spec.template.spec.containers");
    vec![
        object.name(),
        object.text("spec.schedule").into(),
        object.text_or("spec.timeZone", NONE).into(),
        suspend.into(),
        object.items("status.active").len().into(),
        last.into(),
        object.age(),
        names,
        images,
        object.selector("spec.jobTemplate.spec.selector").into(),
    ]
}

pub(super) fn autoscaler(object: &Object<'_>) -> Vec<Value> {
    let reference =
        format!("{}/{}", object.text("spec.scaleTargetRef.kind"), object.text("spec.scaleTargetRef.name"));
    let least = object.field("spec.minReplicas").map_or_else(|| UNSET.to_owned(), ToString::to_string);
    vec![
        object.name(),
        reference.into(),
        targets(object).into(),
        least.into(),
        object.number("spec.maxReplicas").into(),
        object.number("status.currentReplicas").into(),
        object.age(),
    ]
}

fn targets(object: &Object<'_>) -> String {
    let statuses = object.items("status.currentMetrics");
    let metrics = object.items("spec.metrics").iter().enumerate();
    let all: Vec<String> = metrics.map(|(at, metric)| target(metric, statuses.get(at))).collect();
    match all.len() {
        0 => NONE.to_owned(),
        1..=2 => all.join(", "),
        more => format!("{} + {} more...", all[..2].join(", "), more - 2),
    }
}

fn target(metric: &Value, status: Option<&Value>) -> String {
    let source = match text(metric, "type") {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        _ => return "<unknown type>".to_owned(),
    };
    let shown = |value: Option<&Value>, field: &str| match value.and_then(|value| value.get(field)) {
        Some(Value::String(quantity)) => Some(quantity.clone()),
        Some(Value::Number(number)) if field == "averageUtilization" => Some(format!("{number}%")),
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let wanted = metric.get(source).and_then(|spec| spec.get("target"));
    let current = status.and_then(|status| status.get(source)?.get("current"));
    let unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let average = shown(wanted, "averageValue");
    match source {
        "resource" | "containerResource" => {
            let name = metric.get(source).map_or("", |spec| text(spec, "name"));
            match average {
                Some(average) => format!("{name}: {}/{average}", unknown(shown(current, "averageValue"))),
                None => {
                    let wanted = shown(wanted, "averageUtilization").unwrap_or_else(|| "<auto>".to_owned());
                    format!("{name}: {}/{wanted}", unknown(shown(current, "averageUtilization")))
                }
            }
        }
        "pods" => format!("{}/{}", unknown(shown(current, "averageValue")), average.unwrap_or_default()),
        _ => match average {
            Some(average) => format!("{}/{average} (avg)", unknown(shown(current, "averageValue"))),
            None => {
                let wanted = shown(wanted, "value").unwrap_or_default();
                format!("{}/{wanted}", unknown(shown(current, "value")))
            }
        },
    }
}

pub(super) fn scale(object: &Object<'_>) -> Vec<Value> {
    vec![
        object.name(),
        object.number("spec.replicas").into(),
        object.number("status.replicas").into(),
        object.age(),
    ]
}

pub(super) fn disruption_budget(object: &Object<'_>) -> Vec<Value> {
    let shown = |path: &str| match object.field(path) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => "N/A".to_owned(),
    };
    vec![
        object.name(),
        shown("spec.minAvailable").into(),
        shown("spec.maxUnavailable").into(),
        object.number("status.disruptionsAllowed").into(),
        object.age(),
    ]
}
