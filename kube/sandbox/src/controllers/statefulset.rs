//! StatefulSets: pods with names, one after the other.
//!
//! ```text
//!   plan ─┬─ revisions   the template as a numbered object, so that an older one can still be made into a pod
//!         ├─ pods        what is missing, what is too much, what has an old template; in order
//!         └─ status
//! ```

mod pods;
mod revisions;
#[cfg(test)]
mod tests;

use super::action::{Action, Kind, Plan};
use super::facts::{Pod, Revision, StatefulSet, Update, number};
use jiff::Timestamp;
use pods::Ordered;
use revisions::Revisions;
use serde_json::{Value, json};

/// The label by which a pod says which revision it is of.
const REVISION: &str = "controller-revision-hash";

/// One step of a StatefulSet. `pods` and `known` (revisions) are its own.
pub(crate) fn plan(set: &StatefulSet, pods: &[&Pod], known: &[&Revision], now: Timestamp) -> Plan {
    let revisions = match Revisions::of(set, known) {
        Ok(revisions) => revisions,
        // Nothing is made of a template before it is kept.
        Err(missing) if !set.meta.going => return Plan { actions: vec![missing], again: None },
        Err(_) => return Plan::default(),
    };
    let ordered = Ordered::of(set, pods);
    let mut plan = Plan::default();
    if !set.meta.going {
        plan.actions = ordered.step(set, &revisions, now);
        if plan.actions.is_empty() {
            plan.actions = revisions.forget(set, known, pods);
        }
    }
    plan.actions.extend(Action::status(
        Kind::StatefulSet,
        &set.meta,
        &set.status,
        &status(set, pods, &revisions, now),
    ));
    let soon = pods.iter().filter_map(|pod| pod.available_at(set.min_ready)).filter(|at| *at > now);
    plan.look_again(soon.min().filter(|_| set.min_ready > 0));
    plan
}

fn revision_of(pod: &Pod) -> &str {
    pod.meta.labels.get(REVISION).map(String::as_str).unwrap_or_default()
}

fn status(set: &StatefulSet, pods: &[&Pod], revisions: &Revisions<'_>, now: Timestamp) -> Value {
    let count = |is: &dyn Fn(&Pod) -> bool| pods.iter().filter(|pod| is(pod)).count();
    let of = |name: &str| count(&|pod| !pod.meta.going && revision_of(pod) == name);
    let (ready, all) = (count(&|pod| pod.ready.is_some()), pods.len());
    let (current, update) = (&revisions.current.meta.name, &revisions.update.meta.name);
    let (updated, wanted) = (of(update), usize::try_from(set.replicas).unwrap_or(0));
    let rolled_out = matches!(set.update, Update::Rolling { .. })
        && [updated, ready, all].iter().all(|number| *number == wanted);
    let (current, of_current) = if rolled_out { (update, updated) } else { (current, of(current)) };
    let mut status = json!({
        "observedGeneration": set.meta.generation,
        "replicas": all,
        "availableReplicas": count(&|pod| pod.is_available(set.min_ready, now)),
        "currentRevision": current,
        "updateRevision": update,
        "collisionCount": number(&set.status["collisionCount"]).unwrap_or(0),
    });
    for (field, number) in
        [("readyReplicas", ready), ("currentReplicas", of_current), ("updatedReplicas", updated)]
    {
        if number > 0 {
            status[field] = number.into();
        }
    }
    if let Some(conditions) = set.status.get("conditions") {
        status["conditions"] = conditions.clone();
    }
    status
}
