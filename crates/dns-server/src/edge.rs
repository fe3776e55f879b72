//! Objects of the cluster become facts, checked: what DNS can't carry is left out.

use std::net::IpAddr;

use atoll_api::names::label;
use atoll_api::types::ServiceImport;
use atoll_api::types::service_import::ServiceImportType;
use atoll_dns::{Endpoint, Import, Name, Port, Protocol, Slice};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;

/// A ServiceImport.
pub(crate) fn import(object: &ServiceImport) -> Import {
    let spec = &object.spec;
    let ports = spec
        .ports
        .iter()
        .filter_map(|port| read_port(port.name.as_deref(), port.protocol.as_deref(), Some(port.port)));
    Import {
        headless: spec.type_ == ServiceImportType::Headless,
        ips: spec.ips.iter().filter_map(|ip| ip.parse().ok()).collect(),
        ports: ports.collect(),
        // All values there are (PreferClose, PreferSameZone, PreferSameNode) mean: the nearer the better.
        local_first: spec.traffic_distribution.is_some(),
    }
}

/// A Service, as an import of the cluster's own zone; none if it is another name for something outside.
pub(crate) fn service(object: &Service) -> Option<Import> {
    let spec = object.spec.as_ref()?;
    if spec.type_.as_deref() == Some("ExternalName") {
        return None;
    }
    let ports = spec.ports.iter().flatten();
    let ips = spec.cluster_ips.iter().flatten().chain(&spec.cluster_ip);
    let mut ips: Vec<IpAddr> = ips.filter_map(|ip| ip.parse().ok()).collect();
    ips.sort_unstable();
    ips.dedup();
    Some(Import {
        headless: spec.cluster_ip.as_deref() == Some("None"),
        ips,
        ports: ports
            .filter_map(|port| read_port(port.name.as_deref(), port.protocol.as_deref(), Some(port.port)))
            .collect(),
        local_first: false,
    })
}

/// An EndpointSlice of an import; none if it is not of one, or not of addresses.
pub(crate) fn slice(object: &EndpointSlice) -> Option<Slice> {
    let cluster = Name::parse(labelled(object, label::SOURCE_CLUSTER)?).ok()?;
    slice_of(labelled(object, label::MCS_SERVICE_NAME)?, cluster, object)
}

/// An EndpointSlice of a Service; none if it is not of one, or not of addresses.
pub(crate) fn service_slice(object: &EndpointSlice) -> Option<Slice> {
    slice_of(labelled(object, label::SERVICE_NAME)?, Name::default(), object)
}

fn labelled<'a>(object: &'a EndpointSlice, key: &str) -> Option<&'a String> {
    object.metadata.labels.as_ref()?.get(key)
}

fn slice_of(service: &str, cluster: Name, object: &EndpointSlice) -> Option<Slice> {
    if !["IPv4", "IPv6"].contains(&object.address_type.as_str()) {
        return None;
    }
    let ports = object.ports.iter().flatten();
    let ports = ports.filter_map(|port| read_port(port.name.as_deref(), port.protocol.as_deref(), port.port));
    // No condition counts as ready.
    let ready = object.endpoints.iter().flatten().filter(|endpoint| {
        endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
    });
    let endpoints = ready.flat_map(|endpoint| {
        let hostname = endpoint.hostname.as_deref().and_then(|name| Name::label(name).ok());
        let addresses = endpoint.addresses.iter().filter_map(|address| address.parse::<IpAddr>().ok());
        addresses.map(move |address| Endpoint { address, hostname: hostname.clone() })
    });
    Some(Slice {
        service: service.to_owned(),
        cluster,
        ports: ports.collect(),
        endpoints: endpoints.collect(),
    })
}

fn read_port(name: Option<&str>, protocol: Option<&str>, port: Option<i32>) -> Option<Port> {
    let protocol = match protocol {
        None | Some("TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(_) => return None,
    };
    let port = u16::try_from(port?).ok()?;
    Some(Port { name: name.unwrap_or_default().to_owned(), protocol, port })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn slice_with(change: impl FnOnce(&mut Value)) -> Option<Slice> {
        let mut value = json!({
            "metadata": {"labels": {label::MCS_SERVICE_NAME: "db", label::SOURCE_CLUSTER: "paris"}},
            "addressType": "IPv4",
            "ports": [{"name": "http", "port": 8080}, {"name": "all"}, {"port": 9, "protocol": "UDP"}],
            "endpoints": [{"addresses": ["10.11.0.7"], "hostname": "db-0"}],
        });
        change(&mut value);
        slice(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn a_slice_is_read() {
        let read = slice_with(|_| {}).unwrap();
        assert_eq!((read.service.as_str(), read.cluster.to_string().as_str()), ("db", "paris"));
        let ports: Vec<_> =
            read.ports.iter().map(|port| (port.name.as_str(), port.protocol, port.port)).collect();
        assert_eq!(
            ports,
            [("http", Protocol::Tcp, 8080), ("", Protocol::Udp, 9)],
            "a port without a number is none"
        );
        let [endpoint] = &read.endpoints[..] else { panic!("{read:?}") };
        assert_eq!(endpoint.hostname.as_ref().unwrap().to_string(), "db-0");
    }

    #[test]
    fn only_what_is_ready_counts_and_no_condition_is_ready() {
        for (conditions, want) in [
            (json!(null), 1),
            (json!({}), 1),
            (json!({"ready": true, "terminating": true}), 1),
            (json!({"ready": false, "serving": true}), 0),
        ] {
            let read = slice_with(|slice| slice["endpoints"][0]["conditions"] = conditions.clone()).unwrap();
            assert_eq!(read.endpoints.len(), want, "{conditions}");
        }
    }

    #[test]
    fn what_is_not_of_an_import_is_left_out() {
        assert_eq!(slice_with(|slice| slice["metadata"]["labels"] = json!({})), None);
        assert_eq!(slice_with(|slice| slice["addressType"] = json!("FQDN")), None);
        let odd = |slice: &mut Value| {
            slice["endpoints"] = json!([{"addresses": ["nowhere", "10.11.0.8"], "hostname": "not_a.label"}]);
        };
        let read = slice_with(odd).unwrap();
        assert_eq!(*read.endpoints, [Endpoint { address: "10.11.0.8".parse().unwrap(), hostname: None }]);
    }

    #[test]
    fn an_import_is_read() {
        let object = serde_json::from_value(json!({
            "apiVersion": "multicluster.x-k8s.io/v1beta1", "kind": "ServiceImport", "metadata": {"name": "db"},
            "spec": {"type": "Headless", "ports": [{"port": 80, "protocol": "QUIC"}, {"port": 81}],
                "ips": ["10.111.0.7", "fd00::7", ""], "trafficDistribution": "PreferClose"},
        }));
        let read = import(&object.unwrap());
        assert!(read.headless && read.local_first);
        assert_eq!((read.ips.len(), read.ports.len()), (2, 1));
    }
}
