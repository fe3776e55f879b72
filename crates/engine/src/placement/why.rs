//! Why a template goes where it goes, read off what was decided: for whoever asks. Nothing is decided here.

use std::collections::BTreeMap;

use super::affinity::{Unfit, fits, tolerated};
use super::choose::{self, Meant};
use super::object::ObjectKey;
use super::policy::{ClusterAffinity, PolicyId};
use super::{Decision, Placer, overrides};
use crate::names::ClusterId;

/// A policy that selects a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Selecting<'a> {
    /// The policy.
    pub id: &'a PolicyId,
    /// Its priority.
    pub priority: i32,
    /// How closely it means the template.
    pub meant: Meant,
}

/// Why a policy counts before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Before {
    /// It is of the namespace, and the other of the whole clusterset.
    Namespace,
    /// It has the higher priority.
    Priority,
    /// It means the template more closely.
    Closeness,
    /// Its name comes first.
    Name,
    /// It has had the template, and the other does not preempt it.
    HadIt,
}

impl Selecting<'_> {
    /// Why it counts before `other`.
    pub fn before(&self, other: &Self) -> Before {
        let rank = |one: &Self| {
            let namespaced = one.id.namespace.is_some();
            (namespaced, one.priority, one.meant, std::cmp::Reverse(one.id.name.clone()))
        };
        if rank(self) < rank(other) {
            Before::HadIt
        } else if self.id.namespace.is_some() != other.id.namespace.is_some() {
            Before::Namespace
        } else if self.priority != other.priority {
            Before::Priority
        } else if self.meant != other.meant {
            Before::Closeness
        } else {
            Before::Name
        }
    }
}

impl Placer {
    /// What was decided of a template.
    pub fn decision(&self, key: &ObjectKey) -> Option<&Decision> {
        self.decided.get(key)
    }

    /// The policies that select a template, the one that has it first.
    pub fn selecting(&self, key: &ObjectKey) -> Vec<Selecting<'_>> {
        let Some(template) = self.templates.get(key) else { return Vec::new() };
        let of = |(id, spec): (_, &super::PropagationSpec)| {
            let meant = choose::meant(&spec.resource_selectors, key, template)?;
            Some(Selecting { id, priority: spec.priority, meant })
        };
        let near = self.policies.iter().filter(|(id, _)| choose::in_reach(id, key));
        let mut selecting: Vec<Selecting<'_>> = near.filter_map(of).collect();
        let owner = self.decided.get(key).and_then(|decision| decision.policy.as_ref());
        selecting.sort_by_key(|one| {
            let namespaced = one.id.namespace.is_none();
            (
                Some(one.id) != owner,
                namespaced,
                -i64::from(one.priority),
                std::cmp::Reverse(one.meant),
                one.id,
            )
        });
        selecting
    }

    /// Whether each member fits what was decided, whether it was chosen or not.
    pub fn fitting(&self, key: &ObjectKey) -> BTreeMap<&ClusterId, Result<(), Unfit>> {
        let Some(decision) = self.decided.get(key) else { return BTreeMap::new() };
        let placement = &decision.placement;
        let all = ClusterAffinity::default();
        let group = placement
            .cluster_affinities
            .iter()
            .find(|group| Some(&group.affinity_name) == decision.affinity.as_ref());
        let group = group.or(placement.cluster_affinities.last()).map(|group| &group.affinity);
        let affinity = group.or(placement.cluster_affinity.as_ref()).unwrap_or(&all);
        let fit = |id: &ClusterId, cluster: &super::affinity::ClusterFact| {
            let there = decision.clusters.contains_key(id);
            fits(affinity, id, cluster)?;
            tolerated(&placement.cluster_tolerations, cluster, there)
        };
        self.clusters.iter().map(|(id, cluster)| (id, fit(id, cluster))).collect()
    }

    /// The override policies that change a template's copy in a cluster.
    pub fn overriding(&self, key: &ObjectKey, id: &ClusterId) -> Vec<&PolicyId> {
        let (Some(template), Some(cluster)) = (self.templates.get(key), self.clusters.get(id)) else {
            return Vec::new();
        };
        let changed = overrides::apply(&self.overrides, key, (**template).clone(), id, cluster);
        changed
            .map(|(_, changed)| changed.into_iter().map(|(policy, _)| policy).collect())
            .unwrap_or_default()
    }
}
