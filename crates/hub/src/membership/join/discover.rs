//! What a cluster tells of its networks while it joins, to be pinned. Asked with its administrator's rights, and shown to him.
//!
//! The pod network is in no field of Kubernetes: each node may have a part of it, and whoever set the cluster up knows the whole. What is
//! found in none of the usual places stays unknown.

use std::collections::BTreeSet;

use ipnet::IpNet;
use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod};
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};

use crate::membership::connect::code;
use crate::membership::networks::{Networks, Ranges, range};

/// Where the tools that set clusters up, and network plugins, keep the whole pod network: a `ConfigMap` of kube-system, one of its keys, and
/// the word before the ranges (none: the value is the ranges).
const PLACES: [(&str, &str, Option<&str>); 4] = [
    ("kubeadm-config", "ClusterConfiguration", Some("podSubnet:")),
    ("kube-proxy", "config.conf", Some("clusterCIDR:")),
    ("cilium-config", "cluster-pool-ipv4-cidr", None),
    ("cilium-config", "cluster-pool-ipv6-cidr", None),
];
/// So many pods are looked at, to see whether what was found can be true.
const PODS: u32 = 200;

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// What counts: declared, or else observed.
    pub(super) counted: Networks,
    /// What was observed, to be pinned.
    pub(super) observed: Networks,
    /// The address of a pod that is in none of the pod networks which the cluster names: then they are not believed.
    pub(super) stray: Option<String>,
}

/// The networks of a cluster.
pub(super) async fn networks(client: &Client, declared: &Networks) -> Result<Found, kube::Error> {
    let nodes = list::<Node>(client, &ListParams::default()).await?;
    let mut pods = of_nodes(&nodes);
    pods.0.extend(of_settings(client).await?.0);
    let addresses = addresses(&nodes);
    let stray = if pods.0.is_empty() {
        None
    } else {
        stray(&list::<Pod>(client, &ListParams::default().limit(PODS)).await?, &pods)
    };
    if stray.is_some() {
        pods = Ranges::default();
    }
    let observed = Networks { pods, services: of_services(client).await?, nodes: addresses };
    let choose = |declared: &Ranges, observed: &Ranges| {
        if declared.0.is_empty() { observed.clone() } else { declared.clone() }
    };
    let counted = Networks {
        pods: choose(&declared.pods, &observed.pods),
        services: choose(&declared.services, &observed.services),
        nodes: choose(&declared.nodes, &observed.nodes),
    };
    Ok(Found { counted, observed, stray })
}

