//! What an answer says is what was planned, and what members hold, after every step.

use std::collections::{BTreeMap, BTreeSet};

use atoll_api::explain::{Import, Remark, ServiceExplanation};
use atoll_api::names::code::{Code, Severity};
use atoll_engine::facts::{Liveness, Locality};
use atoll_engine::intent::{Clusters, CrossCluster};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{ClusterPlan, DispatchPlan, ImportPlan, SlicesFrom};
use atoll_engine::world::Change;
use litemap::LiteMap;
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};

use super::drawn::{CLUSTERS, SERVICES, any_set, in_order};
use super::fixture::{id, key};
use super::set::{Held, Set};

fn any_clusters() -> impl Strategy<Value = Clusters> {
    let named = subsequence([&CLUSTERS[..], &["stranger"]].concat(), 1..4);
    let named = named.prop_map(|ids| Clusters::Named(ids.into_iter().map(id).collect::<BTreeSet<_>>()));
    prop_oneof![1 => Just(Clusters::All), 2 => named]
}

fn any_asked() -> impl Strategy<Value = CrossCluster> {
    let liveness = of(select(vec![Liveness::Retain, Liveness::Withdraw]));
    let locality = of(select(vec![Locality::LocalFirst, Locality::Anywhere]));
    (any_clusters(), any_clusters(), liveness, locality, any::<bool>()).prop_map(
        |(providers, consumers, liveness, locality, balanced)| CrossCluster {
            providers,
            consumers,
            liveness,
            locality,
            balanced,
            ..CrossCluster::default()
        },
    )
}

fn any_intents() -> impl Strategy<Value = BTreeMap<ServiceKey, CrossCluster>> {
    proptest::collection::vec(of(any_asked()), SERVICES.len()).prop_map(|asked| {
        SERVICES.iter().zip(asked).filter_map(|(service, asked)| Some((key(service), asked?))).collect()
    })
}

/// What an import or a dispatch says, against the plan and what the member holds.
fn agrees(said: &Import, planned: Option<&LiteMap<ClusterId, SlicesFrom>>, held: Option<&Held>, what: &str) {
    assert_eq!(said.present, planned.is_some(), "{what}");
    assert!(!said.remarks.is_empty(), "{what}: no reason");
    let Some(planned) = planned else {
        assert!(said.sources.is_empty(), "{what}");
        return;
    };
    let sources: Vec<&str> = said.sources.iter().map(|source| source.cluster.as_str()).collect();
    assert_eq!(sources, planned.keys().map(ClusterId::as_str).collect::<Vec<_>>(), "{what}");
    let none = Held::new();
    let held = held.unwrap_or(&none);
    let (mut ready, mut not_ready) = (0, 0);
    for (source, from) in said.sources.iter().zip(planned.values()) {
        assert!(!source.more, "{what}");
        let passed =
            source.candidates.iter().filter(|one| matches!(one.remark.code, Code::Used | Code::NotReady));
        let passed: BTreeSet<(String, bool)> = passed.map(|one| (one.address.clone(), one.used)).collect();
        let its = held.get(source.cluster.as_str()).cloned().unwrap_or_default();
        match from {
            SlicesFrom::Exactly(..) => {
                assert_eq!(passed, its, "{what} from {}", source.cluster);
                let count = |ready| {
                    source
                        .candidates
                        .iter()
                        .filter(|one| {
                            matches!(one.remark.code, Code::Used | Code::NotReady) && one.used == ready
                        })
                        .count()
                };
                ready += count(true);
                not_ready += count(false);
            }
            SlicesFrom::Nothing(why) => {
                assert!(its.is_empty(), "{what} from {}", source.cluster);
                assert!(
                    source.candidates.iter().all(|one| !one.used && one.remark.code == why.code()),
                    "{what}"
                );
                assert!(source.remarks.iter().any(|remark| remark.code == why.code()), "{what}");
            }
            SlicesFrom::KeepWhatIsThere(why) => {
                assert!(source.candidates.is_empty(), "{what} from {}", source.cluster);
                assert!(source.remarks.iter().any(|remark| remark.code == why.code()), "{what}");
            }
        }
    }
    assert_eq!((said.endpoints.ready, said.endpoints.not_ready), (ready, not_ready), "{what}");
}

fn imported(part: &ClusterPlan) -> Option<&LiteMap<ClusterId, SlicesFrom>> {
    match &part.import {
        ImportPlan::Present { slices, .. } => Some(slices),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => None,
    }
}

fn dispatched(part: &ClusterPlan) -> Option<&LiteMap<ClusterId, SlicesFrom>> {
    match &part.dispatch {
        DispatchPlan::Present(slices) => Some(slices),
        DispatchPlan::Absent(_) | DispatchPlan::Untouched(_) => None,
    }
}

