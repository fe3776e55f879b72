//! Objects without what differs in any two clusters.

use crate::cluster::Objects;
use serde_json::{Map, Value};

/// What is looked at, and which parts.
const KINDS: [(&str, &str); 7] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "ReplicaSet"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ControllerRevision"),
    ("batch/v1", "Job"),
    ("discovery.k8s.io/v1", "EndpointSlice"),
    ("v1", "Pod"),
];
/// What a real API server or kubelet adds, or what says how often something was written.
const LEFT_OUT: [&str; 7] = [
    "managedFields",
    "resourceVersion",
    "generation",
    "selfLink",
    "zone",
    "kubectl.kubernetes.io/last-applied-configuration",
    // For kube-proxy's statistics.
    "endpoints.kubernetes.io/last-change-trigger-time",
];
/// Fields that only say which one of many it is.
const NAMELESS: [(&str, &str); 12] = [
    ("controller-uid", "UID"),
    ("batch.kubernetes.io/controller-uid", "UID"),
    ("uid", "UID"),
    ("nodeName", "NODE"),
    ("creationTimestamp", "TIME"),
    ("lastTransitionTime", "TIME"),
    ("lastUpdateTime", "TIME"),
    ("lastProbeTime", "TIME"),
    ("startTime", "TIME"),
    ("completionTime", "TIME"),
    ("addresses", "ADDRESSES"),
    ("deletionTimestamp", "TIME"),
];

/// All that controllers made in a cluster, in one order.
pub(crate) async fn take(objects: &Objects) -> Vec<Value> {
    let mut all = Vec::new();
    for (version, kind) in KINDS {
        for mut object in objects.list(version, kind).await {
            let labels = &object["metadata"]["labels"];
            let manager = &labels["endpointslice.kubernetes.io/managed-by"];
            if kind == "EndpointSlice" && *manager != "endpointslice-controller.k8s.io" {
                continue;
            }
            object["kind"] = kind.into();
            for condition in object["status"]["conditions"].as_array_mut().into_iter().flatten() {
                // Which of the two is said last depends on who is faster, in any cluster.
                if let Some("NewReplicaSetCreated" | "ReplicaSetUpdated") = condition["reason"].as_str() {
                    condition["reason"] = "UNDER WAY".into();
                    condition["message"] = "UNDER WAY".into();
                }
            }
            if object["status"]["observedGeneration"].is_i64() {
                let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
                object["status"]["observedGeneration"] = current.into();
            }
            // What a pod does is the kubelet's; its template is compared where it comes from.
            if kind == "Pod" {
                let spec = object["spec"].take();
                object["spec"] =
                    ["hostname", "subdomain"].iter().map(|name| (*name, spec[name].clone())).collect();
                object.as_object_mut().unwrap().remove("status");
            }
            all.push(object);
        }
    }
    let hashes = hashes(&all);
    let mut all: Vec<Value> = all.iter().map(|object| plain("", object, &hashes)).collect();
    all.sort_by_key(Value::to_string);
    all
}

/// Every name that a template's hash or chance gave, and what it is called here.
fn hashes(all: &[Value]) -> Vec<(String, String)> {
    let mut known = Vec::new();
    for object in all {
        let meta = &object["metadata"];
        let name = meta["name"].as_str().unwrap_or_default();
        let hash = |label: &str| meta["labels"][label].as_str().map(str::to_owned);
        let revision = meta["annotations"]["deployment.kubernetes.io/revision"]
            .as_str()
            .or(object["revision"].as_i64().map(|_| "r"));
        for hash in [hash("pod-template-hash"), hash("controller.kubernetes.io/hash")].into_iter().flatten() {
            if let Some(revision) = revision {
                let number = object["revision"]
                    .as_i64()
                    .map_or_else(|| revision.to_owned(), |number| number.to_string());
                known.push((hash, format!("HASH{number}")));
            }
        }
        let chosen = meta["generateName"].as_str().and_then(|stem| name.strip_prefix(stem));
        if let Some(letters) = chosen.filter(|letters| letters.len() == 5) {
            known.push((letters.to_owned(), "*".to_owned()));
        }
    }
    known
}

fn plain(field: &str, value: &Value, hashes: &[(String, String)]) -> Value {
    if let Some((_, instead)) = NAMELESS.iter().find(|(name, _)| *name == field) {
        return (*instead).into();
    }
    match value {
        Value::Object(fields) => {
            let kept =
                fields.iter().filter(|(name, value)| !LEFT_OUT.contains(&name.as_str()) && !value.is_null());
            let kept: Map<String, Value> =
                kept.map(|(name, value)| (name.clone(), plain(name, value, hashes))).collect();
            let kept = kept
                .into_iter()
                .filter(|(name, value)| name != "annotations" || *value != Value::Object(Map::new()));
            Value::Object(kept.collect())
        }
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| plain("", item, hashes)).collect();
            if field == "endpoints" {
                items.sort_by_key(Value::to_string);
            }
            items.into()
        }
        Value::String(text) => {
            let text = hashes.iter().fold(text.clone(), |text, (hash, instead)| text.replace(hash, instead));
            text.into()
        }
        other => other.clone(),
    }
}
