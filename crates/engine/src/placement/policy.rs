//! What users ask for: policies, as their manifests say it. What we do not honour never gets here: admission refuses it.

use std::fmt;

use atoll_apimachinery::selector::labels::{Selector, from_object};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::object::Kind;

/// A policy by name. Those of a namespace come before those of the whole clusterset.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PolicyId {
    /// Its namespace; none for a `ClusterPropagationPolicy` or `ClusterOverridePolicy`.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl fmt::Display for PolicyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{namespace}/{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

/// `spec` of a `PropagationPolicy` or `ClusterPropagationPolicy`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PropagationSpec {
    /// What it speaks of.
    pub resource_selectors: Vec<ResourceSelector>,
    /// Where that goes.
    pub placement: Placement,
    /// Whether what it needs goes along.
    pub propagate_deps: bool,
    /// The higher wins.
    pub priority: i32,
    /// Whether it takes objects from a policy of lower priority that has them already.
    pub preemption: Preemption,
    /// What happens to an object that a member has already.
    pub conflict_resolution: ConflictResolution,
    /// What is held up.
    pub suspension: Suspension,
    /// Whether copies stay when the template goes.
    pub preserve_resources_on_deletion: bool,
}

/// Which objects: a name beats labels, labels beat nothing at all.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceSelector {
    /// Their kind.
    #[serde(flatten)]
    pub kind: Kind,
    /// Their namespace; any if none.
    #[serde(default)]
    pub namespace: String,
    /// Their name; any if none.
    #[serde(default)]
    pub name: String,
    /// Their labels; not asked if there is a name.
    #[serde(default)]
    pub label_selector: Option<LabelSelector>,
}

/// Where objects go.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Placement {
    /// Which clusters may be chosen; all if none.
    pub cluster_affinity: Option<ClusterAffinity>,
    /// Groups of clusters: the first that fits is taken.
    pub cluster_affinities: Vec<NamedAffinity>,
    /// Taints that do not matter.
    pub cluster_tolerations: Vec<Toleration>,
    /// How many clusters, regions and so on.
    pub spread_constraints: Vec<SpreadConstraint>,
    /// How replicas are divided; none: every cluster has them all.
    pub replica_scheduling: Option<ReplicaScheduling>,
}

/// A group of clusters with a name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedAffinity {
    /// Its name.
    pub affinity_name: String,
    /// The clusters.
    #[serde(flatten)]
    pub affinity: ClusterAffinity,
}

/// Clusters that fulfil everything that is said here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ClusterAffinity {
    /// By name; all if none.
    pub cluster_names: Vec<String>,
    /// But for these.
    pub exclude: Vec<String>,
    /// By the labels of the `Cluster`.
    pub label_selector: Option<LabelSelector>,
    /// By provider, region and zone.
    pub field_selector: Option<FieldSelector>,
}

/// By provider, region and zone.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FieldSelector {
    /// All must hold.
    pub match_expressions: Vec<FieldRequirement>,
}

/// What a field must be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct FieldRequirement {
    /// `provider`, `region` or `zone`.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Compared with.
    #[serde(default)]
    pub values: Vec<String>,
}

/// A taint that does not matter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Toleration {
    /// The taint's key; any if none.
    pub key: String,
    /// `Equal` (the default) or `Exists`.
    pub operator: String,
    /// The taint's value.
    pub value: String,
    /// The taint's effect; any if none.
    pub effect: String,
}

/// How many groups there are to be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SpreadConstraint {
    /// What makes a group.
    #[serde(default)]
    pub spread_by_field: SpreadField,
    /// No more than these; 0: no limit.
    #[serde(default)]
    pub max_groups: usize,
    /// No fewer than these.
    #[serde(default)]
    pub min_groups: usize,
}

/// What makes a group of clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SpreadField {
    /// Each cluster is one.
    #[default]
    Cluster,
    /// The region.
    Region,
    /// The first zone.
    Zone,
    /// The provider.
    Provider,
}

impl SpreadField {
    /// As in a manifest.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cluster => "cluster",
            Self::Region => "region",
            Self::Zone => "zone",
            Self::Provider => "provider",
        }
    }
}

/// How replicas are divided.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ReplicaScheduling {
    /// Divided or not.
    pub replica_scheduling_type: SchedulingType,
    /// How.
    pub replica_division_preference: DivisionPreference,
    /// In which proportion.
    pub weight_preference: Option<WeightPreference>,
}

/// Divided or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum SchedulingType {
    /// Every cluster has them all.
    Duplicated,
    /// All clusters together have them.
    #[default]
    Divided,
}

/// How replicas are divided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum DivisionPreference {
    /// Into as few clusters as can be.
    Aggregated,
    /// By weight.
    #[default]
    Weighted,
}

/// In which proportion.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WeightPreference {
    /// A cluster has the greatest weight of those that fit it; without any, all weigh the same.
    pub static_weight_list: Vec<StaticWeight>,
}

/// A weight for some clusters.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StaticWeight {
    /// The clusters.
    pub target_cluster: ClusterAffinity,
    /// Their weight.
    pub weight: i64,
}

/// Whether a policy takes objects from others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub enum Preemption {
    /// From those of lower priority.
    Always,
    /// It waits for objects that no other policy has.
    #[default]
    Never,
}

/// What happens to an object that a member has already, and that is not ours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ConflictResolution {
    /// It is left alone.
    #[default]
    Abort,
    /// It is taken over.
    Overwrite,
}

/// What is held up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Suspension {
    /// Everything.
    pub dispatching: bool,
    /// What goes to these clusters.
    pub dispatching_on_clusters: Option<SuspendedClusters>,
}

/// Clusters that nothing goes to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SuspendedClusters {
    /// Their names.
    pub cluster_names: Vec<String>,
}

impl Suspension {
    /// Whether nothing goes to this cluster.
    pub fn holds_up(&self, cluster: &str) -> bool {
        let listed = |clusters: &SuspendedClusters| clusters.cluster_names.iter().any(|name| name == cluster);
        self.dispatching || self.dispatching_on_clusters.as_ref().is_some_and(listed)
    }
}

/// A `LabelSelector`, as an API server reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelSelector(pub Selector);

impl<'de> Deserialize<'de> for LabelSelector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = Value::deserialize(deserializer)?;
        from_object(&object).map(Self).map_err(serde::de::Error::custom)
    }
}
