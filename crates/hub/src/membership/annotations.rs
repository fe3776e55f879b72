//! What an operator says of a member's networks, and what was pinned of them: read off its Secret, where it counts, and off its
//! `Cluster`, where it is shown.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_api::names::annotation::network;
use atoll_api::types::Cluster;
use atoll_engine::network::{Networks, Ranges as Known};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;

use crate::membership::networks::{BadRange, Ranges};

/// The ranges in one annotation; none if it is absent.
pub(crate) fn ranges(of: &BTreeMap<String, String>, key: &str) -> Result<Ranges, BadRange> {
    of.get(key).map_or_else(|| Ok(Ranges::default()), |text| text.parse())
}

/// Where the member is, as the annotations of its `Cluster` say.
pub(crate) fn networks(cluster: &Cluster) -> Result<Networks, BadRange> {
    let endpoint = cluster.spec.api_endpoint.as_deref();
    let since = cluster.creation_timestamp().map_or(i64::MAX, |time| time.0.as_second());
    Ok(Networks { since, ..read(cluster.annotations(), endpoint)? })
}

/// Where the member is, as the annotations of its Secret say; none if they do not count yet.
pub(crate) fn bound(secret: &Secret, endpoint: Option<&str>) -> Option<Result<Networks, BadRange>> {
    secret.annotations().contains_key(network::BOUND).then(|| read(secret.annotations(), endpoint))
}

/// By the operator's word, by what was read when it joined, and by what was learnt when it was first heard.
fn read(annotations: &BTreeMap<String, String>, endpoint: Option<&str>) -> Result<Networks, BadRange> {
    let of = |key| Ok(ranges(annotations, key)?.cidrs());
    let binding = annotations.contains_key(network::OBSERVED_NODES);
    let endpoint = endpoint.and_then(address);
    let learnt = if binding {
        Known::default() // a join since has looked anew
    } else {
        Known { pods: of(network::LEARNT_PODS)?, nodes: of(network::LEARNT_NODES)?, ..Known::default() }
    };
    Ok(Networks {
        declared: Known {
            pods: of(network::PODS)?,
            nodes: of(network::NODES)?,
            services: of(network::SERVICES)?,
            api: Vec::new(),
        },
        endpoints: of(network::ENDPOINTS)?,
        observed: Known {
            pods: of(network::OBSERVED_PODS)?,
            nodes: of(network::OBSERVED_NODES)?,
            services: of(network::OBSERVED_SERVICES)?,
            api: endpoint.into_iter().map(IpNet::from).collect(),
        },
        binding,
        learnt,
        since: i64::MAX,
    })
}

/// The annotations of these that say where a member is.
pub(crate) fn of_networks(annotations: &BTreeMap<String, String>) -> BTreeMap<&'static str, String> {
    let known = ALL.into_iter().filter_map(|key| Some((key, annotations.get(key)?.clone())));
    known.collect()
}

const ALL: [&str; 9] = [
    network::PODS,
    network::NODES,
    network::SERVICES,
    network::ENDPOINTS,
    network::OBSERVED_PODS,
    network::OBSERVED_SERVICES,
    network::OBSERVED_NODES,
    network::LEARNT_PODS,
    network::LEARNT_NODES,
];

/// The address in a URL, if it is no name.
fn address(url: &str) -> Option<IpAddr> {
    let url = if url.contains("://") { url.to_owned() } else { format!("https://{url}") };
    let url: http::Uri = url.parse().ok()?;
    url.host()?.trim_matches(['[', ']']).parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cluster(annotations: &serde_json::Value) -> Cluster {
        serde_json::from_value(json!({
            "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": { "name": "paris", "annotations": annotations },
            "spec": { "syncMode": "Push", "apiEndpoint": "https://[fd00::7]:6443" },
        }))
        .unwrap()
    }

    #[test]
    fn what_was_read_at_join_binds_only_where_the_join_pinned_it() {
        let old = json!({ "atoll.dev/observed-pod-cidrs": "10.1.0.0/16", "atoll.dev/learnt-node-cidrs": "10.0.0.4/32" });
        let old = networks(&cluster(&old)).unwrap();
        assert!(!old.knows_pods() && old.observed.pods.len() == 1 && old.learnt.nodes.len() == 1, "{old:?}");
        assert_eq!(old.observed.api, ["fd00::7/128".parse().unwrap()]);
        let new = json!({
            "atoll.dev/observed-pod-cidrs": "10.1.0.0/16", "atoll.dev/observed-node-cidrs": "",
            "atoll.dev/learnt-node-cidrs": "10.0.0.4/32",
        });
        let new = networks(&cluster(&new)).unwrap();
        assert!(new.knows_pods() && new.learnt == Known::default(), "{new:?}");
        assert!(networks(&cluster(&json!({ "atoll.dev/node-cidrs": "10.0.0.4" }))).is_err());
    }

    #[test]
    fn the_address_of_an_api_is_read_off_its_url() {
        for (url, want) in [
            ("https://10.0.0.1:6443", Some("10.0.0.1")),
            ("10.0.0.1:6443", Some("10.0.0.1")),
            ("https://[::ffff:10.0.0.1]/base", Some("10.0.0.1")),
            ("https://hub.example.com:6443", None),
        ] {
            assert_eq!(address(url), want.map(|want| want.parse().unwrap()), "{url}");
        }
    }
}
