//! Does a cluster fit? By name, labels, place, taints.

use std::collections::BTreeMap;

use super::policy::{ClusterAffinity, FieldRequirement, Toleration};
use crate::names::ClusterId;

/// What placement knows of a member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterFact {
    /// The labels of its `Cluster`.
    pub labels: BTreeMap<String, String>,
    /// Where it is.
    pub provider: Option<String>,
    /// Where it is.
    pub region: Option<String>,
    /// Where it is.
    pub zones: Vec<String>,
    /// What keeps others away.
    pub taints: Vec<Taint>,
    /// Whether it is reachable and healthy, by its condition.
    pub ready: bool,
    /// Whether its own API is asked too what authors of policies may do there.
    pub asks_authors: bool,
}

/// What keeps others away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taint {
    /// What tolerations match.
    pub key: String,
    /// What tolerations match.
    pub value: String,
    /// What it does.
    pub effect: Effect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// What is there leaves, and nothing new comes.
    NoExecute,
    /// Nothing new comes.
    NoSchedule,
    /// It is only avoided.
    PreferNoSchedule,
}

impl Effect {
    /// As in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoExecute => "NoExecute",
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
        }
    }
}

/// Why a cluster is not chosen.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unfit {
    /// It is not among the names.
    NotNamed,
    /// It is excluded by name.
    Excluded,
    /// Its labels are others.
    Labels,
    /// It is somewhere else: the field.
    Place(String),
    /// A taint that is not tolerated.
    Tainted {
        /// Its key.
        key: String,
        /// Its effect.
        effect: &'static str,
    },
}

/// Whether a cluster is in an affinity, or why not.
pub fn fits(affinity: &ClusterAffinity, id: &ClusterId, cluster: &ClusterFact) -> Result<(), Unfit> {
    if affinity.exclude.iter().any(|name| name == id.as_str()) {
        return Err(Unfit::Excluded);
    }
    if !affinity.cluster_names.is_empty() && !affinity.cluster_names.iter().any(|name| name == id.as_str()) {
        return Err(Unfit::NotNamed);
    }
    if affinity.label_selector.as_ref().is_some_and(|labels| !labels.0.matches(&cluster.labels)) {
        return Err(Unfit::Labels);
    }
    let fields = affinity.field_selector.iter().flat_map(|fields| &fields.match_expressions);
    match fields.into_iter().find(|field| !holds(field, cluster)) {
        Some(field) => Err(Unfit::Place(field.key.clone())),
        None => Ok(()),
    }
}

fn holds(field: &FieldRequirement, cluster: &ClusterFact) -> bool {
    let values: Vec<&str> = match field.key.as_str() {
        "provider" => cluster.provider.iter().map(String::as_str).collect(),
        "region" => cluster.region.iter().map(String::as_str).collect(),
        "zone" => cluster.zones.iter().map(String::as_str).collect(),
        _ => return false,
    };
    let listed = |value: &&str| field.values.iter().any(|one| one == value);
    match field.operator.as_str() {
        "In" => values.iter().any(listed),
        "NotIn" => !values.iter().any(listed),
        "Exists" => !values.is_empty(),
        "DoesNotExist" => values.is_empty(),
        _ => false,
    }
}

/// Whether a cluster's taints let something come, or stay if it is `there` already.
pub fn tolerated(tolerations: &[Toleration], cluster: &ClusterFact, there: bool) -> Result<(), Unfit> {
    let matters = |taint: &&Taint| match taint.effect {
        Effect::NoExecute => true,
        Effect::NoSchedule => !there,
        Effect::PreferNoSchedule => false,
    };
    let untolerated = |taint: &&Taint| !tolerations.iter().any(|one| tolerates(one, taint));
    match cluster.taints.iter().filter(matters).find(untolerated) {
        Some(taint) => Err(Unfit::Tainted { key: taint.key.clone(), effect: taint.effect.as_str() }),
        None => Ok(()),
    }
}

fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.is_empty() || toleration.effect == taint.effect.as_str();
    let key = toleration.key.is_empty() || toleration.key == taint.key;
    let value = toleration.operator == "Exists" || toleration.value == taint.value;
    effect && key && value
}
