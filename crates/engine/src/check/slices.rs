//! Rules about the slices that an importer holds from each source.

use std::collections::BTreeSet;

use litemap::LiteMap;
use std::sync::Arc;

use super::Broken;
use crate::facts::Liveness;
use crate::memory::RememberedExport;
use crate::names::{ClusterId, ServiceKey, SliceName};
use crate::network::Family;
use crate::plan::{Import, Slice, SlicesFrom, StaleMark, WhyNothing};
use crate::world::{Holding, World};

/// Is everything held that should be, and nothing else?
pub(super) fn sources(
    world: &World,
    key: &ServiceKey,
    importer: &ClusterId,
    import: &Import,
    planned: &LiteMap<ClusterId, SlicesFrom>,
    report: &mut dyn FnMut(Broken),
) {
    let mut names: BTreeSet<&SliceName> = BTreeSet::new();
    let valid = |export: &&RememberedExport| export.offer.is_some();
    let export_of = |id| world.memory.get(key).and_then(|memory| memory.exports.get(id)).filter(valid);
    for (source, cluster) in &world.clusters {
        let retains = |export: &RememberedExport| {
            let own = export.offer.as_ref().and_then(|offer| offer.liveness);
            own.unwrap_or(world.settings.liveness) != Liveness::Withdraw
        };
        let (export, heard, source_id) = (export_of(source), cluster.heard.is_some(), || source.clone());
        let lost = cluster.contact.lost().filter(|_| source != importer);
        let mut stale = None;
        if world.fences.around(&key.namespace).export(source).is_err() {
            if planned.get(source).is_some() || import.stale.contains_key(source) {
                report(Broken::CrossedFence { source: source_id() });
            }
            continue;
        }
        match (planned.get(source), export) {
            (None, None) if heard => {}
            (Some(SlicesFrom::KeepWhatIsThere(_)), None) if !heard => {}
            (Some(_), None) if heard => report(Broken::NotAnExporter { source: source_id() }),
            (Some(SlicesFrom::KeepWhatIsThere(_)), Some(_)) if !heard => {
                stale = Some(lost.map_or(StaleMark::AsItWas, StaleMark::Since));
            }
            (Some(SlicesFrom::Nothing(WhyNothing::Withdrawn(_))), Some(export)) if lost.is_some() => {
                if retains(export) {
                    report(Broken::RetainedWithdrawn { source: source_id(), slice: None });
                }
            }
            (_, _) if !heard => report(Broken::UnheardWithdrawn { source: source_id() }),
            (
                None | Some(SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(WhyNothing::Withdrawn(_))),
                _,
            ) => {
                report(Broken::RetainedWithdrawn { source: source_id(), slice: None });
            }
            (Some(SlicesFrom::Nothing(WhyNothing::LocalFirst | WhyNothing::NoDerivedService)), _) => {
                stale = lost.map(StaleMark::Since);
            }
            (Some(SlicesFrom::Exactly(list, _)), _) => {
                stale = lost.map(StaleMark::Since);
                let holding = world.holding(key, source);
                for slice in &**list {
                    if !names.insert(&slice.name) {
                        report(Broken::DuplicateSlice { slice: slice.name.clone() });
                    }
                    one(world, import, source, source == importer, holding, slice, report);
                }
                complete(import, source, lost.is_some(), holding, list, report);
            }
        }
        if import.stale.get(source) != stale.as_ref() {
            report(Broken::WrongStaleMark { source: source_id() });
        }
    }
    for source in planned.keys().filter(|id| !world.clusters.contains_key(*id)) {
        report(Broken::NotAnExporter { source: source.clone() });
    }
}

fn complete(
    import: &Import,
    source: &ClusterId,
    lost: bool,
    holding: Option<&Holding>,
    list: &[Arc<Slice>],
    report: &mut dyn FnMut(Broken),
) {
    let held: BTreeSet<&SliceName> = list.iter().map(|slice| &slice.original).collect();
    let seen = holding.into_iter().flat_map(|holding| &holding.slices);
    for (name, fact) in seen {
        if import.families.contains(&fact.family) && !held.contains(name) {
            let (source, slice) = (source.clone(), name.clone());
            report(if lost {
                Broken::RetainedWithdrawn { source, slice: Some(slice) }
            } else {
                Broken::SliceMissing { source, slice }
            });
        }
    }
}

fn one(
    world: &World,
    import: &Import,
    source: &ClusterId,
    own: bool,
    holding: Option<&Holding>,
    slice: &Slice,
    report: &mut dyn FnMut(Broken),
) {
    let name = || slice.name.clone();
    let fact = holding.and_then(|holding| holding.slices.get(&slice.original));
    if slice.source != *source || fact.is_none() {
        report(Broken::WrongSource { slice: name() });
    }
    let mut ports = BTreeSet::new();
    for port in &slice.ports {
        let known = import.spec.ports.iter().any(|known| known.name == port.name);
        if !known || !ports.insert(&port.name) {
            report(Broken::WrongSlicePort { slice: name(), port: port.name.clone() });
        }
    }
    if !import.families.contains(&slice.family) {
        report(Broken::MixedFamilies { slice: name() });
    }
    for endpoint in &slice.endpoints {
        let given = fact.and_then(|fact| {
            fact.endpoints.iter().find(|e| endpoint.addresses.iter().all(|a| e.addresses.contains(a)))
        });
        for &address in &endpoint.addresses {
            if Family::of(address) != slice.family {
                report(Broken::MixedFamilies { slice: name() });
            } else if let Err(why) = super::borders::judge(world, source, address) {
                report(Broken::Forbidden { slice: name(), address, why });
            }
            if given.is_none() {
                report(Broken::Invented { slice: name(), address });
            }
        }
        if !own && (endpoint.node.is_some() || !endpoint.for_nodes.is_empty()) {
            report(Broken::ForeignNode { slice: name() });
        }
        if own && given.is_some_and(|given| given.node.is_some()) && endpoint.node.is_none() {
            report(Broken::NodeLost { slice: name() });
        }
        let asked = import.spec.traffic_distribution.is_some();
        let hinted = !endpoint.for_zones.is_empty() || !endpoint.for_nodes.is_empty();
        if (asked && endpoint.zone.is_some() && endpoint.for_zones.is_empty()) || (!asked && hinted) {
            report(Broken::WrongHint { slice: name() });
        }
    }
}
