//! The pods of a StatefulSet in their order: what comes, what goes, what is replaced.

use super::{REVISION, Revisions, revision_of};
use crate::controllers::action::{Action, Kind};
use crate::controllers::facts::{Pod, StatefulSet, Update};
use crate::controllers::template::owner;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeMap;

/// The pods by their numbers.
pub(super) struct Ordered<'a>(BTreeMap<i64, &'a Pod>);

impl<'a> Ordered<'a> {
    pub(super) fn of(set: &StatefulSet, pods: &[&'a Pod]) -> Self {
        let ordinal = |pod: &Pod| -> Option<i64> {
            pod.meta.name.strip_prefix(&set.meta.name)?.strip_prefix('-')?.parse().ok()
        };
        Self(pods.iter().filter_map(|pod| Some((ordinal(pod)?, *pod))).collect())
    }

    /// What to do now: first what is missing, then what is too much, then what is outdated.
    pub(super) fn step(&self, set: &StatefulSet, revisions: &Revisions<'_>, now: Timestamp) -> Vec<Action> {
        let (mut actions, settled) = self.fill(set, revisions, now);
        if settled {
            let (more, settled) = self.shrink(set, now);
            actions.extend(more);
            if settled && actions.is_empty() {
                actions.extend(self.replace(set, revisions, now));
            }
        }
        actions
    }

    fn wanted(set: &StatefulSet) -> std::ops::Range<i64> {
        set.start..set.start + set.replicas.max(0)
    }

    /// Makes missing pods, upwards. False where the order makes all else wait.
    fn fill(&self, set: &StatefulSet, revisions: &Revisions<'_>, now: Timestamp) -> (Vec<Action>, bool) {
        let mut actions = Vec::new();
        for ordinal in Self::wanted(set) {
            let waits = match self.0.get(&ordinal) {
                None => {
                    actions.push(Action::Create(Kind::Pod, pod(set, revisions, ordinal)));
                    true
                }
                // One that has ended makes room for another of its name.
                Some(pod) if pod.is_over() => {
                    if !pod.meta.going {
                        actions.push(Action::Delete(Kind::Pod, (&pod.meta).into()));
                    }
                    true
                }
                Some(pod) => pod.meta.going || !pod.is_available(set.min_ready, now),
            };
            if waits && !set.parallel {
                return (actions, false);
            }
        }
        (actions, true)
    }

    /// Deletes surplus pods, downwards. False where the order makes all else wait.
    fn shrink(&self, set: &StatefulSet, now: Timestamp) -> (Vec<Action>, bool) {
        let wanted = Self::wanted(set);
        let surplus =
            || self.0.iter().rev().filter(|(ordinal, _)| !wanted.contains(ordinal)).map(|(_, pod)| *pod);
        let is_sick = |pod: &Pod| pod.meta.going || !pod.is_available(set.min_ready, now);
        // Of several that are sick, the first one may go.
        let first_sick = self.0.values().find(|pod| is_sick(pod)).map(|pod| &pod.meta.uid);
        let mut actions = Vec::new();
        for pod in surplus() {
            if pod.meta.going {
                if set.parallel {
                    continue;
                }
                return (actions, false);
            }
            if !set.parallel && is_sick(pod) && first_sick != Some(&pod.meta.uid) {
                return (actions, false);
            }
            actions.push(Action::Delete(Kind::Pod, (&pod.meta).into()));
            if !set.parallel {
                return (actions, false);
            }
        }
        (actions, true)
    }

    /// Deletes the last pod of an old template, when all after it are new and available.
    fn replace(&self, set: &StatefulSet, revisions: &Revisions<'_>, now: Timestamp) -> Option<Action> {
        let Update::Rolling { partition } = set.update else { return None };
        let reached = set.start + partition;
        for ordinal in Self::wanted(set).rev().filter(|ordinal| *ordinal >= reached) {
            let pod = self.0.get(&ordinal)?;
            if revision_of(pod) != revisions.update.meta.name && !pod.meta.going {
                return Some(Action::Delete(Kind::Pod, (&pod.meta).into()));
            }
            if pod.meta.going || !pod.is_available(set.min_ready, now) {
                return None;
            }
        }
        None
    }
}

fn pod(set: &StatefulSet, revisions: &Revisions<'_>, ordinal: i64) -> Value {
    let outdated = matches!(set.update, Update::Rolling { partition } if ordinal < set.start + partition);
    let revision = if outdated { revisions.current } else { revisions.update };
    let name = format!("{}-{ordinal}", set.meta.name);
    let mut pod = revision.template.pod(&owner("apps/v1", "StatefulSet", &set.meta), &set.meta.namespace);
    let labels = &mut pod["metadata"]["labels"];
    labels[REVISION] = revision.meta.name.as_str().into();
    labels["statefulset.kubernetes.io/pod-name"] = name.as_str().into();
    labels["apps.kubernetes.io/pod-index"] = ordinal.to_string().into();
    pod["spec"]["hostname"] = name.as_str().into();
    pod["spec"]["subdomain"] = set.service.as_str().into();
    pod["metadata"]["generateName"] = format!("{}-", set.meta.name).into();
    pod["metadata"]["name"] = name.into();
    pod
}
