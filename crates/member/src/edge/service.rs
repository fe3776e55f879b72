//! Services, both ways.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_api::names::{label, prefix};
use atoll_engine::facts::{
    InternalTrafficPolicy, ServiceFact, ServicePort, ServiceType, SessionAffinity, TrafficDistribution,
};
use atoll_engine::limits::PORTS;
use atoll_engine::names::{BadName, PortName, ServiceKey, ServiceName};
use atoll_engine::network::Family;
use atoll_engine::reason::text;
use atoll_link::{Field, Problem};
use k8s_openapi::api::core::v1::{self as core, Service, ServiceSpec};

use super::endpoints::{self, app_protocol, port_number, protocol};
use super::{Edge, Unreadable, meta};
use crate::core::event::{OwnService, Seen};
use crate::core::object::{Kind, ServiceBody, Version};

/// Reads a Service: a derived one of ours, or any other.
pub(crate) fn read(service: &Service, edge: &Edge, left_out: &mut Vec<Problem>) -> Result<Seen, Unreadable> {
    let key = meta::key(&service.metadata)?;
    let none = ServiceSpec::default();
    let spec = service.spec.as_ref().unwrap_or(&none);
    if meta::is_ours(&service.metadata, &edge.hub) {
        return own(service, spec, key, edge).map(Seen::OwnService);
    }
    let mut ports = Vec::new();
    for port in spec.ports.iter().flatten().take(PORTS as usize + 1) {
        match read_port(port, edge) {
            Ok(port) => ports.push(port),
            Err(why) => left_out.push(Problem::Unrepresentable {
                object: meta::object(Kind::Service, &service.metadata),
                field: Field::Port,
                why: why.to_string(),
            }),
        }
    }
    let labels = service.metadata.labels.iter().flatten();
    let derived =
        labels.into_iter().any(|(key, _)| [label::HUB, label::MCS_SERVICE_NAME].contains(&key.as_str()));
    let fact = ServiceFact {
        service_type: match spec.type_.as_deref() {
            Some("NodePort") => ServiceType::NodePort,
            Some("LoadBalancer") => ServiceType::LoadBalancer,
            Some("ExternalName") => ServiceType::ExternalName,
            Some(_) | None => ServiceType::ClusterIp,
        },
        headless: is_headless(spec),
        derived,
        ports,
        session_affinity: session_affinity(spec.session_affinity.as_deref()),
        client_ip_timeout: client_ip_timeout(spec),
        internal_traffic_policy: internal_traffic_policy(spec.internal_traffic_policy.as_deref()),
        traffic_distribution: traffic_distribution(spec.traffic_distribution.as_deref()),
        families: families(spec.ip_families.as_deref()),
    };
    Ok(Seen::Service(key, fact))
}

fn own(
    service: &Service,
    spec: &ServiceSpec,
    name: ServiceKey,
    edge: &Edge,
) -> Result<OwnService, Unreadable> {
    let version = meta::version(&service.metadata)?;
    let of =
        meta::label(&service.metadata, label::MCS_SERVICE_NAME).and_then(|of| ServiceName::parse(of).ok());
    // The label was taken off: the name tells, unless it is a hashed one.
    let unlabelled =
        || name.name.as_str().strip_prefix(prefix::DERIVED).and_then(|of| ServiceName::parse(of).ok());
    let labelled = of.is_some();
    let of = ServiceKey {
        namespace: name.namespace.clone(),
        name: of.or_else(unlabelled).unwrap_or_else(|| name.name.clone()),
    };
    let ports = spec.ports.iter().flatten().map(|port| read_port(port, edge)).collect::<Result<_, _>>();
    let (headless, families) = (is_headless(spec), families(spec.ip_families.as_deref()));
    let extras = spec.selector.as_ref().is_some_and(|selector| !selector.is_empty())
        || spec.type_.as_deref().is_some_and(|kind| kind != "ClusterIP")
        || spec.external_ips.as_ref().is_some_and(|ips| !ips.is_empty());
    let body = ports.ok().filter(|_| labelled).map(|ports| ServiceBody {
        name: name.name.clone(),
        of: of.clone(),
        headless,
        ports,
        session_affinity: session_affinity(spec.session_affinity.as_deref()),
        client_ip_timeout: client_ip_timeout(spec),
        internal_traffic_policy: internal_traffic_policy(spec.internal_traffic_policy.as_deref()),
        traffic_distribution: traffic_distribution(spec.traffic_distribution.as_deref()),
        families: families.clone(),
        extras,
    });
    let ips = spec.cluster_ips.iter().flatten().filter_map(|ip| ip.parse().ok()).collect();
    Ok(OwnService { name, of, version, body, headless, families, ips })
}

