//! Would NetworkPolicies drop a connection? By the rules of Kubernetes, for a peer in another cluster. Pure.

use std::collections::BTreeMap;
use std::net::IpAddr;

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::ResourceExt;
use kube::core::{Selector, SelectorExt};

use super::facts::ContainerPort;

/// Which side of a connection a policy is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Towards the pods.
    Ingress,
    /// From the pods.
    Egress,
}

/// A connection, as seen from the pods that policies select.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection<'a> {
    pub(crate) direction: Direction,
    /// The other end.
    pub(crate) peer: IpAddr,
    /// Whether the other end is in the same cluster: selectors may match it then.
    pub(crate) same_cluster: bool,
    /// The port of the destination.
    pub(crate) port: u16,
    /// Its protocol.
    pub(crate) protocol: &'a str,
}

/// The names of the policies that together drop the connection; empty if it passes.
pub(crate) fn dropping(
    policies: &[NetworkPolicy],
    labels: &BTreeMap<String, String>,
    ports: &[ContainerPort],
    connection: Connection<'_>,
) -> Vec<String> {
    let selecting: Vec<&NetworkPolicy> =
        policies.iter().filter(|policy| selects(policy, labels, connection.direction)).collect();
    if selecting.iter().any(|policy| allows(policy, ports, connection)) {
        return Vec::new();
    }
    selecting.into_iter().map(ResourceExt::name_any).collect()
}

fn selects(policy: &NetworkPolicy, labels: &BTreeMap<String, String>, direction: Direction) -> bool {
    let Some(spec) = &policy.spec else { return false };
    let about = match (&spec.policy_types, direction) {
        (Some(types), Direction::Ingress) => types.iter().any(|one| one == "Ingress"),
        (Some(types), Direction::Egress) => types.iter().any(|one| one == "Egress"),
        (None, Direction::Ingress) => true,
        (None, Direction::Egress) => spec.egress.is_some(),
    };
    about && matches(&spec.pod_selector.clone().unwrap_or_default(), labels)
}

/// Whether a selector matches; one that can't be read matches nothing.
pub(super) fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    Selector::try_from(selector.clone()).is_ok_and(|selector| selector.matches(labels))
}

fn allows(policy: &NetworkPolicy, ports: &[ContainerPort], connection: Connection<'_>) -> bool {
    let Some(spec) = &policy.spec else { return true };
    let rule = |peers: &Option<Vec<NetworkPolicyPeer>>, at: &Option<Vec<NetworkPolicyPort>>| {
        let peers = peers.as_deref().unwrap_or_default();
        let at = at.as_deref().unwrap_or_default();
        (peers.is_empty() || peers.iter().any(|peer| is_peer(peer, connection)))
            && (at.is_empty() || at.iter().any(|port| is_port(port, ports, connection)))
    };
    match connection.direction {
        Direction::Ingress => spec.ingress.iter().flatten().any(|one| rule(&one.from, &one.ports)),
        Direction::Egress => spec.egress.iter().flatten().any(|one| rule(&one.to, &one.ports)),
    }
}

fn is_peer(peer: &NetworkPolicyPeer, connection: Connection<'_>) -> bool {
    let Some(block) = &peer.ip_block else { return connection.same_cluster };
    let within = |text: &str| text.parse::<IpNet>().is_ok_and(|range| range.contains(&connection.peer));
    within(&block.cidr) && !block.except.iter().flatten().any(|one| within(one))
}

