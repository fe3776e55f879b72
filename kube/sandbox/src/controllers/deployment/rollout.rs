//! The next step of a rollout: the new ReplicaSet grows, the old ones shrink, never out of bounds.

use super::bounds::Bounds;
use super::{Sets, Sizes};
use crate::controllers::facts::{Deployment, Pod, ReplicaSet, Strategy};

/// What to do.
#[derive(Debug, Default)]
pub(super) struct Step {
    /// The size of a new ReplicaSet, if one is to be made.
    pub(super) begin: Option<i64>,
    pub(super) sizes: Sizes,
}

pub(super) fn step(deployment: &Deployment, sets: &Sets<'_>, pods: &[&Pod], bounds: &Bounds) -> Step {
    match deployment.strategy {
        Strategy::Recreate => recreate(deployment, sets, pods),
        Strategy::Rolling { .. } => rolling(deployment, sets, bounds),
    }
}

/// Old pods go, all of them; then new ones come.
fn recreate(deployment: &Deployment, sets: &Sets<'_>, pods: &[&Pod]) -> Step {
    let shrink: Sizes =
        sets.old.iter().filter(|set| set.replicas > 0).map(|set| (set.meta.name.clone(), 0)).collect();
    if !shrink.is_empty() {
        return Step { begin: None, sizes: shrink };
    }
    let old = |pod: &&&Pod| sets.new.is_none_or(|new| !pod.meta.belongs_to(&new.meta.uid));
    if pods.iter().filter(old).any(|pod| !pod.is_over()) {
        return Step::default();
    }
    match sets.new {
        Some(new) => Step { begin: None, sizes: [(new.meta.name.clone(), deployment.replicas)].into() },
        None => Step { begin: Some(deployment.replicas), sizes: Sizes::new() },
    }
}

fn rolling(deployment: &Deployment, sets: &Sets<'_>, bounds: &Bounds) -> Step {
    let room = (bounds.most - sets.total()).max(0);
    let Some(new) = sets.new else {
        return Step { begin: Some(room.min(deployment.replicas)), sizes: Sizes::new() };
    };
    let size = if new.replicas > deployment.replicas {
        deployment.replicas
    } else {
        new.replicas + room.min(deployment.replicas - new.replicas)
    };
    if size != new.replicas {
        return Step { begin: None, sizes: [(new.meta.name.clone(), size)].into() };
    }
    Step { begin: None, sizes: shrink(sets, new, bounds) }
}

/// Takes from the old ReplicaSets what is not needed for the least number of available pods.
fn shrink(sets: &Sets<'_>, new: &ReplicaSet, bounds: &Bounds) -> Sizes {
    let missing = new.replicas - available(new);
    let mut spare = sets.total() - bounds.least - missing;
    let mut sizes: Vec<(&ReplicaSet, i64)> =
        sets.old.iter().filter(|set| set.replicas > 0).map(|set| (*set, set.replicas)).collect();
    // Pods that are not available go first: its loss makes nothing worse, and it must not hold up the rollout.
    for (set, size) in &mut sizes {
        let gone = spare.min(*size - available(set)).max(0);
        *size -= gone;
        spare -= gone;
    }
    let mut spare = (sets.all().map(available).sum::<i64>() - bounds.least).min(spare);
    for (_, size) in &mut sizes {
        let gone = spare.min(*size).max(0);
        *size -= gone;
        spare -= gone;
    }
    sizes
        .into_iter()
        .filter(|(set, size)| *size != set.replicas)
        .map(|(set, size)| (set.meta.name.clone(), size))
        .collect()
}

/// The available pods that will stay: a status may still count some that were just given up.
fn available(set: &ReplicaSet) -> i64 {
    set.count("availableReplicas").min(set.replicas)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn set(name: &str, (size, available): (i64, i64)) -> ReplicaSet {
        ReplicaSet::read(&json!({
            "metadata": {"name": name, "uid": name}, "spec": {"replicas": size},
            "status": {"availableReplicas": available},
        }))
    }

    #[test]
    fn old_pods_go_only_when_enough_others_are_available() {
        let ten =
            json!({"replicas": 10, "strategy": {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}});
        let four =
            json!({"replicas": 4, "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 1}}});
        // The new set and the old one, each with its size and how many are available; then the old one's size.
        let cases = [
            ("none of the new ones is available yet", &ten, (3, 0), (10, 10), 8),
            ("none of the new ones ever will be", &ten, (5, 0), (8, 8), 8),
            ("neither will they, and an old one breaks", &ten, (5, 0), (8, 7), 8),
            ("all new ones are available", &ten, (5, 5), (8, 8), 3),
            ("a sick old one goes first", &ten, (5, 5), (8, 6), 3),
            ("a status still counts old ones that were given up", &ten, (5, 5), (8, 10), 3),
            ("a status still counts new ones that were given up", &four, (2, 6), (3, 7), 1),
        ];
        for (what, spec, new, old, want) in cases {
            let new = set("new", new);
            let old = set("old", old);
            let deployment = Deployment::read(&json!({"spec": spec}));
            let bounds = Bounds::of(&deployment);
            let sets = Sets { new: Some(&new), old: vec![&old] };
            let size = shrink(&sets, &new, &bounds).get("old").copied().unwrap_or(old.replicas);
            assert_eq!(size, want, "{what}");
        }
    }
}
