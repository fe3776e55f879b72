//! The status of a template: what its copies say, together.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::object::group_of;
use crate::names::ClusterId;

/// The status that a template gets from its copies; none for kinds whose status can't be added up.
pub fn aggregate(template: &Value, copies: &BTreeMap<ClusterId, Value>) -> Option<Value> {
    let generation = template["metadata"]["generation"].as_i64().unwrap_or_default();
    match (group_of(template), template["kind"].as_str()?) {
        ("apps", "Deployment") => Some(sums(
            copies,
            Some(generation),
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "unavailableReplicas"],
        )),
        ("apps", "StatefulSet") => Some(sums(
            copies,
            Some(generation),
            &["replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        )),
        ("apps", "ReplicaSet") => Some(sums(
            copies,
            Some(generation),
            &["replicas", "readyReplicas", "availableReplicas", "fullyLabeledReplicas"],
        )),
        ("apps", "DaemonSet") => Some(sums(
            copies,
            Some(generation),
            &[
                "currentNumberScheduled",
                "desiredNumberScheduled",
                "numberMisscheduled",
                "numberReady",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
            ],
        )),
        ("batch", "Job") => Some(job(copies)),
        ("", "Service") | ("networking.k8s.io", "Ingress") => Some(balancers(copies)),
        _ => None,
    }
}

/// Whether a copy does what it should; none where its kind does not say.
pub fn healthy(copy: &Value, status: &Value) -> Option<bool> {
    let count = |field: &str| status[field].as_i64().unwrap_or(0);
    match (group_of(copy), copy["kind"].as_str()?) {
        ("apps", "Deployment" | "StatefulSet" | "ReplicaSet") => {
            let wanted = copy["spec"]["replicas"].as_i64().unwrap_or(1);
            let ready = if copy["kind"] == "Deployment" { "availableReplicas" } else { "readyReplicas" };
            Some(count(ready) >= wanted)
        }
        ("apps", "DaemonSet") => Some(
            status["desiredNumberScheduled"].is_i64()
                && count("numberAvailable") >= count("desiredNumberScheduled"),
        ),
        _ => None,
    }
}

fn sums(copies: &BTreeMap<ClusterId, Value>, generation: Option<i64>, fields: &[&str]) -> Value {
    let mut status = Map::new();
    if let Some(generation) = generation.filter(|_| !copies.is_empty()) {
        status.insert("observedGeneration".to_owned(), generation.into());
    }
    for field in fields {
        let sum: i64 = copies.values().filter_map(|copy| copy[*field].as_i64()).sum();
        // An API server leaves out most counts that are zero, and wants some of them said.
        status.insert((*field).to_owned(), sum.into());
    }
    Value::Object(status)
}

fn job(copies: &BTreeMap<ClusterId, Value>) -> Value {
    let mut status = sums(copies, None, &["active", "succeeded", "failed"]);
    let times = |field: &'static str| copies.values().filter_map(move |copy| copy[field].as_str());
    if let Some(first) = times("startTime").min() {
        status["startTime"] = first.into();
    }
    let has = |copy: &Value, kind: &str| {
        let conditions = copy["conditions"].as_array().into_iter().flatten();
        conditions.into_iter().any(|one| one["type"] == kind && one["status"] == "True")
    };
    let failed: Vec<_> =
        copies.iter().filter(|(_, copy)| has(copy, "Failed")).map(|(id, _)| id.as_str()).collect();
    let all = |kind: &str| !copies.is_empty() && copies.values().all(|copy| has(copy, kind));
    if all("Complete") {
        if let Some(last) = times("completionTime").max() {
            status["completionTime"] = last.into();
        }
        status["conditions"] = json!([
            { "type": "SuccessCriteriaMet", "status": "True", "reason": "CompletionsReached" },
            { "type": "Complete", "status": "True", "reason": "Completed", "message": "complete in all clusters" },
        ]);
    } else if !failed.is_empty() {
        let message = format!("failed in {}", failed.join(", "));
        status["conditions"] = json!([
            { "type": "FailureTarget", "status": "True", "reason": "JobFailed", "message": message.clone() },
            { "type": "Failed", "status": "True", "reason": "JobFailed", "message": message },
        ]);
    }
    status
}

fn balancers(copies: &BTreeMap<ClusterId, Value>) -> Value {
    let mut ingress: Vec<Value> = Vec::new();
    for copy in copies.values() {
        for one in copy["loadBalancer"]["ingress"].as_array().into_iter().flatten() {
            if !ingress.contains(one) {
                ingress.push(one.clone());
            }
        }
    }
    if ingress.is_empty() {
        json!({ "loadBalancer": {} })
    } else {
        json!({ "loadBalancer": { "ingress": ingress } })
    }
}
