//! Services and what is behind and before them.

use super::object::{NONE, Object, first_three, text};
use serde_json::Value;
use std::collections::BTreeSet;

pub(super) fn service(object: &Object<'_>) -> Vec<Value> {
    let address = object.items("spec.clusterIPs").first().and_then(Value::as_str).unwrap_or(NONE);
    let ports: Vec<String> = object.items("spec.ports").iter().map(port).collect();
    let ports = if ports.is_empty() { NONE.to_owned() } else { ports.join(",") };
    vec![
        object.name(),
        object.text("spec.type").into(),
        address.into(),
        outside(object).into(),
        ports.into(),
        object.age(),
        object.labels("spec.selector").into(),
    ]
}

fn port(port: &Value) -> String {
    let number = |field: &str| port.get(field).and_then(Value::as_i64).unwrap_or_default();
    match number("nodePort") {
        0 => format!("{}/{}", number("port"), text(port, "protocol")),
        node => format!("{}:{node}/{}", number("port"), text(port, "protocol")),
    }
}

fn outside(object: &Object<'_>) -> String {
    let external = object.items("spec.externalIPs").iter().filter_map(Value::as_str).map(str::to_owned);
    let external: Vec<String> = external.collect();
    match object.text("spec.type") {
        "ClusterIP" | "NodePort" if external.is_empty() => NONE.to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        "LoadBalancer" => {
            let mut all: Vec<String> = ingress_points(object).into_iter().collect();
            all.extend(external);
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ExternalName" => object.text("spec.externalName").to_owned(),
        _ => "<unknown>".to_owned(),
    }
}

fn ingress_points(object: &Object<'_>) -> BTreeSet<String> {
    let points = object.items("status.loadBalancer.ingress").iter();
    let named = points.map(|point| match text(point, "ip") {
        "" => text(point, "hostname").to_owned(),
        address => address.to_owned(),
    });
    named.filter(|name| !name.is_empty()).collect()
}

pub(super) fn endpoints(object: &Object<'_>) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in object.items("subsets") {
        let list = |field: &str| subset.get(field).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let addresses = || list("addresses").iter().map(|address| text(address, "ip"));
        if list("ports").is_empty() {
            all.extend(addresses().map(str::to_owned));
        }
        for port in list("ports") {
            let port = port.get("port").and_then(Value::as_i64).unwrap_or_default();
            all.extend(addresses().map(|address| match address.contains(':') {
                true => format!("[{address}]:{port}"),
                false => format!("{address}:{port}"),
            }));
        }
    }
    let none = object.items("subsets").is_empty();
    let shown = match all.len() {
        _ if none => NONE.to_owned(),
        0 => String::new(),
        _ => first_three(&all),
    };
    vec![object.name(), shown.into(), object.age()]
}

pub(super) fn endpoint_slice(object: &Object<'_>) -> Vec<Value> {
    let port = |port: &Value| match (port.get("port").and_then(Value::as_i64), port.get("name")) {
        (Some(number), _) => number.to_string(),
        (None, Some(Value::String(name))) => name.clone(),
        _ => "*".to_owned(),
    };
    let ports: Vec<String> = object.items("ports").iter().map(port).collect();
    let addresses =
        object.items("endpoints").iter().filter_map(|endpoint| endpoint.get("addresses")?.as_array());
    let addresses: Vec<String> = addresses.flatten().filter_map(Value::as_str).map(str::to_owned).collect();
    vec![
        object.name(),
        object.text("addressType").into(),
        first_three(&ports).into(),
        first_three(&addresses).into(),
        object.age(),
    ]
}

pub(super) fn ingress(object: &Object<'_>) -> Vec<Value> {
    let rules = object.items("spec.rules");
    let hosts: Vec<&str> =
        rules.iter().map(|rule| text(rule, "host")).filter(|host| !host.is_empty()).collect();
    let hosts = match hosts.len() {
        0 => "*".to_owned(),
        1..=3 => hosts.join(","),
        _ => format!("{} + {} more...", hosts[..3].join(","), rules.len().saturating_sub(3)),
    };
    let address: Vec<String> = ingress_points(object).into_iter().collect();
    let ports = if object.items("spec.tls").is_empty() { "80" } else { "80, 443" };
    vec![
        object.name(),
        object.text_or("spec.ingressClassName", NONE).into(),
        hosts.into(),
        address.join(",").into(),
        ports.into(),
        object.age(),
    ]
}

pub(super) fn ingress_class(object: &Object<'_>) -> Vec<Value> {
    let annotations = object.field("metadata.annotations").unwrap_or(&Value::Null);
    let default = text(annotations, "ingressclass.kubernetes.io/is-default-class") == "true";
    let name = format!("{}{}", object.text("metadata.name"), if default { " (default)" } else { "" });
    let parameters = match object.field("spec.parameters") {
        None => NONE.to_owned(),
        Some(parameters) => match text(parameters, "apiGroup") {
            "" => format!("{}/{}", text(parameters, "kind"), text(parameters, "name")),
            group => format!("{}.{group}/{}", text(parameters, "kind"), text(parameters, "name")),
        },
    };
    vec![name.into(), object.text("spec.controller").into(), parameters.into(), object.age()]
}

pub(super) fn network_policy(object: &Object<'_>) -> Vec<Value> {
    vec![object.name(), object.selector("spec.podSelector").into(), object.age()]
}
