//! Pods as endpoints, grouped by the ports that they have: pods of one Service may name different numbers.

use crate::controllers::facts::{Node, Pod, Service, ServicePort, TargetPort};
use serde_json::{Value, json};
use std::net::IpAddr;

/// Endpoints with the same ports.
#[derive(Debug, Default)]
pub(super) struct Group {
    pub(super) ports: Vec<Value>,
    pub(super) endpoints: Vec<Value>,
}

/// The endpoints that a Service should have in one address family.
pub(super) fn groups<'a>(
    service: &Service,
    pods: &[&Pod],
    family: &str,
    node: impl Fn(&str) -> Option<&'a Node>,
) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for pod in pods.iter().filter(|pod| !pod.is_over() && !pod.addresses.is_empty()) {
        let place = node(&pod.node);
        // A pod whose node is gone does not answer, unless its Service wants it published whatever it is.
        let known = place.is_some() || service.publish_unready;
        let ports = ports(service, pod);
        let at = groups.iter().position(|group| same_ports(&group.ports, &ports)).unwrap_or_else(|| {
            groups.push(Group { ports, endpoints: Vec::new() });
            groups.len() - 1
        });
        groups[at].endpoints.extend(endpoint(service, pod, family, place).filter(|_| known));
    }
    groups
}

fn endpoint(service: &Service, pod: &Pod, family: &str, node: Option<&Node>) -> Option<Value> {
    let of_family = |address: &&IpAddr| address.is_ipv6() == (family == "IPv6");
    let addresses: Vec<String> = pod.addresses.iter().filter(of_family).map(ToString::to_string).collect();
    if addresses.is_empty() {
        return None;
    }
    let (serving, terminating) = (pod.ready.is_some(), pod.meta.going);
    let ready = service.publish_unready || (serving && !terminating);
    let mut endpoint = json!({
        "addresses": addresses,
        "conditions": {"ready": ready, "serving": serving, "terminating": terminating},
        "targetRef": {"kind": "Pod", "namespace": pod.meta.namespace, "name": pod.meta.name, "uid": pod.meta.uid},
    });
    if !pod.node.is_empty() {
        endpoint["nodeName"] = pod.node.as_str().into();
    }
    if let Some(zone) = node.and_then(Node::zone) {
        endpoint["zone"] = zone.as_str().into();
    }
    if !pod.hostname.is_empty() && pod.subdomain == service.meta.name {
        endpoint["hostname"] = pod.hostname.as_str().into();
    }
    Some(endpoint)
}

fn ports(service: &Service, pod: &Pod) -> Vec<Value> {
    let port = |port: &ServicePort| {
        let number = match &port.target {
            TargetPort::Number(number) => *number,
            TargetPort::Named(name) => {
                pod.ports.iter().find(|own| own.name == *name && own.protocol == port.protocol)?.port
            }
        };
        let mut said = json!({"name": port.name, "port": number, "protocol": port.protocol});
        if let Some(application) = &port.application {
            said["appProtocol"] = application.as_str().into();
        }
        Some(said)
    };
    service.ports.iter().filter_map(port).collect()
}

/// Are these the same ports, in whatever order?
pub(super) fn same_ports(one: &[Value], other: &[Value]) -> bool {
    one.len() == other.len() && one.iter().all(|port| other.contains(port))
}

/// What an endpoint is known by when its conditions change.
pub(super) fn identity(endpoint: &Value) -> (&Value, &Value, &Value) {
    (&endpoint["addresses"], &endpoint["hostname"], &endpoint["targetRef"]["name"])
}