fn read_port(port: &core::ServicePort, edge: &Edge) -> Result<ServicePort, BadName> {
    Ok(ServicePort {
        name: PortName::parse(edge.interned.get(port.name.as_deref().unwrap_or_default()))?,
        protocol: protocol(port.protocol.as_deref())?,
        port: port_number(port.port)?,
        app_protocol: app_protocol(port.app_protocol.as_deref())?,
    })
}

fn is_headless(spec: &ServiceSpec) -> bool {
    spec.cluster_ip.as_deref() == Some("None")
}

fn client_ip_timeout(spec: &ServiceSpec) -> Option<u32> {
    let config = spec.session_affinity_config.as_ref()?.client_ip.as_ref()?;
    config.timeout_seconds.and_then(|seconds| u32::try_from(seconds).ok())
}

/// As Kubernetes spells it; what it does not know is its default.
pub(crate) fn session_affinity(text: Option<&str>) -> SessionAffinity {
    if text == Some("ClientIP") { SessionAffinity::ClientIp } else { SessionAffinity::None }
}

/// As Kubernetes spells it; what it does not know is its default.
pub(crate) fn internal_traffic_policy(text: Option<&str>) -> InternalTrafficPolicy {
    if text == Some("Local") { InternalTrafficPolicy::Local } else { InternalTrafficPolicy::Cluster }
}

/// As Kubernetes spells it; what we do not know is left out.
pub(crate) fn traffic_distribution(value: Option<&str>) -> Option<TrafficDistribution> {
    use TrafficDistribution::{PreferClose, PreferSameNode, PreferSameZone};
    let known = [PreferClose, PreferSameZone, PreferSameNode];
    known.into_iter().find(|known| Some(text::traffic_distribution(*known)) == value)
}

/// `ipFamilies`, without what is none.
pub(crate) fn families(texts: Option<&[String]>) -> Vec<Family> {
    texts
        .unwrap_or_default()
        .iter()
        .filter_map(|text| endpoints::family(text))
        .take(Family::BOTH.len())
        .collect()
}

/// The derived Service to be written. `ips`: the addresses that it asks for, or keeps.
pub(crate) fn write(body: &ServiceBody, ips: &[IpAddr], hub: &str, onto: Option<&Version>) -> Service {
    let labels = BTreeMap::from([
        (label::HUB.to_owned(), hub.to_owned()),
        (label::MCS_SERVICE_NAME.to_owned(), body.of.name.to_string()),
    ]);
    let ports: Vec<_> = body
        .ports
        .iter()
        .map(|port| core::ServicePort {
            name: Some(port.name.to_string()).filter(|name| !name.is_empty()),
            protocol: Some(port.protocol.as_str().to_owned()),
            port: i32::from(port.port),
            app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
            ..core::ServicePort::default()
        })
        .collect();
    let cluster_ips = match (body.headless, ips) {
        (true, _) => Some(vec!["None".to_owned()]),
        (false, []) => None,
        (false, ips) => Some(ips.iter().map(ToString::to_string).collect()),
    };
    let policy = if body.families.len() > 1 { "PreferDualStack" } else { "SingleStack" };
    let timeout = body.client_ip_timeout.map(|seconds| core::SessionAffinityConfig {
        client_ip: Some(core::ClientIPConfig { timeout_seconds: i32::try_from(seconds).ok() }),
    });
    Service {
        metadata: meta::write(&body.of.namespace, body.name.as_str(), labels, onto),
        spec: Some(ServiceSpec {
            type_: Some("ClusterIP".to_owned()),
            cluster_ip: cluster_ips.as_ref().and_then(|ips: &Vec<String>| ips.first().cloned()),
            cluster_ips,
            ports: Some(ports),
            session_affinity: Some(text::session_affinity(body.session_affinity).to_owned()),
            session_affinity_config: timeout,
            internal_traffic_policy: Some(
                text::internal_traffic_policy(body.internal_traffic_policy).to_owned(),
            ),
            traffic_distribution: body.traffic_distribution.map(|d| text::traffic_distribution(d).to_owned()),
            ip_families: Some(body.families.iter().map(|family| family.as_str().to_owned()).collect()),
            ip_family_policy: Some(policy.to_owned()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}
