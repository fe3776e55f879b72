//! Deployments: one ReplicaSet per template, and the way from the old one to the new.
//!
//! ```text
//!   plan ─┬─ revisions   the ReplicaSet of the present template: found, made, numbered; old ones forgotten
//!         ├─ rollout     rolling or at once: which ReplicaSet grows or shrinks now
//!         ├─ scaling     the Deployment's size changed, or it is paused: all keep their share
//!         └─ status      counts and conditions
//! ```
//! Every plan is one step; what comes of it makes the next.

mod bounds;
mod revisions;
mod rollout;
mod scaling;
mod status;
#[cfg(test)]
mod tests;

use super::action::{Action, Kind, Plan};
use super::facts::{Deployment, Pod, ReplicaSet, Strategy};
use bounds::Bounds;
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;

/// The annotations by which a ReplicaSet remembers the Deployment that it was sized for.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// The ReplicaSets of a Deployment.
struct Sets<'a> {
    /// That of the present template.
    new: Option<&'a ReplicaSet>,
    /// The others, oldest first.
    old: Vec<&'a ReplicaSet>,
}

impl<'a> Sets<'a> {
    fn of(deployment: &Deployment, sets: &[&'a ReplicaSet]) -> Self {
        let mut sorted: Vec<&ReplicaSet> = sets.to_vec();
        sorted.sort_by_key(|set| (set.meta.created, set.meta.name.as_str()));
        let new = sorted.iter().copied().find(|set| set.template == deployment.template);
        let old =
            sorted.into_iter().filter(|set| new.is_none_or(|new| new.meta.uid != set.meta.uid)).collect();
        Self { new, old }
    }

    fn all(&self) -> impl Iterator<Item = &'a ReplicaSet> {
        self.old.iter().copied().chain(self.new)
    }

    /// Those that should have pods.
    fn active(&self) -> Vec<&'a ReplicaSet> {
        self.all().filter(|set| set.replicas > 0).collect()
    }

    fn total(&self) -> i64 {
        self.all().map(|set| set.replicas).sum()
    }
}

/// New sizes of ReplicaSets, by name.
type Sizes = BTreeMap<String, i64>;

/// One step of a Deployment. `sets` and `pods` are its own, directly and through them.
pub(crate) fn plan(deployment: &Deployment, sets: &[&ReplicaSet], pods: &[&Pod], now: Timestamp) -> Plan {
    let sets = Sets::of(deployment, sets);
    if deployment.meta.going {
        return status::only(deployment, &sets, now);
    }
    let bounds = Bounds::of(deployment);
    let mut actions = Vec::new();
    // A Deployment that replaces all pods at once has no shares to keep.
    let resized = matches!(deployment.strategy, Strategy::Rolling { .. })
        && sets.active().iter().any(|set| sized_for(set).is_some_and(|size| size != deployment.replicas));
    if deployment.paused || resized {
        let sizes = scaling::sizes(deployment, &sets, &bounds);
        actions.extend(scale(deployment, &sets, &sizes, &bounds, true));
        if deployment.paused {
            actions.extend(revisions::forget(deployment, &sets));
        }
        let mut plan = status::only(deployment, &sets, now);
        actions.append(&mut plan.actions);
        return Plan { actions, again: plan.again };
    }
    let step = rollout::step(deployment, &sets, pods, &bounds);
    let begun = match (sets.new, step.begin) {
        (Some(new), _) => {
            actions.extend(revisions::renumber(deployment, new, &sets));
            None
        }
        (None, Some(size)) => {
            let made = revisions::make(deployment, &sets, size, &bounds);
            let name = made["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            actions.push(Action::Create(Kind::ReplicaSet, made));
            Some(name)
        }
        (None, None) => None,
    };
    let scaled = scale(deployment, &sets, &step.sizes, &bounds, false);
    if scaled.is_empty() && status::is_complete(deployment, &deployment.status) {
        actions.extend(revisions::forget(deployment, &sets));
    }
    // One patch per ReplicaSet: two would be made from the same state, and the second refused.
    for action in scaled {
        merge(&mut actions, action);
    }
    let mut plan = status::rolling(deployment, &sets, begun.as_deref(), now);
    actions.append(&mut plan.actions);
    Plan { actions, again: plan.again }
}

fn merge(actions: &mut Vec<Action>, new: Action) {
    if let Action::Patch { kind: Kind::ReplicaSet, target: of, body: more, .. } = &new {
        let same = actions.iter_mut().find_map(|one| match one {
            Action::Patch { kind: Kind::ReplicaSet, target, body, .. } if target == of => Some(body),
            _ => None,
        });
        if let Some(body) = same {
            body["spec"]["replicas"] = more["spec"]["replicas"].clone();
            for (key, value) in more["metadata"]["annotations"].as_object().into_iter().flatten() {
                body["metadata"]["annotations"][key] = value.clone();
            }
            return;
        }
    }
    actions.push(new);
}

/// The size of the Deployment that a ReplicaSet was last sized for.
fn sized_for(set: &ReplicaSet) -> Option<i64> {
    set.annotations.get(DESIRED)?.parse().ok()
}

/// Gives ReplicaSets their new sizes. With `note`, those whose size stays note what it was chosen for.
fn scale(
    deployment: &Deployment,
    sets: &Sets<'_>,
    sizes: &Sizes,
    bounds: &Bounds,
    note: bool,
) -> Vec<Action> {
    let desired = deployment.replicas.to_string();
    let most = bounds.most.to_string();
    let mut actions = Vec::new();
    for set in sets.all() {
        let Some(size) = sizes.get(&set.meta.name) else { continue };
        let noted = set.annotations.get(DESIRED) == Some(&desired) && set.annotations.get(MAX) == Some(&most);
        if *size == set.replicas && (noted || !note) {
            continue;
        }
        let body = json!({
            "metadata": {"annotations": {DESIRED: desired, MAX: most}},
            "spec": {"replicas": size},
        });
        actions.push(Action::Patch {
            kind: Kind::ReplicaSet,
            target: (&set.meta).into(),
            status: false,
            body,
        });
    }
    actions
}
