//! Clustersets, drawn so that names, ports and times clash often. Also used by the tests of the hub's explanations.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use atoll_engine::facts::*;
use atoll_engine::names::ClusterId;
use atoll_engine::network::{Family, Networks, Ranges};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use super::fixture::*;

pub(crate) const CLUSTERS: [&str; 4] = ["a", "b", "eu", "eu-west"];
pub(crate) const SERVICES: [&str; 2] = ["shop/web", "shop/api"];
const SLICES: [&str; 3] = ["x", "west-x", "y"];

/// All that one cluster says: a change for each thing that it may have, so that one telling replaces another.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) id: ClusterId,
    pub(crate) facts: Vec<Change>,
    pub(crate) heard: Option<Capabilities>,
}

fn any_families() -> impl Strategy<Value = Vec<Family>> {
    select(vec![
        vec![Family::V4],
        vec![Family::V6],
        vec![Family::V4, Family::V6],
        vec![Family::V6, Family::V4],
    ])
}

fn any_ports() -> impl Strategy<Value = String> {
    let ports = subsequence(vec!["x:1", "y:2", "x:2", "y:1", "udp:1/udp", "tcp-3:4"], 0..4);
    let several = ports.prop_map(|ports| {
        // A Service has no two ports of one name, nor of one number.
        let mut kept: Vec<&str> = Vec::new();
        for port in ports {
            let (name, number) = port.split_once(':').unwrap();
            if kept.iter().all(|k| k.split_once(':').is_some_and(|(n, p)| n != name && p != number)) {
                kept.push(port);
            }
        }
        kept.join(" ")
    });
    prop_oneof![3 => several, 1 => Just(":3".to_owned())]
}

fn any_service() -> impl Strategy<Value = ServiceFact> {
    let kind = select(vec![
        ServiceType::ClusterIp,
        ServiceType::ClusterIp,
        ServiceType::NodePort,
        ServiceType::ExternalName,
    ]);
    let sticky = of(select(vec![10, 20]));
    let distribution =
        of(select(vec![TrafficDistribution::PreferSameZone, TrafficDistribution::PreferSameNode]));
    (kind, any::<bool>(), any_ports(), sticky, any::<bool>(), distribution, any_families()).prop_map(
        |(service_type, headless, text, client_ip_timeout, local, traffic_distribution, families)| {
            ServiceFact {
                service_type,
                headless,
                derived: false,
                ports: ports(&text),
                session_affinity: match client_ip_timeout {
                    Some(_) => SessionAffinity::ClientIp,
                    None => SessionAffinity::None,
                },
                client_ip_timeout,
                internal_traffic_policy: match local {
                    true => InternalTrafficPolicy::Local,
                    false => InternalTrafficPolicy::Cluster,
                },
                traffic_distribution,
                families,
            }
        },
    )
}

fn any_export() -> impl Strategy<Value = ExportFact> {
    let labels = subsequence(vec!["team", "k8s.io/x", "not a key"], 0..3);
    let liveness = of(select(vec![Liveness::Retain, Liveness::Probe, Liveness::Withdraw]));
    let locality = of(select(vec![Locality::LocalFirst, Locality::Anywhere]));
    (0..4_i64, labels, liveness, locality).prop_map(|(created, labels, liveness, locality)| ExportFact {
        labels: labels.into_iter().map(|key| (key.into(), "v".into())).collect(),
        liveness,
        locality,
        ..export(created)
    })
}

fn any_slice() -> impl Strategy<Value = SliceFact> {
    let four = vec!["10.0.0.1", "10.0.0.2", "127.0.0.1", "10.9.0.1"];
    let six = vec!["fd01::1", "::1", "fd09::1"];
    let addresses = prop_oneof![subsequence(four, 0..4), subsequence(six, 1..3)];
    (addresses, any_ports(), of(any::<bool>())).prop_map(|(addresses, text, ready)| {
        let mut slice = slice(&text, &addresses);
        for endpoint in &mut slice.endpoints {
            endpoint.conditions.ready = ready;
        }
        slice
    })
}

fn any_networks() -> impl Strategy<Value = Networks> {
    let cidr = |base: &str| ipnet::IpNet::new(base.parse().unwrap(), 16).unwrap();
    let pods = vec![cidr("10.0.0.0"), cidr("fd01::")];
    let endpoints = vec![cidr("127.0.0.0")];
    let nodes: Vec<ipnet::IpNet> = vec!["10.9.0.1/32".parse().unwrap()];
    let ranges = (any::<bool>(), any::<bool>()).prop_map(move |(pod, node)| Ranges {
        pods: if pod { pods.clone() } else { Vec::new() },
        nodes: if node { nodes.clone() } else { Vec::new() },
        ..Ranges::default()
    });
    let known = prop_oneof![2 => Just(Ranges::default()), 1 => ranges];
    (known.clone(), known.clone(), known, any::<bool>(), any::<bool>(), 0..3_i64).prop_map(
        move |(declared, observed, learnt, binding, sandbox, since)| Networks {
            declared,
            observed,
            binding,
            learnt,
            endpoints: if sandbox { endpoints.clone() } else { Vec::new() },
            since,
        },
    )
}

