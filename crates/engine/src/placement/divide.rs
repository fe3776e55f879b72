//! How many replicas each cluster gets.

use std::collections::BTreeMap;

use super::affinity::{ClusterFact, fits};
use super::policy::{DivisionPreference, ReplicaScheduling, SchedulingType};
use crate::names::ClusterId;

/// The replicas of each of the chosen clusters; those that get none are not in it, unless there are none to give.
pub fn divide(
    scheduling: Option<&ReplicaScheduling>,
    replicas: i64,
    chosen: &BTreeMap<ClusterId, &ClusterFact>,
    before: &BTreeMap<ClusterId, i64>,
) -> BTreeMap<ClusterId, i64> {
    let every = |each: i64| chosen.keys().map(|id| (id.clone(), each)).collect();
    let Some(scheduling) = scheduling else { return every(replicas) };
    match (scheduling.replica_scheduling_type, scheduling.replica_division_preference) {
        (SchedulingType::Duplicated, _) => every(replicas),
        (SchedulingType::Divided, _) if replicas <= 0 => every(0),
        (SchedulingType::Divided, DivisionPreference::Weighted) => {
            let weights = weights(scheduling, chosen);
            let divided = by_weight(replicas, &weights);
            divided.into_iter().filter(|(_, seats)| *seats > 0).collect()
        }
        // How much room a cluster has is not known: the one that has most stays it.
        (SchedulingType::Divided, DivisionPreference::Aggregated) => {
            let most =
                |id: &&ClusterId| (before.get(*id).copied().unwrap_or(0), std::cmp::Reverse((*id).clone()));
            chosen.keys().max_by_key(most).map(|id| (id.clone(), replicas)).into_iter().collect()
        }
    }
}

/// The weight of each cluster: the greatest that fits it, and the same for all if none fits any.
fn weights(
    scheduling: &ReplicaScheduling,
    chosen: &BTreeMap<ClusterId, &ClusterFact>,
) -> BTreeMap<ClusterId, i64> {
    let list = scheduling.weight_preference.iter().flat_map(|weights| &weights.static_weight_list);
    let mut weights = BTreeMap::new();
    for one in list {
        for (id, _) in chosen.iter().filter(|(id, cluster)| fits(&one.target_cluster, id, cluster).is_ok()) {
            let weight: &mut i64 = weights.entry(id.clone()).or_default();
            *weight = one.weight.max(*weight);
        }
    }
    weights.retain(|_, weight| *weight > 0);
    if weights.is_empty() {
        return chosen.keys().map(|id| (id.clone(), 1)).collect();
    }
    weights
}

/// Divides seats by Webster's method: the next goes to whom `weight / (2 seats + 1)` is greatest for, then to whom has fewer, then
/// to the first by name. All of them are given out.
pub fn by_weight(seats: i64, weights: &BTreeMap<ClusterId, i64>) -> BTreeMap<ClusterId, i64> {
    let total: i128 = weights.values().map(|weight| i128::from(*weight)).sum();
    if total <= 0 || seats <= 0 {
        return weights.keys().map(|id| (id.clone(), 0)).collect();
    }
    // No cluster gets less than its whole share but one by this method: the rest is given out one by one.
    let share = |weight: i64| (i128::from(seats) * i128::from(weight) / total - 1).max(0);
    let mut given: BTreeMap<ClusterId, i128> =
        weights.iter().map(|(id, weight)| (id.clone(), share(*weight))).collect();
    let mut left = i128::from(seats) - given.values().sum::<i128>();
    while left > 0 {
        let claim = |id: &ClusterId| (i128::from(weights[id]), 2 * given[id] + 1);
        let next = weights.keys().max_by(|a, b| {
            let ((weight_a, due_a), (weight_b, due_b)) = (claim(a), claim(b));
            (weight_a * due_b).cmp(&(weight_b * due_a)).then_with(|| due_b.cmp(&due_a)).then_with(|| b.cmp(a))
        });
        let Some(seats) = next.cloned().and_then(|id| given.get_mut(&id)) else { break };
        *seats += 1;
        left -= 1;
    }
    given.into_iter().map(|(id, seats)| (id, i64::try_from(seats).unwrap_or(i64::MAX))).collect()
}
