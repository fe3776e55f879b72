//! Workloads: what must be there so that a cluster could run them.

use atoll_apimachinery::invalid::{FieldError, TOLD_MOST};
use atoll_apimachinery::names;
use atoll_apimachinery::selector::labels;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// What is wrong with a workload of this kind.
pub(super) fn validate(kind: &str, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match kind {
        "Pod" => pod(&object["spec"], "spec", &mut errors),
        "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet" => {
            replicas(object, &mut errors);
            selector(kind, object, &mut errors);
            if old.is_some_and(|old| old["spec"]["selector"] != object["spec"]["selector"]) {
                let shown = object["spec"]["selector"].clone();
                errors.push(FieldError::invalid("spec.selector", shown, "field is immutable"));
            }
            pod(&object["spec"]["template"]["spec"], "spec.template.spec", &mut errors);
        }
        "ReplicationController" => {
            replicas(object, &mut errors);
            pod(&object["spec"]["template"]["spec"], "spec.template.spec", &mut errors);
        }
        "Job" => pod(&object["spec"]["template"]["spec"], "spec.template.spec", &mut errors),
        "CronJob" => {
            if object["spec"]["schedule"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::required("spec.schedule", ""));
            }
            let template = &object["spec"]["jobTemplate"]["spec"]["template"]["spec"];
            pod(template, "spec.jobTemplate.spec.template.spec", &mut errors);
        }
        _ => {}
    }
    errors
}

/// A new Job selects its pods by its own uid, unless it has `manualSelector`; its pods bear its name, too.
pub(super) fn select_own_pods(object: &mut Value) {
    if object["spec"]["manualSelector"] == true || !object["spec"]["template"].is_object() {
        return;
    }
    const OWNER: &str = "batch.kubernetes.io/controller-uid";
    let (name, uid) = (object["metadata"]["name"].clone(), object["metadata"]["uid"].clone());
    let spec = &mut object["spec"];
    spec["manualSelector"] = false.into();
    let labels = &mut spec["template"]["metadata"]["labels"];
    for (label, value) in [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        (OWNER, &uid),
    ] {
        if labels[label].is_null() {
            labels[label] = value.clone();
        }
    }
    let labels = labels.clone();
    let selected = &mut spec["selector"]["matchLabels"];
    if selected[OWNER].is_null() {
        selected[OWNER] = uid;
    }
    let own = &mut object["metadata"]["labels"];
    if own.as_object().is_none_or(Map::is_empty) {
        *own = labels;
    }
}

fn replicas(object: &Value, errors: &mut Vec<FieldError>) {
    if let Some(number) = object["spec"]["replicas"].as_i64().filter(|number| *number < 0) {
        errors.push(FieldError::invalid("spec.replicas", number, "must be greater than or equal to 0"));
    }
}

fn selector(kind: &str, object: &Value, errors: &mut Vec<FieldError>) {
    let given = &object["spec"]["selector"];
    if !given.is_object() {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    }
    let empty = |field: &str| match given.get(field) {
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        _ => true,
    };
    if empty("matchLabels") && empty("matchExpressions") {
        let why = format!("empty selector is invalid for {}", kind.to_lowercase());
        errors.push(FieldError::invalid("spec.selector", given.clone(), why));
        return;
    }
    let Ok(selector) = labels::from_object(given) else { return };
    let own = object["spec"]["template"]["metadata"].get("labels").cloned();
    let own = own.filter(Value::is_object).unwrap_or_else(|| Value::Object(Map::new()));
    if !selector.matches_labels(&own) {
        let why = "`selector` does not match template `labels`";
        let shown = if own.as_object().is_some_and(Map::is_empty) { Value::Null } else { own };
        errors.push(FieldError::invalid("spec.template.metadata.labels", shown, why));
    }
}

fn pod(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let none = Vec::new();
    let containers = spec["containers"].as_array().unwrap_or(&none);
    if containers.is_empty() {
        errors.push(FieldError::required(&format!("{path}.containers"), ""));
    }
    let mut seen: BTreeSet<&str> = BTreeSet::new();
    for (list, containers) in
        [("initContainers", spec["initContainers"].as_array().unwrap_or(&none)), ("containers", containers)]
    {
        for (index, container) in containers.iter().enumerate() {
            if errors.len() >= TOLD_MOST {
                return;
            }
            let at = |field: &str| format!("{path}.{list}[{index}].{field}");
            let name = container["name"].as_str().unwrap_or_default();
            if name.is_empty() {
                errors.push(FieldError::required(&at("name"), ""));
            } else {
                let wrong = names::dns1123_label(name);
                errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&at("name"), name, why)));
            }
            if !seen.insert(name) && !name.is_empty() {
                errors.push(FieldError::duplicate(&at("name"), name));
            }
            if container["image"].as_str().unwrap_or_default().is_empty() {
                errors.push(FieldError::required(&at("image"), ""));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_job_selects_its_own_pods_unless_its_selector_is_manual() {
        let mut job = json!({"metadata": {"name": "sum", "uid": "u"}, "spec": {"template": {"spec": {}}}});
        let mut by_hand = job.clone();
        by_hand["spec"]["manualSelector"] = true.into();
        select_own_pods(&mut job);
        assert_eq!(
            job["spec"]["selector"],
            json!({"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}})
        );
        let labels = json!({"job-name": "sum", "batch.kubernetes.io/job-name": "sum",
            "controller-uid": "u", "batch.kubernetes.io/controller-uid": "u"});
        assert_eq!(job["spec"]["template"]["metadata"]["labels"], labels);
        assert_eq!(job["metadata"]["labels"], labels);
        let before = by_hand.clone();
        select_own_pods(&mut by_hand);
        assert_eq!(by_hand, before);
    }
}
