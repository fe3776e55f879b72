//! What an operator says of a member's networks, and what was pinned of them, read off its `Cluster`.

use std::collections::BTreeMap;
use std::net::IpAddr;

use atoll_api::names::annotation::network;
use atoll_api::types::Cluster;
use atoll_engine::network::{Networks, Ranges as Known};
use ipnet::IpNet;
use kube::ResourceExt;

use crate::membership::networks::{BadRange, Ranges};

/// The ranges in one annotation; none if it is absent.
pub(crate) fn ranges(of: &BTreeMap<String, String>, key: &str) -> Result<Ranges, BadRange> {
    of.get(key).map_or_else(|| Ok(Ranges::default()), |text| text.parse())
}

/// Where the member is: by the operator's word, by what was read when it joined, and by what was learnt when it was first heard.
pub(crate) fn networks(cluster: &Cluster) -> Result<Networks, BadRange> {
    let of = |key| Ok(ranges(cluster.annotations(), key)?.cidrs());
    let binding = cluster.annotations().contains_key(network::OBSERVED_NODES);
    let endpoint = cluster.spec.api_endpoint.as_deref().and_then(address);
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
        since: cluster.creation_timestamp().map_or(i64::MAX, |time| time.0.as_second()),
    })
}

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
