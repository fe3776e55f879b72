//! Services: what is not said, what stays from before, what may be.

use super::field::{each, set_default as set};
use atoll_apimachinery::invalid::{FieldError, TOLD_MOST};
use atoll_apimachinery::names;
use serde_json::{Value, json};
use std::collections::BTreeSet;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Has it an address of its own?
pub(crate) fn needs_address(service: &Value) -> bool {
    matches!(kind(service), "ClusterIP" | "NodePort" | "LoadBalancer")
}

/// Is it known by its endpoints only?
pub(crate) fn is_headless(service: &Value) -> bool {
    needs_address(service) && service["spec"]["clusterIP"] == "None"
}

/// Has it ports on every node?
pub(crate) fn needs_node_ports(service: &Value) -> bool {
    match kind(service) {
        "NodePort" => true,
        "LoadBalancer" => service["spec"]["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

fn kind(service: &Value) -> &str {
    service["spec"]["type"].as_str().unwrap_or("ClusterIP")
}

/// Fills in what is not said.
pub(super) fn default(object: &mut Value) {
    if !object["spec"].is_object() {
        object["spec"] = json!({});
    }
    set(object, "spec.sessionAffinity", "None");
    set(object, "spec.type", "ClusterIP");
    for port in each(object, "spec.ports") {
        set(port, "protocol", "TCP");
        let number = port["port"].clone();
        if port["targetPort"] == 0 || port["targetPort"] == "" {
            port["targetPort"] = Value::Null;
        }
        set(port, "targetPort", number);
    }
    if needs_address(object) {
        set(object, "spec.internalTrafficPolicy", "Cluster");
    }
    if matches!(kind(object), "NodePort" | "LoadBalancer") {
        set(object, "spec.externalTrafficPolicy", "Cluster");
    }
    if kind(object) == "LoadBalancer" {
        set(object, "spec.allocateLoadBalancerNodePorts", true);
    }
    if object["spec"]["sessionAffinity"] == "ClientIP" {
        set(object, "spec.sessionAffinityConfig", json!({}));
        set(object, "spec.sessionAffinityConfig.clientIP", json!({}));
        set(object, "spec.sessionAffinityConfig.clientIP.timeoutSeconds", 10_800);
    }
}

/// An update that does not mention what the server gave keeps it.
pub(super) fn keep_unsaid(new: &mut Value, old: &Value) {
    drop_of_another_type(new, old);
    if needs_address(new) && needs_address(old) {
        let unsaid = new["spec"]["clusterIP"].as_str().unwrap_or_default().is_empty();
        let listed = new["spec"]["clusterIPs"].as_array().is_some_and(|addresses| !addresses.is_empty());
        if unsaid && !listed {
            for field in ["clusterIP", "clusterIPs"] {
                copy(new, old, field);
            }
        } else if !unsaid && !listed {
            new["spec"]["clusterIPs"] = json!([new["spec"]["clusterIP"]]);
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if new["spec"].get(field).is_none_or(Value::is_null) {
                copy(new, old, field);
            }
        }
    }
    if needs_node_ports(new) && needs_node_ports(old) {
        let known = old["spec"]["ports"].clone();
        for port in each(new, "spec.ports") {
            let same =
                |other: &&Value| other["protocol"] == port["protocol"] && other["port"] == port["port"];
            let found = known.as_array().into_iter().flatten().find(same).cloned();
            if let Some(number) = found.and_then(|other| other.get("nodePort").cloned())
                && port["nodePort"].as_u64().unwrap_or(0) == 0
            {
                port["nodePort"] = number;
            }
        }
    }
}

/// Fields that only the old type had go, unless the client changed them.
fn drop_of_another_type(new: &mut Value, old: &Value) {
    let same = |field: &str| new["spec"].get(field) == old["spec"].get(field);
    let mut gone = Vec::new();
    if needs_address(old) && !needs_address(new) && same("clusterIPs") {
        gone.extend(["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"]);
    }
    let external = |service: &Value| matches!(kind(service), "NodePort" | "LoadBalancer");
    if external(old) && !external(new) && same("externalTrafficPolicy") {
        gone.push("externalTrafficPolicy");
    }
    if kind(old) == "LoadBalancer" && kind(new) != "LoadBalancer" && same("allocateLoadBalancerNodePorts") {
        gone.push("allocateLoadBalancerNodePorts");
    }
    if let Some(spec) = new["spec"].as_object_mut() {
        for field in gone {
            spec.remove(field);
        }
    }
    if external(old) && !external(new) {
        for port in each(new, "spec.ports") {
            if let Some(fields) = port.as_object_mut() {
                fields.remove("nodePort");
            }
        }
    }
}

fn copy(new: &mut Value, old: &Value, field: &str) {
    if let Some(value) = old["spec"].get(field) {
        new["spec"][field] = value.clone();
    }
}

pub(super) fn validate(object: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let spec = &object["spec"];
    if !TYPES.contains(&kind(object)) {
        errors.push(FieldError::not_supported("spec.type", kind(object), &TYPES));
    }
    let none = Vec::new();
    let ports = spec["ports"].as_array().unwrap_or(&none);
    if ports.is_empty() && !is_headless(object) && kind(object) != "ExternalName" {
        errors.push(FieldError::required("spec.ports", ""));
    }
    if kind(object) == "ExternalName" {
        let name = spec["externalName"].as_str().unwrap_or_default();
        if name.is_empty() {
            errors.push(FieldError::required("spec.externalName", ""));
        } else {
            let wrong = names::dns1123_subdomain(name.trim_end_matches('.'));
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid("spec.externalName", name, why)));
        }
    }
    let mut seen_names = BTreeSet::new();
    let mut seen_ports = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let path = |field: &str| format!("spec.ports[{index}].{field}");
        let name = port["name"].as_str().unwrap_or_default();
        if name.is_empty() {
            if ports.len() > 1 {
                errors.push(FieldError::required(&path("name"), ""));
            }
        } else {
            let wrong = names::dns1123_label(name);
            errors.extend(wrong.into_iter().map(|why| FieldError::invalid(&path("name"), name, why)));
            if !seen_names.insert(name) {
                errors.push(FieldError::duplicate(&path("name"), name));
            }
        }
        let number = port["port"].as_i64().unwrap_or(0);
        if let Some(why) = names::port_number(number) {
            errors.push(FieldError::invalid(&path("port"), number, why));
        }
        let protocol = port["protocol"].as_str().unwrap_or_default();
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            errors.push(FieldError::not_supported(&path("protocol"), protocol, &["SCTP", "TCP", "UDP"]));
        }
        match &port["targetPort"] {
            Value::Number(target) => {
                if let Some(why) = names::port_number(target.as_i64().unwrap_or(0)) {
                    errors.push(FieldError::invalid(&path("targetPort"), target.clone(), why));
                }
            }
            Value::String(target) => {
                let wrong = names::port_name(target);
                errors.extend(
                    wrong
                        .into_iter()
                        .map(|why| FieldError::invalid(&path("targetPort"), target.as_str(), why)),
                );
            }
            _ => {}
        }
        if !seen_ports.insert((protocol, number)) {
            errors.push(FieldError::duplicate(
                &format!("spec.ports[{index}]"),
                json!({"protocol": protocol, "port": number}),
            ));
        }
    }
    let affinity = spec["sessionAffinity"].as_str().unwrap_or_default();
    if !["ClientIP", "None"].contains(&affinity) {
        errors.push(FieldError::not_supported("spec.sessionAffinity", affinity, &["ClientIP", "None"]));
    }
    if let Some(old) = old
        && needs_address(old)
        && needs_address(object)
        && old["spec"]["clusterIP"] != spec["clusterIP"]
    {
        errors.push(FieldError::invalid(
            "spec.clusterIPs[0]",
            spec["clusterIPs"].clone(),
            "may not change once set",
        ));
    }
    errors
}
