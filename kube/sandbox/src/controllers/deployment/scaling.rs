//! A Deployment's size changed while it has several ReplicaSets: each keeps its share.

use super::bounds::Bounds;
use super::{MAX, Sets, Sizes, sized_for};
use crate::controllers::facts::{Deployment, ReplicaSet, Strategy, number};
use std::cmp::Reverse;

pub(super) fn sizes(deployment: &Deployment, sets: &Sets<'_>, bounds: &Bounds) -> Sizes {
    let active = sets.active();
    let wanted = deployment.replicas;
    if let [only] = active.as_slice() {
        return [(only.meta.name.clone(), wanted)].into();
    }
    if active.is_empty() {
        let latest = sets.new.or(sets.old.last().copied());
        return latest.map(|latest| (latest.meta.name.clone(), wanted)).into_iter().collect();
    }
    let saturated = |new: &ReplicaSet| {
        new.replicas == wanted && sized_for(new) == Some(wanted) && new.count("availableReplicas") == wanted
    };
    if sets.new.is_some_and(saturated) {
        let old = sets.old.iter().filter(|set| set.replicas > 0);
        return old.map(|set| (set.meta.name.clone(), 0)).collect();
    }
    match deployment.strategy {
        Strategy::Rolling { .. } => shares(deployment, active, bounds),
        Strategy::Recreate => Sizes::new(),
    }
}

fn shares(deployment: &Deployment, mut active: Vec<&ReplicaSet>, bounds: &Bounds) -> Sizes {
    let allowed = if deployment.replicas > 0 { bounds.most } else { 0 };
    let to_add = allowed - active.iter().map(|set| set.replicas).sum::<i64>();
    // The largest first; among equals the newest grows first and the oldest shrinks first.
    if to_add > 0 {
        active.sort_by_key(|set| (Reverse(set.replicas), Reverse(set.meta.created)));
    } else {
        active.sort_by_key(|set| (Reverse(set.replicas), set.meta.created));
    }
    let mut added = 0;
    let mut sizes: Vec<(&ReplicaSet, i64)> = Vec::new();
    for set in active {
        let left = to_add - added;
        let share = share(set, deployment, bounds);
        let share = if to_add > 0 { share.clamp(0, left) } else { share.clamp(left.min(0), 0) };
        added += share;
        sizes.push((set, set.replicas + share));
    }
    if let Some((_, largest)) = sizes.first_mut() {
        *largest = (*largest + to_add - added).max(0);
    }
    sizes.into_iter().map(|(set, size)| (set.meta.name.clone(), size)).collect()
}

/// How much a ReplicaSet would grow or shrink if all did in proportion.
fn share(set: &ReplicaSet, deployment: &Deployment, bounds: &Bounds) -> i64 {
    if deployment.replicas == 0 {
        return -set.replicas;
    }
    let noted = set.annotations.get(MAX).and_then(|most| most.parse().ok()).filter(|most: &i64| *most > 0);
    let Some(before) = noted.or(number(&deployment.status["replicas"])).filter(|before| *before > 0) else {
        return 0;
    };
    // Rounded to the nearest.
    (2 * set.replicas * bounds.most + before) / (2 * before) - set.replicas
}
