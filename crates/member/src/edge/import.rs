//! `ServiceImports`, both ways.

use std::net::IpAddr;

use atoll_api::names::{annotation, condition, is_reserved, kind, label};
use atoll_api::types::service_import::{
    ClientIPConfig, EndpointSliceObjects, ServiceImportType, ServicePort as ImportPort, SessionAffinityConfig,
};
use atoll_api::types::{ServiceImport, ServiceImportSpec};
use atoll_engine::facts::{Pairs, ServicePort};
use atoll_engine::names::{BadName, ClusterId, PortName, ServiceKey};
use atoll_engine::reason::text;

use super::endpoints::{app_protocol, port_number, protocol};
use super::export::{conditions, write_condition};
use super::service::{families, internal_traffic_policy, session_affinity, traffic_distribution};
use super::{Edge, Unreadable, meta};
use crate::core::event::{OwnImport, Seen};
use crate::core::object::{ImportBody, ImportStatusBody, Version};

/// Reads a ServiceImport: ours, or one of another owner.
pub(crate) fn read(import: &ServiceImport, edge: &Edge) -> Result<Seen, Unreadable> {
    let key = meta::key(&import.metadata)?;
    if !meta::is_ours(&import.metadata, &edge.hub) {
        return Ok(Seen::Import(key));
    }
    let version = meta::version(&import.metadata)?;
    let annotated = import.metadata.annotations.as_ref();
    let stale = annotated.and_then(|all| all.get(annotation::STALE_SINCE)).map(|text| text.as_str().into());
    let ips: Option<Vec<IpAddr>> = import.spec.ips.iter().map(|ip| ip.parse().ok()).collect();
    let ports: Result<Vec<_>, _> = import.spec.ports.iter().map(read_port).collect();
    let spec = &import.spec;
    let body = ports.ok().zip(ips.clone()).map(|(ports, ips)| ImportBody {
        key: key.clone(),
        labels: pairs(import.metadata.labels.as_ref(), &[]),
        annotations: pairs(annotated, &[annotation::DERIVED_SERVICE, annotation::STALE_SINCE]),
        headless: spec.type_ == ServiceImportType::Headless,
        ports,
        ips,
        families: families(Some(&spec.ip_families)),
        session_affinity: session_affinity(spec.session_affinity.as_deref()),
        client_ip_timeout: spec
            .session_affinity_config
            .as_ref()
            .and_then(|config| config.client_ip.as_ref()?.timeout_seconds)
            .and_then(|seconds| u32::try_from(seconds).ok()),
        internal_traffic_policy: internal_traffic_policy(spec.internal_traffic_policy.as_deref()),
        traffic_distribution: traffic_distribution(spec.traffic_distribution.as_deref()),
    });
    let status = import.status.clone().unwrap_or_default();
    let status = ImportStatusBody {
        clusters: status.clusters.iter().filter_map(|c| ClusterId::parse(c.cluster.as_str()).ok()).collect(),
        conditions: conditions(&status.conditions, &[condition::import::READY]),
        slices: status.endpoint_slice_objects.map(|slices| slices == EndpointSliceObjects::Present),
    };
    Ok(Seen::OwnImport(OwnImport { key, version, body, stale, ips: ips.unwrap_or_default(), status }))
}

/// Labels or annotations, but for those of Kubernetes and its tools, which we never write and leave to them.
fn pairs(map: Option<&std::collections::BTreeMap<String, String>>, ours: &[&str]) -> Pairs {
    map.into_iter()
        .flatten()
        .filter(|(key, _)| ours.contains(&key.as_str()) || !is_reserved(key))
        .map(|(key, value)| (key.as_str().into(), value.as_str().into()))
        .collect()
}

fn read_port(port: &ImportPort) -> Result<ServicePort, BadName> {
    Ok(ServicePort {
        name: PortName::parse(port.name.as_deref().unwrap_or_default())?,
        protocol: protocol(port.protocol.as_deref())?,
        port: port_number(port.port)?,
        app_protocol: app_protocol(port.app_protocol.as_deref())?,
    })
}

/// The ServiceImport to be written, but its status.
pub(crate) fn write(body: &ImportBody, hub: &str, onto: Option<&Version>) -> ServiceImport {
    let owned =
        |pairs: &Pairs| pairs.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let mut labels: std::collections::BTreeMap<String, String> = owned(&body.labels);
    labels.insert(label::HUB.to_owned(), hub.to_owned());
    let mut metadata = meta::write(&body.key.namespace, body.key.name.as_str(), labels, onto);
    metadata.annotations = Some(owned(&body.annotations));
    let ports = body.ports.iter().map(|port| ImportPort {
        name: Some(port.name.to_string()).filter(|name| !name.is_empty()),
        protocol: Some(port.protocol.as_str().to_owned()),
        app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
        port: i32::from(port.port),
    });
    let spec = ServiceImportSpec {
        ports: ports.collect(),
        ips: body.ips.iter().map(ToString::to_string).collect(),
        ip_families: body.families.iter().map(|family| family.as_str().to_owned()).collect(),
        type_: if body.headless { ServiceImportType::Headless } else { ServiceImportType::ClusterSetIP },
        session_affinity: Some(text::session_affinity(body.session_affinity).to_owned()),
        session_affinity_config: body.client_ip_timeout.map(|seconds| SessionAffinityConfig {
            client_ip: Some(ClientIPConfig { timeout_seconds: i32::try_from(seconds).ok() }),
        }),
        internal_traffic_policy: Some(text::internal_traffic_policy(body.internal_traffic_policy).to_owned()),
        traffic_distribution: body.traffic_distribution.map(|d| text::traffic_distribution(d).to_owned()),
    };
    ServiceImport { metadata, spec, status: None }
}

/// The status of the ServiceImport to be written, as an object for its subresource.
pub(crate) fn write_status(key: &ServiceKey, body: &ImportStatusBody, onto: &Version) -> serde_json::Value {
    let clusters: Vec<_> =
        body.clusters.iter().map(|id| serde_json::json!({"cluster": id.as_str()})).collect();
    let present = if body.slices == Some(true) { "Present" } else { "Absent" };
    serde_json::json!({
        "apiVersion": format!("{}/{}", kind::mcs::GROUP, kind::mcs::V1BETA1),
        "kind": kind::mcs::SERVICE_IMPORT,
        "metadata": {
            "name": key.name.as_str(),
            "namespace": key.namespace.as_str(),
            "uid": onto.uid.as_str(),
            "resourceVersion": onto.revision.to_string(),
        },
        "status": {
            "clusters": clusters,
            "conditions": body.conditions.iter().map(write_condition).collect::<Vec<_>>(),
            "endpointSliceObjects": present,
        },
    })
}