fn all_remarks(all: &ServiceExplanation) -> Vec<&Remark> {
    let mut remarks: Vec<&Remark> = vec![&all.verdict];
    remarks.extend(&all.pending);
    remarks.extend(&all.conflicts);
    for part in &all.clusters {
        remarks.extend(&part.member);
        remarks.extend(part.export.iter().flat_map(|export| &export.remarks));
        for import in [Some(&part.import), part.dispatch.as_ref()].into_iter().flatten() {
            remarks.extend(&import.remarks);
            for source in &import.sources {
                remarks.extend(&source.remarks);
                remarks.extend(source.candidates.iter().map(|candidate| &candidate.remark));
            }
        }
    }
    remarks.extend(all.multi_cluster_service.iter().flat_map(|crossing| &crossing.remarks));
    remarks
}

/// Asks about everything, and compares.
fn look(set: &mut Set) {
    let (mut exports, mut invalid, mut imports) = (0, 0, 0);
    for service in SERVICES {
        let said = set.explain(service);
        let plan = set.brain.engine().last_plan(&key(service)).cloned();
        for part in &said.clusters {
            let member = id(&part.cluster);
            let what = format!("{service} in {member}");
            let planned = plan.as_ref().and_then(|plan| plan.clusters.get(&member));
            agrees(&part.import, planned.and_then(|part| imported(part)), set.held(&member, service), &what);
            if let Some(dispatch) = &part.dispatch {
                let held = set.dispatched.get(&(member.clone(), key(service)));
                agrees(
                    dispatch,
                    planned.and_then(|part| dispatched(part)),
                    held,
                    &format!("{what}, dispatched"),
                );
            } else {
                assert!(planned.and_then(|part| dispatched(part)).is_none(), "{what}");
            }
            let status = planned.and_then(|part| part.export.as_ref());
            if let Some(status) = status {
                let export = part.export.as_ref().unwrap();
                assert_eq!(export.valid, status.valid.is_ok(), "{what}");
                assert!(!export.remarks.is_empty(), "{what}");
            }
            exports += part.export.iter().filter(|export| export.valid).count();
            invalid += part.export.iter().filter(|export| !export.valid).count();
            imports += usize::from(part.import.present);
            if planned.is_none_or(|part| matches!(part.import, ImportPlan::Absent(_))) {
                assert_eq!(set.held(&member, service), None, "{what}: said to hold nothing");
            }
        }
        // Those that have precedence are numbered, and the first is the one that is remembered.
        let place = |part: &&atoll_api::explain::ClusterPart| part.export.as_ref()?.precedence;
        let mut places: Vec<usize> = said.clusters.iter().filter_map(|part| place(&part)).collect();
        places.sort_unstable();
        assert_eq!(places, (1..=places.len()).collect::<Vec<_>>(), "{service}");
        let first = said.clusters.iter().find(|part| place(part) == Some(1)).map(|part| part.cluster.clone());
        let memory = set.brain.engine().world().memory.get(&key(service));
        let incumbent =
            memory.and_then(|memory| memory.incumbent.as_ref()).map(|one| one.cluster.to_string());
        assert_eq!(first, incumbent, "{service}");
        for remark in all_remarks(&said) {
            let told = remark.severity == Severity::Info
                || remark.next.as_deref().is_some_and(|next| !next.is_empty());
            assert!(told, "{service}: no next step: {remark:?}");
            assert!(remark.message.ends_with('.'), "{service}: {remark:?}");
        }
        let exported = said.clusters.iter().flat_map(|part| &part.export).flat_map(|export| &export.remarks);
        for remark in exported.chain(&said.conflicts).chain(&said.pending) {
            assert!(said.verdict.severity >= remark.severity, "{service}: {:?} and {remark:?}", said.verdict);
        }
        let line =
            set.list(&[]).items.into_iter().find(|line| *service == *format!("shop/{}", line.metadata.name));
        if let Some(line) = line {
            assert_eq!((line.code, line.message), (said.verdict.code, said.verdict.message), "{service}");
        }
    }
    let totals = set.status().totals;
    assert_eq!((totals.exports, totals.invalid_exports, totals.imports), (exports, invalid, imports));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_explained_is_what_was_planned_and_what_members_hold(
        first in any_set(),
        second in any_set(),
        intents in any_intents(),
        gone in any::<Index>(),
    ) {
        let mut set = Set::new();
        for (at, (cluster, change)) in in_order(&first).into_iter().chain(in_order(&second)).enumerate() {
            set.change(&cluster, change);
            if at % 7 == 0 {
                set.settle();
                look(&mut set);
            }
        }
        for (key, asked) in intents {
            set.brain.intend(&key, Some(asked));
            set.settle();
            look(&mut set);
        }
        set.change(&id(CLUSTERS[gone.index(CLUSTERS.len())]), Change::Left);
        set.settle();
        look(&mut set);
    }
}