fn any_told(name: &'static str) -> impl Strategy<Value = Told> {
    let state = prop_oneof![
        6 => Just(Some(NamespaceState::Active)),
        1 => Just(Some(NamespaceState::Terminating)),
        1 => Just(None),
    ];
    let contact =
        prop_oneof![3 => Just(Contact::Alive), 1 => Just(Contact::Lost { since: Time::from_secs(900) })];
    let taken = proptest::collection::vec(prop::bool::weighted(0.2), SERVICES.len());
    let per_service = (
        of(any_service()),
        of(any_export()),
        proptest::collection::vec(of(any_slice()), SLICES.len()),
        prop::bool::weighted(0.8),
    );
    let services = proptest::collection::vec(per_service, SERVICES.len());
    let capabilities = (any_families(), 30..37_u16)
        .prop_map(|(families, kubernetes_minor)| Capabilities { families, kubernetes_minor });
    let heard = proptest::option::weighted(0.8, capabilities);
    (state, contact, taken, services, any_networks(), heard).prop_map(
        move |(state, contact, taken, services, networks, heard)| {
            let mut facts = vec![
                Change::Namespace(namespace("shop"), state),
                Change::Contact(contact),
                Change::Networks(Box::new(networks)),
            ];
            for (service, (fact, export, slices, followed)) in SERVICES.iter().zip(services) {
                facts.push(Change::Service(key(service), fact));
                facts.push(Change::Followed(key(service), followed));
                facts.push(Change::Export(key(service), export));
                for (name, slice) in SLICES.iter().zip(slices) {
                    facts.push(Change::Slice(key(service), slice_name(name), slice.map(Into::into)));
                }
            }
            for (service, taken) in ["shop/derived-web", "shop/derived-api"].iter().zip(taken) {
                facts.push(Change::Taken(key(service), taken));
            }
            Told { id: id(name), facts, heard }
        },
    )
}

pub(crate) fn any_set() -> impl Strategy<Value = Vec<Told>> {
    let clusters = CLUSTERS.map(any_told);
    let [a, b, c, d] = clusters;
    (a, b, c, d, 1..=CLUSTERS.len())
        .prop_map(|(a, b, c, d, n)| vec![a, b, c, d].into_iter().take(n).collect())
}

/// All clusters heard from, none lost, and everything retained.
pub(crate) fn any_healthy_set() -> impl Strategy<Value = Vec<Told>> {
    any_set().prop_map(|mut set| {
        for told in &mut set {
            told.heard.get_or_insert_with(capabilities);
            for fact in &mut told.facts {
                match fact {
                    Change::Contact(contact) => *contact = Contact::Alive,
                    Change::Export(_, Some(export)) => export.liveness = None,
                    Change::Joined
                    | Change::Left
                    | Change::Heard(_)
                    | Change::Networks(_)
                    | Change::Nodes(_) => {}
                    Change::Namespace(..) | Change::Service(..) | Change::Export(_, None) => {}
                    Change::Slice(..) | Change::Taken(..) | Change::Followed(..) => {}
                }
            }
        }
        set
    })
}

/// The changes of a set, one cluster after the other.
pub(crate) fn in_order(set: &[Told]) -> Vec<(ClusterId, Change)> {
    let mut changes = Vec::new();
    for told in set {
        changes.push((told.id.clone(), Change::Joined));
        changes.extend(told.facts.iter().map(|fact| (told.id.clone(), fact.clone())));
        changes.extend(told.heard.iter().map(|heard| (told.id.clone(), Change::Heard(heard.clone()))));
    }
    changes
}

/// The same changes in another order, but for each cluster's first and last word.
pub(crate) fn shuffled(set: &[Told], picks: &[Index]) -> Vec<(ClusterId, Change)> {
    let joins = set.iter().map(|told| (told.id.clone(), Change::Joined));
    let mut facts: Vec<_> =
        in_order(set).into_iter().filter(|(_, c)| !matches!(c, Change::Joined | Change::Heard(_))).collect();
    for (at, pick) in picks.iter().enumerate() {
        if !facts.is_empty() {
            let (at, other) = (at % facts.len(), pick.index(facts.len()));
            facts.swap(at, other);
        }
    }
    let heard = set.iter().rev().filter_map(|t| Some((t.id.clone(), Change::Heard(t.heard.clone()?))));
    joins.rev().chain(facts).chain(heard).collect()
}
