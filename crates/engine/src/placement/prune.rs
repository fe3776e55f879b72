//! What of a template travels: not what the hub's API wrote into it, nor what belongs to one cluster.

use atoll_api::names::is_mark;
use serde_json::{Map, Value};

use super::object::group_of;

/// Of the metadata, everything else stays behind.
pub(super) const METADATA: &[&str] = &["name", "namespace", "labels", "annotations"];
/// Annotations that speak of the hub's own object.
const ANNOTATIONS: &[&str] = &[
    "kubectl.kubernetes.io/last-applied-configuration",
    "deployment.kubernetes.io/revision",
    "deployment.kubernetes.io/revision-history",
    "kubernetes.io/service-account.uid",
    "volume.kubernetes.io/selected-node",
];
/// Labels that a Job's controller makes.
const JOB_LABELS: &[&str] =
    &["controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"];

/// The part of a template that is the same in every cluster.
pub fn prune(template: &Value) -> Value {
    let mut object = template.clone();
    let asked_ports = asked_node_ports(template);
    if let Some(root) = object.as_object_mut() {
        root.remove("status");
        if let Some(Value::Object(meta)) = root.get_mut("metadata") {
            meta.retain(|key, _| METADATA.contains(&key.as_str()));
            remove_all(meta, "annotations", ANNOTATIONS);
            // By these we know what is ours in a member: a template can't pretend to be.
            ["labels", "annotations"].into_iter().for_each(|field| remove_marks(meta, field));
        }
    }
    match (group_of(template), template["kind"].as_str().unwrap_or_default()) {
        ("", "Service") => service(&mut object, &asked_ports),
        ("", "ServiceAccount") => drop(object.as_object_mut().and_then(|root| root.remove("secrets"))),
        ("", "Secret") if template["type"] == "kubernetes.io/service-account-token" => {
            drop(object.as_object_mut().and_then(|root| root.remove("data")));
        }
        ("batch", "Job") if object.pointer("/spec/manualSelector") != Some(&Value::Bool(true)) => {
            job(&mut object);
        }
        _ => {}
    }
    object
}

fn remove_marks(of: &mut Map<String, Value>, at: &str) {
    let Some(Value::Object(map)) = of.get_mut(at) else { return };
    let many = map.len();
    map.retain(|key, _| !is_mark(key));
    if map.is_empty() && many > 0 {
        of.remove(at);
    }
}

/// A Service without addresses that its owner does not have to own: whoever may name one takes others' traffic.
pub fn without_external_ips(object: &mut Value) {
    if (group_of(object), object["kind"].as_str()) == ("", Some("Service"))
        && let Some(Value::Object(spec)) = object.get_mut("spec")
    {
        spec.remove("externalIPs");
    }
}

fn remove_all(of: &mut Map<String, Value>, at: &str, keys: &[&str]) {
    if let Some(Value::Object(map)) = of.get_mut(at) {
        map.retain(|key, _| !keys.contains(&key.as_str()));
        if map.is_empty() {
            of.remove(at);
        }
    }
}

/// The node ports that the user wrote: those that the hub's API gave out mean nothing elsewhere, and would collide.
fn asked_node_ports(template: &Value) -> Vec<Value> {
    let applied = template.pointer("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration");
    let applied: Option<Value> =
        applied.and_then(Value::as_str).and_then(|text| serde_json::from_str(text).ok());
    let ports = applied.as_ref().and_then(|applied| applied.pointer("/spec/ports")).and_then(Value::as_array);
    ports.into_iter().flatten().filter_map(|port| port.get("nodePort").cloned()).collect()
}

fn service(object: &mut Value, asked_ports: &[Value]) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if spec.get("clusterIP").is_some_and(|ip| ip != "None") {
        spec.remove("clusterIP");
        spec.remove("clusterIPs");
    }
    for field in ["healthCheckNodePort", "ipFamilies", "ipFamilyPolicy"] {
        // The families of the hub's API are not those of a member.
        spec.remove(field);
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Value::Object(port) = port {
            port.retain(|key, value| key != "nodePort" || asked_ports.contains(value));
        }
    }
}

fn job(object: &mut Value) {
    let Some(Value::Object(spec)) = object.get_mut("spec") else { return };
    if let Some(Value::Object(selector)) = spec.get_mut("selector") {
        remove_all(selector, "matchLabels", JOB_LABELS);
        if selector.is_empty() {
            spec.remove("selector");
        }
    }
    if let Some(Value::Object(meta)) =
        spec.get_mut("template").and_then(|template| template.get_mut("metadata"))
    {
        remove_all(meta, "labels", JOB_LABELS);
    }
}
