//! Whose replicas an autoscaler sees to: those of the workload that a `HorizontalPodAutoscaler` among the templates targets.
//!
//! In every cluster that gets the autoscaler, the workload's copy is labelled [`RETAIN_REPLICAS`](atoll_api::names::label::RETAIN_REPLICAS): its replicas are the member's own
//! from then on, or hub and autoscaler would undo each other's work.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::object::{Kind, ObjectKey, group_of};

/// A workload, as an autoscaler calls it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Workload {
    group: String,
    kind: String,
    namespace: String,
    name: String,
}

impl Workload {
    /// The workload that an object is.
    fn at(key: &ObjectKey) -> Self {
        Self {
            group: key.kind.group().to_owned(),
            kind: key.kind.kind.clone(),
            namespace: key.namespace.clone(),
            name: key.name.clone(),
        }
    }

    /// The workload that an autoscaler targets.
    fn targeted(key: &ObjectKey, autoscaler: &Value) -> Option<Self> {
        let target = autoscaler.pointer("/spec/scaleTargetRef")?;
        Some(Self {
            group: group_of(target).to_owned(),
            kind: target["kind"].as_str()?.to_owned(),
            namespace: key.namespace.clone(),
            name: target["name"].as_str()?.to_owned(),
        })
    }

    /// Its key, if it is of this kind.
    pub(super) fn key(&self, kind: &Kind) -> Option<ObjectKey> {
        kind.is(&self.group, &self.kind).then(|| ObjectKey {
            kind: kind.clone(),
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        })
    }
}

/// Whether a kind is that of autoscalers.
pub fn is_autoscaler(kind: &Kind) -> bool {
    kind.is("autoscaling", "HorizontalPodAutoscaler")
}

/// Which autoscaler targets what.
#[derive(Clone, Debug, Default)]
pub struct Autoscalers {
    targets: BTreeMap<ObjectKey, Workload>,
    of: BTreeMap<Workload, BTreeSet<ObjectKey>>,
}

impl Autoscalers {
    /// Notes what an autoscaler targets, or that it is gone; gives the workloads that this concerns.
    pub fn note(&mut self, key: &ObjectKey, autoscaler: Option<&Value>) -> BTreeSet<Workload> {
        let target = autoscaler.and_then(|object| Workload::targeted(key, object));
        let before = match &target {
            Some(target) => self.targets.insert(key.clone(), target.clone()),
            None => self.targets.remove(key),
        };
        if let Some(before) = &before
            && let Some(all) = self.of.get_mut(before)
        {
            all.remove(key);
            if all.is_empty() {
                self.of.remove(before);
            }
        }
        if let Some(target) = &target {
            self.of.entry(target.clone()).or_default().insert(key.clone());
        }
        before.into_iter().chain(target).collect()
    }

    /// What an autoscaler targets.
    pub fn target(&self, autoscaler: &ObjectKey) -> Option<&Workload> {
        self.targets.get(autoscaler)
    }

    /// The autoscalers of a workload.
    pub fn of(&self, workload: &ObjectKey) -> impl Iterator<Item = &ObjectKey> {
        self.of.get(&Workload::at(workload)).into_iter().flatten()
    }
}
