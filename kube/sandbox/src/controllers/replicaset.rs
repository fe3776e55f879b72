//! ReplicaSets: as many pods as are wanted.

use super::action::{Action, Kind, Plan};
use super::facts::{Pod, ReplicaSet};
use super::template::owner;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// No more pods than this at once; the rest follows.
const BURST: usize = 500;
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

/// Makes a ReplicaSet's pods as many as are wanted. `pods` are its own.
pub(crate) fn plan(set: &ReplicaSet, pods: &[&Pod], now: Timestamp) -> Plan {
    let mut plan = Plan::default();
    let mut active: Vec<&Pod> = pods.iter().copied().filter(|pod| pod.is_active()).collect();
    let mut terminating = pods.iter().filter(|pod| pod.meta.going && !pod.is_over()).count();
    if !set.meta.going {
        let wanted = usize::try_from(set.replicas).unwrap_or(0);
        let missing = wanted.saturating_sub(active.len()).min(BURST);
        plan.actions.extend((0..missing).map(|_| Action::Create(Kind::Pod, pod(set))));
        let surplus = active.len().saturating_sub(wanted).min(BURST);
        active = least_missed(&active);
        let going = active.drain(..surplus);
        plan.actions.extend(going.map(|pod| Action::Delete(Kind::Pod, (&pod.meta).into())));
        terminating += surplus;
    }
    // What goes now counts no more: a Deployment must not rely on it.
    let status = status(set, &active, terminating, now);
    plan.actions.extend(Action::status(Kind::ReplicaSet, &set.meta, &set.status, &status));
    let soon = active.iter().filter_map(|pod| pod.available_at(set.min_ready)).filter(|at| *at > now);
    plan.look_again(soon.min().filter(|_| set.min_ready > 0));
    plan
}

fn pod(set: &ReplicaSet) -> Value {
    let mut pod = set.template.pod(&owner("apps/v1", "ReplicaSet", &set.meta), &set.meta.namespace);
    // The template is kept without its hash, which the ReplicaSet's own labels have.
    if let Some(hash) = set.meta.labels.get(super::template::TEMPLATE_HASH) {
        pod["metadata"]["labels"][super::template::TEMPLATE_HASH] = hash.as_str().into();
    }
    pod["metadata"]["generateName"] = format!("{}-", set.meta.name).into();
    pod
}

fn status(set: &ReplicaSet, active: &[&Pod], terminating: usize, now: Timestamp) -> Value {
    let count = |is: &dyn Fn(&Pod) -> bool| active.iter().filter(|pod| is(pod)).count();
    let template = set.template.value();
    let labels = super::facts::words(&template["metadata"]["labels"]);
    let labelled = |pod: &Pod| labels.iter().all(|(key, value)| pod.meta.labels.get(key) == Some(value));
    let mut status = json!({
        "replicas": active.len(),
        "observedGeneration": set.meta.generation,
        "terminatingReplicas": terminating,
    });
    for (field, number) in [
        ("fullyLabeledReplicas", count(&labelled)),
        ("readyReplicas", count(&|pod| pod.ready.is_some())),
        ("availableReplicas", count(&|pod| pod.is_available(set.min_ready, now))),
    ] {
        if number > 0 {
            status[field] = number.into();
        }
    }
    if let Some(conditions) = set.status.get("conditions") {
        status["conditions"] = conditions.clone();
    }
    status
}

/// The pods in the order in which they may go: what serves least, and what is newest, goes first.
fn least_missed<'a>(pods: &[&'a Pod]) -> Vec<&'a Pod> {
    let mut on_node: BTreeMap<&str, usize> = BTreeMap::new();
    for pod in pods {
        *on_node.entry(&pod.node).or_default() += 1;
    }
    let mut sorted = pods.to_vec();
    sorted.sort_by_key(|pod| {
        let cost = pod.deletion_cost;
        (
            !pod.node.is_empty(),
            pod.phase,
            pod.ready.is_some(),
            cost,
            Reverse(on_node.get(pod.node.as_str()).copied().unwrap_or(0)),
            Reverse(pod.ready),
            Reverse(pod.restarts),
            Reverse(pod.meta.created),
            Reverse(pod.meta.name.as_str()),
        )
    });
    sorted
}

/// What a pod's annotation says that its loss would cost.
pub(crate) fn deletion_cost(pod: &Value) -> i64 {
    let said = pod["metadata"]["annotations"][DELETION_COST].as_str();
    said.and_then(|cost| cost.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn pod(name: &str, node: &str, phase: &str, ready: Option<&str>, extra: &Value) -> Pod {
        let conditions =
            ready.map(|since| json!([{"type": "Ready", "status": "True", "lastTransitionTime": since}]));
        let mut pod = json!({
            "metadata": {"name": name, "uid": name, "creationTimestamp": "2026-01-01T00:00:00Z"},
            "spec": {"nodeName": node}, "status": {"phase": phase, "conditions": conditions},
        });
        for (field, value) in extra.as_object().into_iter().flatten() {
            pod["metadata"][field] = value.clone();
        }
        Pod::read(&pod)
    }

    #[test]
    fn what_serves_least_goes_first() {
        let (early, late) = (Some("2026-01-01T00:00:00Z"), Some("2026-01-02T00:00:00Z"));
        let cheap = json!({"annotations": {DELETION_COST: "-1"}});
        let young = json!({"creationTimestamp": "2026-01-03T00:00:00Z"});
        let sorted = [
            pod("nowhere", "", "Pending", None, &json!({})),
            pod("pending", "a", "Pending", None, &json!({})),
            pod("unready", "a", "Running", None, &json!({})),
            pod("cheap", "b", "Running", early, &cheap),
            pod("crowded", "a", "Running", early, &json!({})),
            pod("late", "b", "Running", late, &json!({})),
            pod("young", "b", "Running", early, &young),
            pod("old", "b", "Running", early, &json!({})),
        ];
        // Node a is the fuller one.
        let more = [pod("x", "a", "Running", None, &json!({})), pod("y", "a", "Running", None, &json!({}))];
        let mixed: Vec<&Pod> = sorted.iter().rev().chain(&more).collect();
        let order: Vec<&str> = least_missed(&mixed).iter().map(|pod| pod.meta.name.as_str()).collect();
        let want: Vec<&str> = ["nowhere", "pending", "y", "x"]
            .into_iter()
            .chain(sorted[2..].iter().map(|pod| pod.meta.name.as_str()))
            .collect();
        assert_eq!(order, want);
    }

    #[test]
    fn what_goes_now_counts_no_more() {
        let pods: Vec<Pod> = ["a", "b", "c"]
            .map(|name| pod(name, "here", "Running", Some("2026-01-01T00:00:00Z"), &json!({})))
            .into();
        let set =
            ReplicaSet::read(&json!({"metadata": {"name": "web", "generation": 2}, "spec": {"replicas": 1}}));
        let plan = plan(&set, &pods.iter().collect::<Vec<_>>(), Timestamp::UNIX_EPOCH);
        let [Action::Delete(..), Action::Delete(..), Action::Patch { body, .. }] = plan.actions.as_slice()
        else {
            panic!("{:?}", plan.actions);
        };
        let status = &body["status"];
        assert_eq!((&status["availableReplicas"], &status["terminatingReplicas"]), (&1.into(), &2.into()));
    }
}
