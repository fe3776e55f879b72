//! What a cluster's API tells of its networks. Much stays unknown: a pod network that no node names can't be seen.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::api::networking::v1::ServiceCIDR;
use kube::api::ListParams;
use kube::{Api, Client};

use crate::membership::connect::code;
use crate::membership::networks::{Networks, Ranges, range};

/// The networks that count (declared, or else observed), and those observed.
pub(super) async fn networks(
    client: &Client,
    declared: &Networks,
) -> Result<(Networks, Networks), kube::Error> {
    let observed = Networks { pods: of_nodes(client).await?, services: of_services(client).await? };
    let choose = |declared: &Ranges, observed: &Ranges| {
        if declared.0.is_empty() { observed.clone() } else { declared.clone() }
    };
    let counted = Networks {
        pods: choose(&declared.pods, &observed.pods),
        services: choose(&declared.services, &observed.services),
    };
    Ok((counted, observed))
}

async fn of_nodes(client: &Client) -> Result<Ranges, kube::Error> {
    let nodes = match Api::<Node>::all(client.clone()).list(&ListParams::default()).await {
        Ok(nodes) => nodes.items,
        Err(error) if code(&error) == Some(403) => Vec::new(),
        Err(error) => return Err(error),
    };
    let specs = nodes.into_iter().filter_map(|node| node.spec);
    Ok(read(specs.flat_map(|spec| spec.pod_cidrs.unwrap_or_default().into_iter().chain(spec.pod_cidr))))
}

async fn of_services(client: &Client) -> Result<Ranges, kube::Error> {
    let found = match Api::<ServiceCIDR>::all(client.clone()).list(&ListParams::default()).await {
        Ok(found) => found.items,
        // Older than 1.33, or not allowed: then it stays unknown.
        Err(error) if matches!(code(&error), Some(403 | 404)) => Vec::new(),
        Err(error) => return Err(error),
    };
    Ok(read(found.into_iter().filter_map(|one| one.spec).flat_map(|spec| spec.cidrs.unwrap_or_default())))
}

fn read(texts: impl Iterator<Item = String>) -> Ranges {
    Ranges(texts.filter_map(|text| range(&text).ok()).collect::<BTreeSet<_>>())
}