fn is_port(wanted: &NetworkPolicyPort, ports: &[ContainerPort], connection: Connection<'_>) -> bool {
    if wanted.protocol.as_deref().unwrap_or("TCP") != connection.protocol {
        return false;
    }
    let port = i32::from(connection.port);
    match (&wanted.port, wanted.end_port) {
        (None, _) => true,
        (Some(IntOrString::Int(first)), Some(last)) => (*first..=last).contains(&port),
        (Some(IntOrString::Int(only)), None) => *only == port,
        (Some(IntOrString::String(name)), _) => {
            ports.iter().any(|one| one.name.as_deref() == Some(name) && one.port == connection.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn dropped(spec: &[serde_json::Value], direction: Direction, same_cluster: bool) -> Vec<String> {
        let policies: Vec<NetworkPolicy> = spec
            .iter()
            .enumerate()
            .map(|(i, spec)| {
                serde_json::from_value(json!({"metadata": {"name": format!("p{i}")}, "spec": spec})).unwrap()
            })
            .collect();
        let labels = BTreeMap::from([("app".to_owned(), "web".to_owned())]);
        let ports = [ContainerPort { name: Some("http".to_owned()), port: 8080, protocol: "TCP".to_owned() }];
        let peer = "10.11.0.7".parse().unwrap();
        let connection = Connection { direction, peer, same_cluster, port: 8080, protocol: "TCP" };
        dropping(&policies, &labels, &ports, connection)
    }

    #[test]
    fn what_a_policy_drops_from_a_pod_of_another_cluster() {
        let all = json!({});
        let web = json!({"matchLabels": {"app": "web"}});
        let block = |cidr: &str, except: &[&str]| json!([{"ipBlock": {"cidr": cidr, "except": except}}]);
        let from = |peers: serde_json::Value| json!({"podSelector": web, "ingress": [{"from": peers}]});
        let at = |port: serde_json::Value| json!({"podSelector": web, "ingress": [{"ports": [port]}]});
        for (what, spec, want) in [
            ("deny all", json!({"podSelector": all, "policyTypes": ["Ingress"]}), true),
            ("of other pods", json!({"podSelector": {"matchLabels": {"app": "db"}}}), false),
            (
                "by expression",
                json!({"podSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]}}),
                true,
            ),
            ("egress only", json!({"podSelector": all, "policyTypes": ["Egress"]}), false),
            ("from anywhere", json!({"podSelector": web, "ingress": [{}]}), false),
            ("from pods", from(json!([{"podSelector": all}])), true),
            ("from namespaces", from(json!([{"namespaceSelector": all}])), true),
            ("from its range", from(block("10.11.0.0/16", &[])), false),
            ("from its range, without it", from(block("10.11.0.0/16", &["10.11.0.0/24"])), true),
            ("from another range", from(block("10.12.0.0/16", &[])), true),
            ("at the port", at(json!({"port": 8080})), false),
            ("at a range of ports", at(json!({"port": 8000, "endPort": 9000})), false),
            ("at another port", at(json!({"port": 80})), true),
            ("at another protocol", at(json!({"port": 8080, "protocol": "UDP"})), true),
            ("at a named port", at(json!({"port": "http"})), false),
            ("at another named port", at(json!({"port": "admin"})), true),
        ] {
            let got = dropped(&[spec], Direction::Ingress, false);
            assert_eq!(!got.is_empty(), want, "{what}: {got:?}");
        }
    }

    #[test]
    fn one_policy_that_allows_is_enough_and_all_that_do_not_are_named() {
        let deny = json!({"podSelector": {}, "policyTypes": ["Ingress"]});
        let allow = json!({"podSelector": {}, "ingress": [{}]});
        assert!(dropped(&[deny.clone(), allow], Direction::Ingress, false).is_empty());
        assert_eq!(dropped(&[deny.clone(), deny], Direction::Ingress, false), ["p0", "p1"]);
    }

    #[test]
    fn egress_is_judged_at_the_clients_side_and_selectors_may_match_within_a_cluster() {
        let egress = |to: serde_json::Value| json!({"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": to}]});
        let pods = egress(json!([{"podSelector": {}}]));
        assert_eq!(dropped(std::slice::from_ref(&pods), Direction::Egress, false), ["p0"]);
        assert!(dropped(std::slice::from_ref(&pods), Direction::Egress, true).is_empty());
        assert!(dropped(&[pods], Direction::Ingress, false).is_empty());
    }
}
