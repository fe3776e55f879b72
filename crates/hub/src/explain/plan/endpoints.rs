//! Which endpoints come to an importer, and which go.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use atoll_api::explain::plan::EndpointChange;
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{ClusterPlan, Endpoint, ImportPlan};
use atoll_member::core::wanted;

type ByAddress<'a> = BTreeMap<IpAddr, Vec<&'a Endpoint>>;

/// The changes in one cluster, by source. What comes through an export and through a `MultiClusterService` is named once.
pub(super) fn changes(
    key: &ServiceKey,
    before: Option<&ClusterPlan>,
    after: Option<&ClusterPlan>,
) -> Vec<EndpointChange> {
    let (was, is) = (held(before), held(after));
    let mut sources: BTreeSet<&ClusterId> = was.keys().chain(is.keys()).map(|(source, _)| *source).collect();
    let awaited = awaited(before, after);
    sources.extend(&awaited);
    let mut changes = Vec::new();
    for source in sources {
        let mut change = EndpointChange {
            service: key.to_string(),
            source: source.to_string(),
            added: Vec::new(),
            changed: Vec::new(),
            removed: Vec::new(),
            awaited: awaited.contains(source),
        };
        let mut marks: BTreeMap<IpAddr, [bool; 3]> = BTreeMap::new();
        for intent in [Intent::Export, Intent::CrossCluster] {
            let keeps = |part: Option<&ClusterPlan>| {
                part.is_some_and(|part| wanted::keeps(part, intent, Some(source)))
            };
            if keeps(after) {
                continue; // whatever is there stays
            }
            let none = BTreeMap::new();
            let was = was.get(&(source, intent)).unwrap_or(&none);
            let is = is.get(&(source, intent)).unwrap_or(&none);
            for address in was.keys().chain(is.keys()) {
                let [added, changed, removed] = marks.entry(*address).or_default();
                match (was.get(address), is.get(address)) {
                    (None, Some(_)) => *added = true,
                    (Some(_), None) => *removed = true,
                    (Some(was), Some(is)) => *changed |= was != is,
                    (None, None) => {}
                }
            }
        }
        for (address, mark) in marks {
            match mark {
                [false, false, false] => {}
                [true, false, false] => change.added.push(address.to_string()),
                [false, false, true] => change.removed.push(address.to_string()),
                [_, _, _] => change.changed.push(address.to_string()),
            }
        }
        let any = [&change.added, &change.changed, &change.removed].iter().any(|list| !list.is_empty());
        if any || change.awaited {
            changes.push(change);
        }
    }
    changes
}

/// What a cluster holds, by source and address.
fn held(part: Option<&ClusterPlan>) -> BTreeMap<(&ClusterId, Intent), ByAddress<'_>> {
    let mut held: BTreeMap<(&ClusterId, Intent), ByAddress<'_>> = BTreeMap::new();
    for (intent, slice) in part.into_iter().flat_map(wanted::slices) {
        let of_source = held.entry((&slice.source, intent)).or_default();
        for endpoint in &slice.endpoints {
            for address in &endpoint.addresses {
                of_source.entry(*address).or_default().push(endpoint);
            }
        }
    }
    held
}

/// Clusters that export from here on, and have no endpoint yet.
fn awaited(before: Option<&ClusterPlan>, after: Option<&ClusterPlan>) -> BTreeSet<ClusterId> {
    let exporters = |part: Option<&ClusterPlan>| match part.map(|part| &part.import) {
        Some(ImportPlan::Present { import, .. }) if import.derived.is_some() => import.clusters.to_vec(),
        Some(ImportPlan::Present { .. } | ImportPlan::Absent(_) | ImportPlan::Untouched(_)) | None => {
            Vec::new()
        }
    };
    let was = exporters(before);
    let Some(part) = after else { return BTreeSet::new() };
    let has = |source: &ClusterId| {
        wanted::keeps(part, Intent::Export, Some(source))
            || wanted::slices_of(part, Intent::Export)
                .any(|slice| slice.source == *source && !slice.endpoints.is_empty())
    };
    let withheld = |source: &ClusterId| match &part.import {
        ImportPlan::Present { slices, .. } => {
            matches!(slices.get(source), Some(atoll_engine::plan::SlicesFrom::Nothing(_)))
        }
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => true,
    };
    let new = exporters(after).into_iter().filter(|source| !was.contains(source));
    new.filter(|source| !has(source) && !withheld(source)).collect()
}
