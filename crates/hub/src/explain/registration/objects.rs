//! The objects of a registration. Pure.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use atoll_api::names::kind::explain;
use atoll_api::names::{label, managed_by};
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// The port of the Service, and its name there and in the slice.
const PORT: (u16, &str) = (443, "https");
/// Low: `services` are those of the core group wherever a client can choose.
const PRIORITIES: (u16, u16) = (100, 15);

/// Where the leader answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its address.
    pub(crate) address: SocketAddr,
    /// What its certificate is checked against, in PEM.
    pub(crate) ca: String,
}

impl Place {
    /// For the objects' names alone.
    pub(super) fn nowhere() -> Self {
        Self { address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0), ca: String::new() }
    }
}

/// The Service, its slice, and the `APIService`, in the order that they are written in.
pub(super) fn wanted(namespace: &str, place: &Place) -> [Value; 3] {
    let (name, address) = (explain::ATOLL_EXPLAIN, place.address);
    let (port, port_name) = PORT;
    let (group_priority, version_priority) = PRIORITIES;
    let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
    let service = json!({"apiVersion": "v1", "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": {label::EXPLAIN: namespace}},
        "spec": {"ipFamilies": [family], "ipFamilyPolicy": "SingleStack", "selector": null,
            "ports": [{"name": port_name, "port": port, "protocol": "TCP", "targetPort": address.port()}]}});
    let slice = json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
        "metadata": {"name": name, "namespace": namespace, "labels": {
            label::EXPLAIN: namespace, label::SERVICE_NAME: name, label::MANAGED_BY: managed_by::EXPLAIN}},
        "addressType": family,
        "endpoints": [{"addresses": [address.ip()], "conditions": {"ready": true}}],
        "ports": [{"name": port_name, "port": address.port(), "protocol": "TCP"}]});
    let (group, version) = (explain::GROUP, explain::VERSION);
    let registered = json!({"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
        "metadata": {"name": format!("{version}.{group}"), "labels": {label::EXPLAIN: namespace}},
        "spec": {"group": group, "version": version, "groupPriorityMinimum": group_priority, "versionPriority": version_priority,
            "caBundle": ByteString(place.ca.clone().into_bytes()), "insecureSkipTLSVerify": false,
            "service": {"namespace": namespace, "name": name, "port": port}}});
    [service, slice, registered]
}

/// Has an object all that is wanted? What else it has is its own business, but for lists. What is not said is null or false.
pub(super) fn covers(found: &Value, want: &Value) -> bool {
    match (found, want) {
        (Value::Object(found), Value::Object(want)) => want.iter().all(|(key, want)| match found.get(key) {
            Some(found) => covers(found, want),
            None => matches!(want, Value::Null | Value::Bool(false)),
        }),
        (Value::Array(found), Value::Array(want)) => {
            found.len() == want.len() && found.iter().zip(want).all(|(found, want)| covers(found, want))
        }
        _ => found == want,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slice_leads_to_the_leader_and_the_service_to_the_slice() {
        for (text, family, ip) in
            [("192.0.2.7:9443", "IPv4", "192.0.2.7"), ("[fd00::7]:9443", "IPv6", "fd00::7")]
        {
            let place = Place { address: text.parse().unwrap(), ca: "pem".to_owned() };
            let [service, slice, registered] = wanted("atoll-system", &place);
            assert_eq!(service["spec"]["ipFamilies"], json!([family]));
            assert_eq!(service["spec"]["selector"], Value::Null, "its slice is written by the leader alone");
            assert_eq!(service["spec"]["ports"][0]["name"], slice["ports"][0]["name"]);
            assert_eq!(slice["addressType"], family);
            assert_eq!(slice["endpoints"][0]["addresses"], json!([ip]));
            assert_eq!(slice["ports"][0]["port"], 9443);
            assert_eq!(slice["metadata"]["labels"][label::SERVICE_NAME], service["metadata"]["name"]);
            assert_eq!(registered["spec"]["service"]["name"], service["metadata"]["name"]);
            assert_eq!(registered["spec"]["caBundle"], "cGVt");
        }
    }

    #[test]
    fn only_what_is_wanted_is_compared() {
        let want = json!({"spec": {"ports": [{"port": 443}], "selector": null, "insecure": false}});
        for (found, same) in [
            (
                json!({"spec": {"ports": [{"port": 443, "nodePort": 1}], "type": "ClusterIP"}, "status": {}}),
                true,
            ),
            (json!({"spec": {"ports": [{"port": 444}]}}), false),
            (json!({"spec": {"ports": [{"port": 443}, {"port": 1}]}}), false),
            (json!({"spec": {}}), false),
            (json!({"spec": {"ports": [{"port": 443}], "selector": {"app": "x"}}}), false),
            (json!({"spec": {"ports": [{"port": 443}], "insecure": true}}), false),
            (json!({"spec": {"ports": [{"port": 443}], "insecure": false}}), true),
        ] {
            assert_eq!(covers(&found, &want), same, "{found}");
        }
    }
}
