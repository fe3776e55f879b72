//! Reads the objects that a diagnosis needs. What a right is missing for stays unknown, and is told.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use atoll_api::names::{condition, label, managed_by};
use atoll_api::types::{ServiceExport, ServiceImport};
use k8s_openapi::api::core::v1::{Namespace, Node, Pod, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use super::facts::{ContainerPort, Dns, Endpoint, Facts, PodFact, ServiceFact, Source, Target, TargetPort};
use crate::commands::check::ways::{Trouble, Way, ask};

/// How many endpoints of one cluster are probed for each family and port.
const ENDPOINTS: usize = 3;
/// How many ports of a service are probed.
const PORTS: usize = 3;
/// How many objects of a kind are read.
const MOST: u32 = 500;

/// The exporting clusters, and what could not be read there.
pub(super) struct Sources {
    pub(super) sources: Vec<Source>,
    /// Pods of another service in each, to tell a missing route from a policy.
    pub(super) others: Vec<Endpoint>,
    pub(super) needs: BTreeSet<String>,
}

fn few() -> ListParams {
    ListParams::default().limit(MOST)
}

/// Optional facts: what may not be read is a need.
fn unless_forbidden<T>(
    answer: Result<T, Trouble>,
    what: &str,
    place: &str,
    needs: &mut BTreeSet<String>,
) -> Option<T> {
    if matches!(answer, Err(Trouble::Forbidden(_))) {
        needs.insert(format!("{what} of {place}"));
    }
    answer.ok()
}

/// Looks for the exports of a service in all clusters.
pub(super) async fn sources(ways: &[Way], namespace: &str, name: &str) -> Sources {
    let each = futures_util::future::join_all(
        ways.iter().map(async |way| Box::pin(source(way, namespace, name)).await),
    )
    .await;
    let mut all = Sources { sources: Vec::new(), others: Vec::new(), needs: BTreeSet::new() };
    for (source, others, needs) in each.into_iter().flatten() {
        all.sources.push(source);
        all.others.extend(others);
        all.needs.extend(needs);
    }
    all
}

async fn source(way: &Way, namespace: &str, name: &str) -> Option<(Source, Vec<Endpoint>, BTreeSet<String>)> {
    let client = way.any().ok()?;
    let export = ask(Api::<ServiceExport>::namespaced(client.clone(), namespace).get(name)).await.ok()?;
    let conditions = export.status.map(|status| status.conditions).unwrap_or_default();
    let invalid = conditions
        .into_iter()
        .find(|one| one.type_ == condition::export::VALID && one.status == "False")
        .map(|one| (one.reason, one.message));
    let (services, slices) = (
        Api::<Service>::namespaced(client.clone(), namespace),
        Api::<EndpointSlice>::namespaced(client.clone(), namespace),
    );
    let (pods, policies) = (
        Api::<Pod>::namespaced(client.clone(), namespace),
        Api::<NetworkPolicy>::namespaced(client.clone(), namespace),
    );
    let of_service = few().labels(&format!("{}={name}", label::SERVICE_NAME));
    let all = few();
    let (service, slices, pods, policies, others) = tokio::join!(
        ask(services.get(name)),
        ask(slices.list(&of_service)),
        ask(pods.list(&all)),
        ask(policies.list(&all)),
        others(client, &way.name),
    );
    let mut needs = BTreeSet::new();
    let place = format!("`{namespace}` of {}", way.name);
    let own = |slices: Vec<EndpointSlice>| {
        let others = |slice: &EndpointSlice| {
            slice.labels().get(label::MANAGED_BY).is_some_and(|by| managed_by::is_multicluster(by))
                || slice.labels().contains_key(label::SOURCE_CLUSTER)
        };
        let endpoints: Vec<_> = slices
            .iter()
            .filter(|slice| !others(slice))
            .flat_map(|slice| slice.endpoints.iter().flatten())
            .collect();
        let ready = endpoints.iter().filter(|one| is_ready(one)).count();
        (endpoints.len(), ready)
    };
    let source = Source {
        cluster: way.name.clone(),
        invalid,
        service: service.ok().map(service_fact),
        endpoints: slices.ok().map(|list| own(list.items)),
        pods: unless_forbidden(pods, "list pods in", &place, &mut needs)
            .map(|list| list.items.into_iter().map(pod_fact).collect()),
        policies: unless_forbidden(policies, "list networkpolicies", &place, &mut needs)
            .map(|list| list.items),
    };
    Some((source, others, needs))
}

fn is_ready(endpoint: &k8s_openapi::api::discovery::v1::Endpoint) -> bool {
    endpoint.conditions.as_ref().and_then(|conditions| conditions.ready) != Some(false)
}

fn service_fact(service: Service) -> ServiceFact {
    let spec = service.spec.unwrap_or_default();
    let port = |one: &k8s_openapi::api::core::v1::ServicePort| {
        let port = u16::try_from(one.port).ok()?;
        let target = match &one.target_port {
            Some(IntOrString::String(name)) => TargetPort::Name(name.clone()),
            Some(IntOrString::Int(number)) => TargetPort::Number(u16::try_from(*number).ok()?),
            None => TargetPort::Number(port),
        };
        Some(Target { port, target })
    };
    ServiceFact {
        selector: spec.selector.unwrap_or_default(),
        ports: spec.ports.iter().flatten().filter_map(port).collect(),
    }
}

fn pod_fact(pod: Pod) -> PodFact {
    let labels = pod.metadata.labels.unwrap_or_default();
    let ips = pod.status.and_then(|status| status.pod_ips).unwrap_or_default();
    let containers = pod.spec.map(|spec| spec.containers).unwrap_or_default();
    let ports = containers.into_iter().flat_map(|one| one.ports.unwrap_or_default()).filter_map(|one| {
        let protocol = one.protocol.unwrap_or_else(|| "TCP".to_owned());
        Some(ContainerPort { name: one.name, port: u16::try_from(one.container_port).ok()?, protocol })
    });
    PodFact {
        labels,
        addresses: ips.iter().filter_map(|one| one.ip.parse().ok()).collect(),
        ports: ports.collect(),
    }
}

/// The pods of the cluster's DNS, if they are in the pod network.
async fn others(client: &Client, cluster: &str) -> Vec<Endpoint> {
    const DNS: &str = "kube-dns";
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "kube-system");
    let of_dns = few().labels(&format!("{}={DNS}", label::SERVICE_NAME));
    let (nodes, all) = (Api::<Node>::all(client.clone()), few());
    let (slices, nodes) = tokio::join!(ask(slices.list(&of_dns)), ask(nodes.list(&all)));
    let (Ok(slices), Ok(nodes)) = (slices, nodes) else { return Vec::new() };
    let statuses = nodes.items.into_iter().filter_map(|node| node.status);
    let nodes: BTreeSet<IpAddr> = statuses
        .flat_map(|status| status.addresses.unwrap_or_default())
        .filter_map(|one| one.address.parse().ok())
        .collect();
    let found = endpoints(&slices.items, |_| Some(cluster.to_owned()));
    found.into_iter().filter(|one| !nodes.contains(&one.to.ip())).take(2).collect()
}

