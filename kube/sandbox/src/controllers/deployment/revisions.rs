//! The ReplicaSets of a Deployment as its history: made, numbered, forgotten.

use super::bounds::Bounds;
use super::{DESIRED, MAX, Sets};
use crate::controllers::action::{Action, Kind};
use crate::controllers::facts::{Deployment, ReplicaSet, StringMap, number};
use crate::controllers::template::{TEMPLATE_HASH, owner};
use serde_json::{Map, Value, json};

/// The number of a template in the history.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// The numbers that it had before a rollback to it.
const HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Annotations that are a Deployment's or a ReplicaSet's own.
const OWN: [&str; 5] = [REVISION, HISTORY, DESIRED, MAX, "deprecated.deployment.rollback.to"];
/// A name has no room for more.
const LONGEST_NAME: usize = 253;

fn revision(set: &ReplicaSet) -> i64 {
    set.annotations.get(REVISION).and_then(|number| number.parse().ok()).unwrap_or(0)
}

/// The number of the present template: after those of all old ones.
fn next(sets: &Sets<'_>) -> i64 {
    sets.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
}

fn shared(annotations: &StringMap) -> impl Iterator<Item = (&String, &String)> {
    annotations.iter().filter(|(key, _)| !OWN.contains(&key.as_str()))
}

/// The revision that a Deployment should say it has.
pub(super) fn present(sets: &Sets<'_>) -> i64 {
    sets.new.map_or(0, revision).max(next(sets))
}

/// A ReplicaSet for the present template.
pub(super) fn make(deployment: &Deployment, sets: &Sets<'_>, size: i64, bounds: &Bounds) -> Value {
    let hash = deployment.template.hash(number(&deployment.status["collisionCount"]).unwrap_or(0));
    let mut template = deployment.template.value();
    template["metadata"]["labels"][TEMPLATE_HASH] = hash.as_str().into();
    let mut selector = deployment.selector.clone();
    if !selector["matchLabels"].is_object() {
        selector["matchLabels"] = json!({});
    }
    selector["matchLabels"][TEMPLATE_HASH] = hash.as_str().into();
    let mut annotations: Map<String, Value> =
        shared(&deployment.annotations).map(|(key, value)| (key.clone(), value.as_str().into())).collect();
    annotations.insert(REVISION.to_owned(), next(sets).to_string().into());
    annotations.insert(DESIRED.to_owned(), deployment.replicas.to_string().into());
    annotations.insert(MAX.to_owned(), bounds.most.to_string().into());
    let room = LONGEST_NAME - 1 - hash.len();
    let stem: String = deployment.meta.name.chars().take(room).collect();
    let mut spec = json!({"replicas": size, "selector": selector, "template": template});
    if deployment.min_ready > 0 {
        spec["minReadySeconds"] = deployment.min_ready.into();
    }
    json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{stem}-{hash}"), "namespace": deployment.meta.namespace,
            "labels": template["metadata"]["labels"], "annotations": annotations,
            "ownerReferences": [owner("apps/v1", "Deployment", &deployment.meta)],
        },
        "spec": spec,
    })
}

/// Gives the ReplicaSet of the present template the number, the annotations and the patience of its Deployment.
pub(super) fn renumber(deployment: &Deployment, new: &ReplicaSet, sets: &Sets<'_>) -> Option<Action> {
    let mut annotations = Map::new();
    for (key, value) in shared(&deployment.annotations) {
        if new.annotations.get(key) != Some(value) {
            annotations.insert(key.clone(), value.as_str().into());
        }
    }
    let (had, next) = (revision(new), next(sets));
    if had < next {
        annotations.insert(REVISION.to_owned(), next.to_string().into());
        if had > 0 {
            let before = new.annotations.get(HISTORY).filter(|before| !before.is_empty());
            let history = before.map_or_else(|| had.to_string(), |before| format!("{before},{had}"));
            annotations.insert(HISTORY.to_owned(), history.into());
        }
    }
    let mut body = json!({});
    if !annotations.is_empty() {
        body["metadata"]["annotations"] = annotations.into();
    }
    if new.min_ready != deployment.min_ready {
        body["spec"]["minReadySeconds"] = deployment.min_ready.into();
    }
    let target = (&new.meta).into();
    let some = body.as_object().is_some_and(|fields| !fields.is_empty());
    some.then_some(Action::Patch { kind: Kind::ReplicaSet, target, status: false, body })
}

/// Deletes the oldest empty ReplicaSets beyond the limit.
pub(super) fn forget(deployment: &Deployment, sets: &Sets<'_>) -> Vec<Action> {
    let mut old: Vec<&ReplicaSet> = sets.old.iter().copied().filter(|set| !set.meta.going).collect();
    let limit = usize::try_from(deployment.history).unwrap_or(0);
    let surplus = old.len().saturating_sub(limit);
    old.sort_by_key(|set| revision(set));
    let empty = |set: &&ReplicaSet| {
        set.replicas == 0
            && set.count("replicas") == 0
            && set.count("observedGeneration") >= set.meta.generation
    };
    let going = old.into_iter().take(surplus).filter(empty);
    going.map(|set| Action::Delete(Kind::ReplicaSet, (&set.meta).into())).collect()
}
