//! Which clusters: affinity, taints, readiness, spread.

use std::collections::{BTreeMap, BTreeSet};

use super::affinity::{ClusterFact, Unfit, fits, tolerated};
use super::policy::{ClusterAffinity, Placement, SchedulingType, SpreadField};
use crate::names::ClusterId;

/// All members, by name.
pub type Clusters = BTreeMap<ClusterId, ClusterFact>;

/// Why no cluster was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nowhere {
    /// There is no member at all.
    NoMembers,
    /// None fits; of the last group that was tried.
    NoneFits(BTreeMap<ClusterId, Unfit>),
    /// Too few groups to spread over.
    TooFew {
        /// What makes a group.
        field: &'static str,
        /// How many are wanted.
        wanted: usize,
        /// How many there are.
        found: usize,
    },
    /// Groups can be made by one field beside `cluster`.
    TwoFields,
}

/// What was chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// The clusters.
    pub clusters: BTreeSet<ClusterId>,
    /// Which of the groups it was, where there are several.
    pub affinity: Option<String>,
}

/// Chooses clusters; those that were chosen `before` are preferred where there is a choice.
pub fn select(
    placement: &Placement,
    clusters: &Clusters,
    before: &BTreeSet<ClusterId>,
) -> Result<Selected, Nowhere> {
    if clusters.is_empty() {
        return Err(Nowhere::NoMembers);
    }
    if placement.cluster_affinities.is_empty() {
        let all = ClusterAffinity::default();
        let affinity = placement.cluster_affinity.as_ref().unwrap_or(&all);
        let clusters = within(affinity, placement, clusters, before)?;
        return Ok(Selected { clusters, affinity: None });
    }
    let mut last = Nowhere::NoMembers;
    for group in &placement.cluster_affinities {
        match within(&group.affinity, placement, clusters, before) {
            Ok(clusters) => return Ok(Selected { clusters, affinity: Some(group.affinity_name.clone()) }),
            Err(why) => last = why,
        }
    }
    Err(last)
}

fn within(
    affinity: &ClusterAffinity,
    placement: &Placement,
    clusters: &Clusters,
    before: &BTreeSet<ClusterId>,
) -> Result<BTreeSet<ClusterId>, Nowhere> {
    let mut unfit = BTreeMap::new();
    let mut fit: BTreeMap<&ClusterId, &ClusterFact> = BTreeMap::new();
    for (id, cluster) in clusters {
        let there = before.contains(id);
        let verdict = fits(affinity, id, cluster)
            .and_then(|()| tolerated(&placement.cluster_tolerations, cluster, there));
        match verdict {
            Ok(()) => drop(fit.insert(id, cluster)),
            Err(why) => drop(unfit.insert(id.clone(), why)),
        }
    }
    let divided = placement
        .replica_scheduling
        .as_ref()
        .is_some_and(|scheduling| scheduling.replica_scheduling_type == SchedulingType::Divided);
    if divided || !placement.spread_constraints.is_empty() {
        // Where there is a choice, nothing new goes to a cluster that is not ready.
        let usable = |id: &ClusterId, cluster: &ClusterFact| cluster.ready || before.contains(id);
        if fit.iter().any(|(id, cluster)| usable(id, cluster)) {
            fit.retain(|id, cluster| usable(id, cluster));
        }
    }
    if fit.is_empty() {
        return Err(Nowhere::NoneFits(unfit));
    }
    spread(placement, &fit, before)
}

fn spread(
    placement: &Placement,
    fit: &BTreeMap<&ClusterId, &ClusterFact>,
    before: &BTreeSet<ClusterId>,
) -> Result<BTreeSet<ClusterId>, Nowhere> {
    let constraints = &placement.spread_constraints;
    let mut by_place = constraints.iter().filter(|one| one.spread_by_field != SpreadField::Cluster);
    let of_clusters = constraints.iter().find(|one| one.spread_by_field == SpreadField::Cluster);
    let place = by_place.next();
    if by_place.next().is_some() {
        return Err(Nowhere::TwoFields);
    }
    // The order in which clusters are taken: what was chosen before, what is ready, the first by name.
    let liking = |id: &ClusterId| (!before.contains(id), !fit[id].ready, id.clone());
    let mut order: Vec<&ClusterId> = fit.keys().copied().collect();
    order.sort_by_key(|id| liking(id));

    if let Some(place) = place {
        let mut groups: BTreeMap<String, Vec<&ClusterId>> = BTreeMap::new();
        for id in &order {
            if let Some(group) = group_of(place.spread_by_field, fit[*id]) {
                groups.entry(group).or_default().push(id);
            }
        }
        let wanted = place.min_groups.max(1);
        if groups.len() < wanted {
            let field = place.spread_by_field.as_str();
            return Err(Nowhere::TooFew { field, wanted, found: groups.len() });
        }
        let mut groups: Vec<(String, Vec<&ClusterId>)> = groups.into_iter().collect();
        let held = |members: &[&ClusterId]| members.iter().filter(|id| before.contains(**id)).count();
        groups.sort_by_key(|(name, members)| {
            (std::cmp::Reverse(held(members)), std::cmp::Reverse(members.len()), name.clone())
        });
        if place.max_groups > 0 {
            groups.truncate(place.max_groups);
        }
        // One of each group, then the second of each, and so on: a limit of clusters then spoils no group.
        let longest = groups.iter().map(|(_, members)| members.len()).max().unwrap_or(0);
        order = (0..longest)
            .flat_map(|at| groups.iter().filter_map(move |(_, members)| members.get(at).copied()))
            .collect();
    }
    if let Some(limit) = of_clusters {
        let wanted = limit.min_groups.max(1);
        if order.len() < wanted {
            return Err(Nowhere::TooFew { field: "cluster", wanted, found: order.len() });
        }
        if limit.max_groups > 0 {
            order.truncate(limit.max_groups);
        }
    }
    Ok(order.into_iter().cloned().collect())
}

fn group_of(field: SpreadField, cluster: &ClusterFact) -> Option<String> {
    match field {
        SpreadField::Cluster => None,
        SpreadField::Region => cluster.region.clone(),
        SpreadField::Zone => cluster.zones.first().cloned(),
        SpreadField::Provider => cluster.provider.clone(),
    }
}