/// Ready endpoints at their TCP ports, a few of each cluster.
fn endpoints(slices: &[EndpointSlice], of: impl Fn(&EndpointSlice) -> Option<String>) -> Vec<Endpoint> {
    let mut all = BTreeSet::new();
    let mut count: BTreeMap<(String, bool, u16), usize> = BTreeMap::new();
    for slice in slices {
        let Some(cluster) = of(slice) else { continue };
        let tcp =
            slice.ports.iter().flatten().filter(|one| one.protocol.as_deref().unwrap_or("TCP") == "TCP");
        let ports: Vec<u16> = tcp.filter_map(|one| u16::try_from(one.port?).ok()).take(PORTS).collect();
        for endpoint in slice.endpoints.iter().flatten().filter(|one| is_ready(one)) {
            let Some(address) = endpoint.addresses.first().and_then(|one| one.parse::<IpAddr>().ok()) else {
                continue;
            };
            for port in &ports {
                let seen = count.entry((cluster.clone(), address.is_ipv4(), *port)).or_default();
                *seen += 1;
                if *seen <= ENDPOINTS {
                    all.insert(Endpoint { cluster: cluster.clone(), to: SocketAddr::new(address, *port) });
                }
            }
        }
    }
    all.into_iter().collect()
}

/// What a client cluster holds of the service; the ports of its ServiceImport beside it.
pub(super) async fn facts(
    way: &Way,
    dns: Dns,
    namespace: &str,
    name: &str,
    sources: Vec<Source>,
    needs: &mut BTreeSet<String>,
) -> Result<(Facts, Vec<u16>), String> {
    let client = way.any().map_err(str::to_owned)?;
    let imports = Api::<ServiceImport>::namespaced(client.clone(), namespace);
    let slices = Api::<EndpointSlice>::namespaced(client.clone(), namespace);
    let policies = Api::<NetworkPolicy>::namespaced(client.clone(), namespace);
    let namespaces = Api::<Namespace>::all(client.clone());
    let (of_service, all) = (few().labels(&format!("{}={name}", label::MCS_SERVICE_NAME)), few());
    let (import, found, slices, policies) = tokio::join!(
        ask(imports.get(name)),
        ask(namespaces.get(namespace)),
        ask(slices.list(&of_service)),
        ask(policies.list(&all)),
    );
    let known = |answer: Result<(), &Trouble>| match answer {
        Ok(()) => Some(true),
        Err(Trouble::Missing) => Some(false),
        Err(Trouble::Forbidden(_) | Trouble::Silent(_) | Trouble::Other(_)) => None,
    };
    let place = format!("`{namespace}` of {}", way.name);
    let spec = import.as_ref().ok().map(|import| import.spec.clone());
    let ports = spec.iter().flat_map(|spec| &spec.ports);
    let ports = ports
        .filter(|one| one.protocol.as_deref().unwrap_or("TCP") == "TCP")
        .filter_map(|one| u16::try_from(one.port).ok())
        .take(PORTS)
        .collect();
    let of = |slice: &EndpointSlice| slice.labels().get(label::SOURCE_CLUSTER).cloned();
    let facts = Facts {
        service: format!("{namespace}/{name}"),
        namespace: namespace.to_owned(),
        client: way.name.clone(),
        has_namespace: known(found.as_ref().map(drop)),
        imported: known(import.as_ref().map(drop)),
        addresses: spec.iter().flat_map(|spec| &spec.ips).filter_map(|ip| ip.parse().ok()).collect(),
        endpoints: endpoints(&slices.map(|list| list.items).unwrap_or_default(), of),
        sources,
        policies: unless_forbidden(policies, "list networkpolicies", &place, needs).map(|list| list.items),
        dns,
    };
    Ok((facts, ports))
}
