//! Services and EndpointSlices of the API into facts; what the sandbox does not carry (SCTP, IPv6 zones) is left out.

use super::table::{EndpointFact, ServiceFact, ServiceName, ServicePort, SliceFact};
use crate::controllers::slices::SERVICE_NAME;
use crate::network::Protocol;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointSlice};
use std::net::IpAddr;
use std::time::Duration;

/// How long a client stays with its endpoint by default: three hours.
const AFFINITY: i32 = 10_800;

pub(super) fn service_name(service: &Service) -> ServiceName {
    ServiceName {
        namespace: service.metadata.namespace.clone().unwrap_or_default(),
        name: service.metadata.name.clone().unwrap_or_default(),
    }
}

pub(super) fn service(service: &Service) -> ServiceFact {
    let Some(spec) = &service.spec else { return ServiceFact::default() };
    if spec.type_.as_deref() == Some("ExternalName") {
        return ServiceFact::default();
    }
    let addresses = |texts: Option<&Vec<String>>| -> Vec<IpAddr> {
        texts.into_iter().flatten().filter_map(|text| text.parse().ok()).collect()
    };
    let mut cluster_ips = addresses(spec.cluster_ips.as_ref());
    if cluster_ips.is_empty() {
        cluster_ips.extend(spec.cluster_ip.as_ref().and_then(|text| text.parse::<IpAddr>().ok()));
    }
    let ports = spec.ports.iter().flatten().filter_map(|port| {
        Some(ServicePort {
            name: port.name.clone().unwrap_or_default(),
            port: u16::try_from(port.port).ok()?,
            protocol: Protocol::parse(port.protocol.as_deref())?,
        })
    });
    let timeout = spec
        .session_affinity_config
        .as_ref()
        .and_then(|config| config.client_ip.as_ref()?.timeout_seconds)
        .unwrap_or(AFFINITY);
    let sticky = spec.session_affinity.as_deref() == Some("ClientIP");
    ServiceFact {
        cluster_ips,
        external_ips: addresses(spec.external_ips.as_ref()),
        ports: ports.collect(),
        affinity: sticky.then(|| Duration::from_secs(u64::try_from(timeout).unwrap_or_default())),
        local_only: spec.internal_traffic_policy.as_deref() == Some("Local"),
    }
}

/// Nothing for a slice that belongs to no Service.
pub(super) fn slice(slice: &EndpointSlice) -> Option<SliceFact> {
    let name = slice.metadata.labels.as_ref()?.get(SERVICE_NAME).filter(|name| !name.is_empty())?;
    let namespace = slice.metadata.namespace.clone().unwrap_or_default();
    let ports = slice.ports.iter().flatten().filter_map(|port| {
        Some(ServicePort {
            name: port.name.clone().unwrap_or_default(),
            port: u16::try_from(port.port?).ok()?,
            protocol: Protocol::parse(port.protocol.as_deref())?,
        })
    });
    Some(SliceFact {
        service: ServiceName { namespace, name: name.clone() },
        ports: ports.collect(),
        endpoints: slice.endpoints.iter().flatten().filter_map(endpoint).collect(),
    })
}

fn endpoint(endpoint: &Endpoint) -> Option<EndpointFact> {
    let conditions = endpoint.conditions.clone().unwrap_or_default();
    let ready = conditions.ready.unwrap_or(true);
    let hints = endpoint.hints.clone().unwrap_or_default();
    Some(EndpointFact {
        // The other addresses of an endpoint are the same endpoint.
        address: endpoint.addresses.first()?.parse().ok()?,
        ready,
        serving: conditions.serving.unwrap_or(ready),
        terminating: conditions.terminating.unwrap_or(false),
        node: endpoint.node_name.clone(),
        for_zones: hints.for_zones.into_iter().flatten().map(|zone| zone.name).collect(),
        for_nodes: hints.for_nodes.into_iter().flatten().map(|node| node.name).collect(),
    })
}
