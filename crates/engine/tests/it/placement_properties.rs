//! What holds of every placement.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::ClusterId;
use atoll_engine::placement::affinity::{ClusterFact, Effect, Taint, fits};
use atoll_engine::placement::divide::by_weight;
use atoll_engine::placement::object::ObjectKey;
use atoll_engine::placement::{Change, Outcome, Placer};
use proptest::prelude::*;
use serde_json::json;

use crate::placement::{id, policy, ready, template};

const CLUSTERS: [&str; 5] = ["c0", "c1", "c2", "c3", "c4"];
const REGIONS: [&str; 3] = ["eu", "us", "asia"];

fn any_cluster() -> impl Strategy<Value = ClusterFact> {
    (0..3usize, any::<bool>(), any::<bool>()).prop_map(|(region, is_ready, tainted)| {
        let taint = Taint { key: "t".to_owned(), value: String::new(), effect: Effect::NoSchedule };
        ClusterFact {
            region: Some(REGIONS[region].to_owned()),
            ready: is_ready,
            taints: if tainted { vec![taint] } else { Vec::new() },
            ..ready()
        }
    })
}

fn any_policy() -> impl Strategy<Value = serde_json::Value> {
    let names = proptest::sample::subsequence(CLUSTERS.to_vec(), 0..=5);
    let weights = proptest::collection::vec(1..6i64, 5);
    (names, weights, 0..3usize, 0..4usize, 0..3i32, 0..3u8).prop_map(|(names, weights, max, regions, priority, how)| {
        let list: Vec<_> = CLUSTERS.iter().zip(weights)
            .map(|(name, weight)| json!({"targetCluster": {"clusterNames": [name]}, "weight": weight})).collect();
        let scheduling = match how {
            0 => json!({"replicaSchedulingType": "Duplicated"}),
            1 => json!({"replicaDivisionPreference": "Weighted", "weightPreference": {"staticWeightList": list}}),
            _ => json!({"replicaDivisionPreference": "Aggregated"}),
        };
        let mut spread = vec![json!({"spreadByField": "cluster", "maxGroups": max})];
        if regions > 0 {
            spread.push(json!({"spreadByField": "region", "maxGroups": regions, "minGroups": 1}));
        }
        json!({
            "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment"}],
            "priority": priority,
            "placement": {"clusterAffinity": {"clusterNames": names}, "replicaScheduling": scheduling, "spreadConstraints": spread},
        })
    })
}

fn any_changes() -> impl Strategy<Value = (Vec<Change>, Vec<(ObjectKey, i64)>)> {
    let clusters = proptest::collection::vec(any_cluster(), 1..5);
    let policies = proptest::collection::vec(any_policy(), 0..4);
    let replicas = proptest::collection::vec(0..20i64, 1..4);
    (clusters, policies, replicas).prop_map(|(clusters, policies, replicas)| {
        let mut changes: Vec<Change> = clusters
            .into_iter()
            .enumerate()
            .map(|(at, fact)| Change::Cluster(id(CLUSTERS[at]), Some(fact)))
            .collect();
        changes.extend(policies.into_iter().enumerate().map(|(at, spec)| policy(&format!("p{at}"), spec)));
        let mut keys = Vec::new();
        for (at, count) in replicas.into_iter().enumerate() {
            let (key, change) = template(json!({"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": format!("d{at}"), "namespace": "shop"}, "spec": {"replicas": count}}));
            keys.push((key, count));
            changes.push(change);
        }
        (changes, keys)
    })
}

fn plan_all(changes: &[Change]) -> (Placer, BTreeMap<ObjectKey, Outcome>) {
    let mut placer = Placer::default();
    changes.iter().cloned().for_each(|change| placer.apply(change));
    let outcomes = std::iter::from_fn(|| placer.plan_next()).collect();
    (placer, outcomes)
}

proptest! {
    #[test]
    fn the_order_of_changes_does_not_matter((changes, _) in any_changes(), seed in any::<u64>()) {
        let mut shuffled = changes.clone();
        let mut state = seed | 1;
        for at in (1..shuffled.len()).rev() {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            shuffled.swap(at, (state >> 33) as usize % (at + 1));
        }
        prop_assert_eq!(plan_all(&changes).1, plan_all(&shuffled).1);
    }

    #[test]
    fn planning_twice_changes_nothing((changes, keys) in any_changes()) {
        let (mut placer, first) = plan_all(&changes);
        for (key, _) in &keys {
            let again = placer.plan(key);
            prop_assert_eq!(first.get(key).unwrap_or(&Outcome::Nowhere { preserve: false }), &again);
        }
    }

    #[test]
    fn no_copy_is_outside_its_affinity_and_divided_replicas_sum_up((changes, keys) in any_changes()) {
        let (_, outcomes) = plan_all(&changes);
        let facts: BTreeMap<&ClusterId, &ClusterFact> = changes.iter().filter_map(|change| match change {
            Change::Cluster(id, Some(fact)) => Some((id, fact)),
            _ => None,
        }).collect();
        for (key, count) in keys {
            let Some(Outcome::Placed(placed)) = outcomes.get(&key) else { continue };
            let decision = placed.decision.as_ref().unwrap();
            let placement = &decision.placement;
            for cluster in placed.copies.keys() {
                let fact = facts[cluster];
                prop_assert!(fits(placement.cluster_affinity.as_ref().unwrap(), cluster, fact).is_ok());
                prop_assert!(fact.taints.is_empty());
            }
            let max = placement.spread_constraints[0].max_groups;
            prop_assert!(max == 0 || placed.copies.len() <= max);
            let regions: BTreeSet<_> = placed.copies.keys().filter_map(|id| facts[id].region.as_ref()).collect();
            if let Some(limit) = placement.spread_constraints.get(1) {
                prop_assert!(regions.len() <= limit.max_groups);
            }
            let divided = decision.written["replicaScheduling"]["replicaDivisionPreference"].is_string();
            if divided && placed.nowhere.is_none() {
                let sum: i64 = decision.clusters.values().flatten().sum();
                prop_assert_eq!(sum, count);
            }
        }
    }

    #[test]
    fn every_seat_is_given_and_no_cluster_is_far_from_its_share(
        seats in 0..500i64, weights in proptest::collection::vec(1..100i64, 1..6),
    ) {
        let total: i64 = weights.iter().sum();
        let weights: BTreeMap<ClusterId, i64> = weights.into_iter().enumerate().map(|(at, weight)| (id(&format!("c{at}")), weight)).collect();
        let given = by_weight(seats, &weights);
        prop_assert_eq!(given.values().sum::<i64>(), seats);
        for (cluster, weight) in &weights {
            let share = seats as f64 * *weight as f64 / total as f64;
            prop_assert!((given[cluster] as f64 - share).abs() <= 2.0, "{} of {} for {}", given[cluster], seats, share);
        }
    }
}
