//! Rules about imports, derived Services and the conditions of exports.

use std::collections::BTreeSet;

use atoll_api::names::is_reserved;

use super::Broken;
use crate::facts::{Capabilities, NamespaceState};
use crate::intent::imports::Asked;
use crate::limits;
use crate::memory::{Offer, ServiceMemory};
use crate::names::{ClusterId, ServiceKey, ServiceName};
use crate::plan::{ExportStatus, Import, ImportPlan, Plan, WhyAbsent, WhyUntouched};
use crate::world::{Cluster, World};

fn valid_exports(memory: &ServiceMemory) -> BTreeSet<ClusterId> {
    memory.exports.iter().filter(|(_, export)| export.offer.is_some()).map(|(id, _)| id.clone()).collect()
}

/// Is the import where it should be, and only there?
pub(super) fn presence(
    world: &World,
    key: &ServiceKey,
    (id, cluster): (&ClusterId, &Cluster),
    import: &ImportPlan,
    report: &mut dyn FnMut(Broken),
) {
    let memory = world.memory.get(key);
    let exported = memory.is_some_and(|memory| !valid_exports(memory).is_empty());
    if cluster.heard.is_none() {
        if *import != ImportPlan::Untouched(WhyUntouched::NotHeard) {
            report(Broken::UnheardTouched);
        }
        return;
    }
    match (cluster.namespaces.get(&key.namespace), import) {
        (None, ImportPlan::Present { .. }) => report(Broken::NoNamespace),
        (None, ImportPlan::Absent(_) | ImportPlan::Untouched(_)) => {}
        (Some(NamespaceState::Terminating), import) => {
            if *import != ImportPlan::Untouched(WhyUntouched::NamespaceTerminating) {
                report(Broken::NamespaceTerminating);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Absent(WhyAbsent::Fenced(_))) => {
            if world.fences.around(&key.namespace).import(id).is_ok() {
                report(Broken::ImportMissing);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Present { .. }) => {
            if world.fences.around(&key.namespace).import(id).is_err() {
                report(Broken::CrossedFence { source: id.clone() });
            }
            if !exported {
                report(Broken::ImportOfNothing);
            }
            if !may_import(world, key, id) {
                report(Broken::ImportedUnasked);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Absent(WhyAbsent::NotAsked)) => {
            if may_import(world, key, id) {
                report(Broken::ImportMissing);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Untouched(WhyUntouched::PlacementUnknown)) => {
            if world.imports.asked.get(key) != Some(&Asked::Unplaced) {
                report(Broken::ImportMissing);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Absent(WhyAbsent::NotExported)) => {
            if exported {
                report(Broken::ImportMissing);
            } else if memory.is_none() && world.unheard().next().is_some() {
                report(Broken::DeletedInTheDark);
            }
        }
        (Some(NamespaceState::Active), ImportPlan::Absent(_) | ImportPlan::Untouched(_)) => {
            if exported {
                report(Broken::ImportMissing);
            }
        }
    }
}

/// Whether the hub lets a cluster import; not while that is not known.
fn may_import(world: &World, key: &ServiceKey, id: &ClusterId) -> bool {
    match world.imports.asked.get(key) {
        Some(Asked::Unplaced) => false,
        Some(Asked::To(to)) if to.clusters.contains(id) => true,
        Some(Asked::To(_)) | None => !world.imports.explicit.contains(&key.namespace),
    }
}

/// Is the import what the exports come to?
pub(super) fn contents(
    world: &World,
    key: &ServiceKey,
    cluster: &Cluster,
    capabilities: &Capabilities,
    import: &Import,
    report: &mut dyn FnMut(Broken),
) {
    let spec = &import.spec;
    let (mut names, mut numbers) = (BTreeSet::new(), BTreeSet::new());
    for port in &spec.ports {
        if !names.insert(&port.name) {
            report(Broken::DuplicatePortName(port.name.clone()));
        }
        if !numbers.insert((port.protocol, port.port)) {
            report(Broken::DuplicatePort(port.port));
        }
        if port.name.is_empty() && spec.ports.len() > 1 {
            report(Broken::UnnamedPort);
        }
    }
    for reserved in spec.labels.keys().chain(spec.annotations.keys()).filter(|key| is_reserved(key)) {
        report(Broken::ReservedKey(reserved.clone()));
    }
    if let Some(memory) = world.memory.get(key) {
        let want = valid_exports(memory);
        let got: BTreeSet<ClusterId> = import.clusters.iter().cloned().collect();
        if want != got || import.clusters.len() != got.len() {
            report(Broken::WrongClusters(want.symmetric_difference(&got).cloned().collect()));
        }
        let winner = memory.incumbent.as_ref().and_then(|incumbent| {
            let export = memory.exports.get(&incumbent.cluster)?;
            export.offer.as_deref().filter(|_| export.uid == incumbent.uid)
        });
        if !winner.is_some_and(|winner| follows(import, winner)) {
            report(Broken::NotTheWinners);
        }
    }
    let distinct: BTreeSet<_> = import.families.iter().collect();
    if distinct.is_empty() || distinct.len() != import.families.len() {
        report(Broken::WrongFamilies(import.families.clone()));
    }
    let Some(derived) = &import.derived else { return };
    for family in &derived.families {
        if !capabilities.families.contains(family) || !import.families.contains(family) {
            report(Broken::UnsupportedFamily(*family));
        }
    }
    if derived.families != import.families {
        report(Broken::WrongFamilies(derived.families.clone()));
    }
    let taken = |name: &ServiceName| {
        cluster.taken.contains(&ServiceKey { namespace: key.namespace.clone(), name: name.clone() })
    };
    if taken(&derived.name) {
        report(Broken::NameTaken(derived.name.clone()));
    }
}

fn follows(import: &Import, winner: &Offer) -> bool {
    let spec = &import.spec;
    spec.headless == winner.headless
        && spec.session_affinity == winner.session_affinity
        && spec.client_ip_timeout == winner.client_ip_timeout
        && spec.internal_traffic_policy == winner.internal_traffic_policy
        && spec.traffic_distribution == winner.traffic_distribution
}

/// Is each export told what all are told?
pub(super) fn status(
    world: &World,
    plan: &Plan,
    id: &ClusterId,
    status: Option<&ExportStatus>,
    report: &mut dyn FnMut(Broken),
) {
    let heard = world.clusters.get(id).is_some_and(|cluster| cluster.heard.is_some());
    let export = world.holding(&plan.service, id).and_then(|holding| holding.export.as_ref());
    match (export.filter(|_| heard), status) {
        (None, None) => {}
        (Some((export, _)), Some(status)) if export.uid == status.uid => {
            let told = plan
                .clusters
                .values()
                .filter_map(|cluster| cluster.export.as_ref())
                .filter(|s| s.valid.is_ok());
            let agrees =
                |other: &ExportStatus| other.conflicts.is_some() && other.conflicts == status.conflicts;
            let holding = world.holding(&plan.service, id);
            if status.valid.is_ok() && holding.is_some_and(|holding| limits::of_slices(holding).is_err()) {
                report(Broken::TooMuch);
            }
            if status.valid.is_ok() && !told.into_iter().all(agrees) {
                report(Broken::ConflictNotOnAll);
            }
        }
        (Some(_) | None, _) => report(Broken::StatusMissing),
    }
}
