//! What holds for every clusterset: small ones, drawn so that names, ports and times clash often.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::check::check;
use atoll_engine::engine::Engine;
use atoll_engine::facts::*;
use atoll_engine::memory::Memory;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::network::{Family, Networks, Ranges};
use atoll_engine::plan::{ImportPlan, Plan, SlicesFrom, Touched};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use crate::NOW;
use crate::fixture::*;

pub(crate) const CLUSTERS: [&str; 4] = ["a", "b", "eu", "eu-west"];
pub(crate) const SERVICES: [&str; 2] = ["shop/web", "shop/api"];
const SLICES: [&str; 3] = ["x", "west-x", "y"];
pub(crate) const LATER: Time = Time::from_secs(2000);

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
fn any_healthy_set() -> impl Strategy<Value = Vec<Told>> {
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

pub(crate) fn engine_of(memory: &Memory, changes: Vec<(ClusterId, Change)>) -> Engine {
    let mut engine = Engine::new(Settings::default(), memory.clone());
    for (cluster, change) in changes {
        let _ = engine.apply(&cluster, change);
    }
    engine
}

/// Plans every service, checks each plan, and gives them with the memory that they leave.
pub(crate) fn settle(engine: &mut Engine, now: Time) -> (BTreeMap<ServiceKey, Arc<Plan>>, Memory) {
    let plans: BTreeMap<_, _> = SERVICES
        .iter()
        .map(|service| {
            let outcome = engine.plan(&key(service), now);
            assert_eq!(check(engine.world(), &outcome.plan), []);
            (key(service), outcome.plan)
        })
        .collect();
    (plans, engine.world().memory.clone())
}

fn memory_of(set: &[Told]) -> Memory {
    settle(&mut engine_of(&Memory::new(), in_order(set)), NOW).1
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_plan_does_not_depend_on_the_order_of_events(
        before in any_set(),
        set in any_set(),
        picks in proptest::collection::vec(any::<Index>(), 80),
    ) {
        let memory = memory_of(&before);
        let one = settle(&mut engine_of(&memory, in_order(&set)), LATER);
        let other = settle(&mut engine_of(&memory, shuffled(&set, &picks)), LATER);
        prop_assert_eq!(one, other);
    }

    #[test]
    fn planning_twice_changes_nothing_nor_does_a_restart(before in any_set(), set in any_set()) {
        let mut engine = engine_of(&memory_of(&before), in_order(&set));
        let first = settle(&mut engine, LATER);
        for service in SERVICES {
            let again = engine.plan(&key(service), Time::from_secs(3000));
            prop_assert_eq!(again.memory, None);
            if engine.last_plan(&key(service)).is_some() {
                prop_assert_eq!(again.touched, Touched::Nothing);
            }
            prop_assert_eq!(&again.plan, &first.0[&key(service)]);
        }
        let members: Vec<_> = engine.world().clusters.keys().map(|id| (id.clone(), Change::Joined)).collect();
        let restarted = engine_of(&first.1, members.into_iter().chain(in_order(&set)).collect());
        prop_assert_eq!(settle(&mut { restarted }, Time::from_secs(4000)), first);
    }

    #[test]
    fn a_plan_made_step_by_step_is_the_plan_made_at_once(before in any_set(), mut set in any_set()) {
        let mut engine = engine_of(&Memory::new(), in_order(&before));
        settle(&mut engine, NOW);
        for told in &mut set {
            let heard_before = before.iter().find(|b| b.id == told.id).and_then(|b| b.heard.clone());
            told.heard = told.heard.take().or(heard_before);
        }
        for (cluster, change) in in_order(&set) {
            let _ = engine.apply(&cluster, change);
            for outcome in engine.plan_dirty(LATER) {
                prop_assert_eq!(check(engine.world(), &outcome.plan), []);
            }
        }
        for told in &before {
            if set.iter().all(|other| other.id != told.id) {
                let _ = engine.apply(&told.id, Change::Left);
            }
        }
        engine.plan_dirty(LATER);
        let kept: BTreeMap<_, _> =
            SERVICES.iter().filter_map(|s| Some((key(s), engine.last_plan(&key(s))?.clone()))).collect();
        let stepwise = settle(&mut engine, LATER);
        for (key, plan) in kept {
            prop_assert_eq!(&plan, &stepwise.0[&key]);
        }
        prop_assert_eq!(settle(&mut engine_of(&stepwise.1, in_order(&set)), LATER), stepwise);
    }

    #[test]
    fn removing_a_cluster_equals_never_having_had_it(set in any_set(), which in any::<Index>()) {
        let gone = which.index(set.len());
        let mut rest = set.clone();
        let gone = rest.remove(gone).id;
        // Never planned: nothing is remembered, and nothing remains.
        let mut left = engine_of(&Memory::new(), in_order(&set));
        let _ = left.apply(&gone, Change::Left);
        let never = settle(&mut engine_of(&Memory::new(), in_order(&rest)), NOW);
        prop_assert_eq!(settle(&mut left, NOW), never);
        // Planned: what is remembered is all that remains, and it does not name the cluster.
        let mut left = engine_of(&Memory::new(), in_order(&set));
        settle(&mut left, NOW);
        let _ = left.apply(&gone, Change::Left);
        let (plans, memory) = settle(&mut left, LATER);
        for service in memory.values() {
            prop_assert!(!service.exports.contains_key(&gone) && !service.hashed_in.contains(&gone));
            prop_assert!(service.incumbent.as_ref().is_none_or(|incumbent| incumbent.cluster != gone));
        }
        prop_assert_eq!(settle(&mut engine_of(&memory, in_order(&rest)), LATER), (plans, memory));
    }

    #[test]
    fn a_lost_source_that_is_retained_keeps_its_slices(set in any_healthy_set(), which in any::<Index>()) {
        let mut engine = engine_of(&Memory::new(), in_order(&set));
        let (before, memory) = settle(&mut engine, NOW);
        let lost = set[which.index(set.len())].id.clone();
        let _ = engine.apply(&lost, Change::Contact(Contact::Lost { since: LATER }));
        let (after, remembered) = settle(&mut engine, LATER);
        prop_assert_eq!(memory, remembered);
        for (before, after) in before.values().zip(after.values()) {
            for (before, after) in before.clusters.values().zip(after.clusters.values()) {
                prop_assert_eq!(&before.export, &after.export);
                prop_assert_eq!(held(&before.import), held(&after.import));
            }
        }
    }

    #[test]
    fn a_hub_started_while_a_member_is_down_changes_nothing_that_came_from_it(
        set in any_healthy_set(),
        which in any::<Index>(),
    ) {
        let (before, memory) = settle(&mut engine_of(&Memory::new(), in_order(&set)), NOW);
        let mut rest = set.clone();
        let Told { id: down, facts, .. } = rest.remove(which.index(set.len()));
        let mut told = in_order(&rest);
        told.push((down.clone(), Change::Joined));
        // Where it is, is the hub's own word.
        let networks = facts.into_iter().filter(|fact| matches!(fact, Change::Networks(_)));
        told.extend(networks.map(|fact| (down.clone(), fact)));
        let (after, remembered) = settle(&mut engine_of(&memory, told), LATER);
        for (key, service) in &memory {
            prop_assert_eq!(remembered.get(key), Some(service));
        }
        for (key, before) in &before {
            let after = &after[key];
            for (id, before) in before.clusters.iter().filter(|(id, _)| **id != down) {
                let after = &after.clusters[id];
                match (&before.import, &after.import) {
                    (ImportPlan::Present { import: was, slices: had }, ImportPlan::Present { import: is, slices: has }) => {
                        prop_assert_eq!((&was.spec, &was.families, &was.derived), (&is.spec, &is.families, &is.derived));
                        prop_assert_eq!((&was.clusters, &was.ready, &was.notes), (&is.clusters, &is.ready, &is.notes));
                        prop_assert!(matches!(has[&down], SlicesFrom::KeepWhatIsThere(_)));
                        for (source, had) in had.iter().filter(|(source, _)| **source != down) {
                            prop_assert_eq!(had, &has[source]);
                        }
                        // Who imports it is not known yet: a member keeps what stands there.
                        let mut told = after.export.clone();
                        if let (Some(told), Some(before)) = (&mut told, &before.export)
                            && told.reach != before.reach
                        {
                            prop_assert!(told.reach.as_ref().is_some_and(|reach| reach.awaited));
                            told.reach.clone_from(&before.reach);
                        }
                        prop_assert_eq!(&before.export, &told);
                    }
                    (ImportPlan::Present { .. }, other) => prop_assert!(false, "{:?}", other),
                    (ImportPlan::Absent(_) | ImportPlan::Untouched(_), after) => {
                        let imports = matches!(after, ImportPlan::Present { .. });
                        prop_assert!(!imports);
                    }
                }
            }
        }
    }
}

/// The slices that an importer holds, by source.
fn held(import: &ImportPlan) -> BTreeMap<ClusterId, Arc<[Arc<atoll_engine::plan::Slice>]>> {
    match import {
        ImportPlan::Present { slices, .. } => slices
            .iter()
            .filter_map(|(source, from)| match from {
                SlicesFrom::Exactly(slices, _) => Some((source.clone(), slices.clone())),
                SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => None,
            })
            .collect(),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => BTreeMap::new(),
    }
}