/// All of a kind; nothing where it is not allowed or not known.
async fn list<K>(client: &Client, params: &ListParams) -> Result<Vec<K>, kube::Error>
where
    K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug + serde::de::DeserializeOwned,
{
    match Api::<K>::all(client.clone()).list(params).await {
        Ok(found) => Ok(found.items),
        // ServiceCIDRs: older than 1.33.
        Err(error) if matches!(code(&error), Some(403 | 404)) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn of_nodes(nodes: &[Node]) -> Ranges {
    let specs = nodes.iter().filter_map(|node| node.spec.as_ref());
    read(specs.flat_map(|spec| spec.pod_cidrs.iter().flatten().chain(&spec.pod_cidr)).map(String::as_str))
}

fn addresses(nodes: &[Node]) -> Ranges {
    let statuses = nodes.iter().filter_map(|node| node.status.as_ref());
    let addresses = statuses.flat_map(|status| status.addresses.iter().flatten());
    let addresses = addresses.filter(|one| ["InternalIP", "ExternalIP"].contains(&one.type_.as_str()));
    let parsed = addresses.filter_map(|one| one.address.parse::<std::net::IpAddr>().ok());
    Ranges(parsed.map(|address| IpNet::from(address.to_canonical())).collect())
}

async fn of_settings(client: &Client) -> Result<Ranges, kube::Error> {
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let mut found = Ranges::default();
    for (name, key, word) in PLACES {
        let map = match maps.get_opt(name).await {
            Ok(map) => map,
            Err(error) if code(&error) == Some(403) => None,
            Err(error) => return Err(error),
        };
        let text = map.and_then(|map| map.data?.remove(key)).unwrap_or_default();
        found.0.extend(in_text(&text, word).0);
    }
    found.0.extend(of_calico(client).await?.0);
    Ok(found)
}

/// Calico's pools, where there are any.
async fn of_calico(client: &Client) -> Result<Ranges, kube::Error> {
    let kind = GroupVersionKind::gvk("crd.projectcalico.org", "v1", "IPPool");
    let pools =
        Api::<DynamicObject>::all_with(client.clone(), &ApiResource::from_gvk_with_plural(&kind, "ippools"));
    let pools = match pools.list(&ListParams::default()).await {
        Ok(pools) => pools.items,
        Err(error) if matches!(code(&error), Some(403 | 404)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let used = pools.iter().filter(|pool| pool.data["spec"]["disabled"] != true);
    Ok(read(used.filter_map(|pool| pool.data["spec"]["cidr"].as_str())))
}

async fn of_services(client: &Client) -> Result<Ranges, kube::Error> {
    let found = list::<ServiceCIDR>(client, &ListParams::default()).await?;
    let cidrs: Vec<String> = found
        .into_iter()
        .filter_map(|one| one.spec)
        .flat_map(|spec| spec.cidrs.unwrap_or_default())
        .collect();
    Ok(read(cidrs.iter().map(String::as_str)))
}

/// The ranges in a text: all of it, or after a word in one of its lines.
fn in_text(text: &str, word: Option<&str>) -> Ranges {
    let parts = |text: &str| -> Vec<String> {
        let plain = text.replace(['"', '\''], " ");
        plain.split([' ', ',']).filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let found: Vec<String> = match word {
        None => parts(text),
        Some(word) => {
            text.lines().filter_map(|line| line.trim().strip_prefix(word)).flat_map(parts).collect()
        }
    };
    read(found.iter().map(String::as_str))
}

/// The address of a pod that is not where pods should be. Pods on the host network are on the nodes' addresses.
fn stray(pods: &[Pod], known: &Ranges) -> Option<String> {
    let own_network = |pod: &&Pod| pod.spec.as_ref().is_some_and(|spec| spec.host_network != Some(true));
    let statuses = pods.iter().filter(own_network).filter_map(|pod| pod.status.as_ref());
    let ips = statuses.flat_map(|status| {
        let all = status.pod_ips.iter().flatten().map(|one| one.ip.as_str());
        all.chain(status.pod_ip.as_deref())
    });
    let mut parsed = ips.filter_map(|text| text.parse::<std::net::IpAddr>().ok());
    parsed
        .find(|address| !known.0.iter().any(|range| range.contains(address)))
        .map(|address| address.to_string())
}

fn read<'a>(texts: impl Iterator<Item = &'a str>) -> Ranges {
    Ranges(texts.filter_map(|text| range(text).ok()).collect::<BTreeSet<_>>())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_pod_network_is_read_where_tools_keep_it() {
        let kubeadm = "apiServer: {}\nnetworking:\n  dnsDomain: cluster.local\n  podSubnet: 10.244.0.0/16,fd00:10::/56\n  serviceSubnet: 10.96.0.0/16\n";
        assert_eq!(in_text(kubeadm, Some("podSubnet:")).to_string(), "10.244.0.0/16,fd00:10::/56");
        assert_eq!(
            in_text("clusterCIDR: \"10.42.0.0/16\"", Some("clusterCIDR:")).to_string(),
            "10.42.0.0/16"
        );
        assert_eq!(in_text("clusterCIDR: \"\"", Some("clusterCIDR:")).to_string(), "");
        assert_eq!(in_text("10.0.0.0/8 10.1.0.0/16", None).to_string(), "10.0.0.0/8,10.1.0.0/16");
    }

    #[test]
    fn networks_in_which_the_pods_are_not_are_not_believed() {
        let pod = |ip: &str, host: bool| -> Pod {
            serde_json::from_value(json!({"metadata": {}, "spec": {"containers": [], "hostNetwork": host}, "status": {"podIP": ip}}))
                .unwrap()
        };
        let known: Ranges = "10.244.0.0/24".parse().unwrap();
        let fine = [pod("10.244.0.7", false), pod("192.168.0.4", true)];
        assert_eq!(stray(&fine, &known), None);
        assert_eq!(stray(&[pod("10.244.9.7", false)], &known), Some("10.244.9.7".to_owned()));
    }
}
