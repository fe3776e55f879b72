//! Rules about what a `MultiClusterService` brings to its consumers.

use std::collections::BTreeSet;

use litemap::LiteMap;

use super::Broken;
use crate::facts::{Liveness, NamespaceState};
use crate::intent::CrossCluster;
use crate::names::{ClusterId, ServiceKey, SliceName};
use crate::plan::{ClusterPlan, DispatchPlan, ImportPlan, Slice, SlicesFrom, WhyNothing};
use crate::services::mcs;
use crate::world::{Cluster, World};

/// Is everything dispatched that should be, and nothing else?
pub(super) fn dispatch(
    world: &World,
    key: &ServiceKey,
    id: &ClusterId,
    cluster: &Cluster,
    planned: &ClusterPlan,
    report: &mut dyn FnMut(Broken),
) {
    let fence = world.fences.around(&key.namespace);
    let never = key.is_kubernetes_api() || fence.closed().is_some();
    let asked = world.intents.as_ref().map(|intents| intents.get(key).filter(|_| !never));
    let consumer = asked.is_some_and(|asked| asked.is_some_and(|asked| asked.consumers.contains(id)));
    let consumer = consumer && fence.import(id).is_ok();
    let state = cluster.namespaces.get(&key.namespace);
    let provides = asked.is_some_and(|asked| asked.is_some_and(|asked| asked.providers.contains(id)));
    let provides = provides && fence.export(id).is_ok();
    let frozen = asked.is_some_and(|asked| asked.is_some_and(|asked| asked.frozen));
    if frozen {
        // Only the operator's fences take anything away.
        match &planned.dispatch {
            DispatchPlan::Untouched(_) => {}
            DispatchPlan::Present(_) => report(Broken::DispatchedUnasked),
            DispatchPlan::Absent(_) if fence.import(id).is_err() => {}
            DispatchPlan::Absent(_) => report(Broken::DispatchMissing),
        }
        return;
    }
    if provides && !planned.follow {
        report(Broken::ProviderNotFollowed);
    }
    let held = match (&planned.dispatch, asked) {
        (DispatchPlan::Present(held), Some(Some(asked))) if consumer => Some((held, asked)),
        (DispatchPlan::Present(_), _) => {
            report(Broken::DispatchedUnasked);
            None
        }
        (DispatchPlan::Absent(_), None) => {
            report(Broken::DeletedInTheDark);
            None
        }
        (DispatchPlan::Absent(_), Some(_)) => {
            if consumer && (cluster.heard.is_none() || state.is_some()) {
                report(Broken::DispatchMissing);
            }
            None
        }
        (DispatchPlan::Untouched(_), _) => {
            let active = cluster.heard.is_some() && state == Some(&NamespaceState::Active);
            if asked.is_some() && consumer && active {
                report(Broken::DispatchMissing);
            }
            None
        }
    };
    if let Some((held, asked)) = held {
        match (&cluster.heard, state) {
            (None, _) => report(Broken::UnheardTouched),
            (Some(_), None) => report(Broken::NoNamespace),
            (Some(_), Some(NamespaceState::Terminating)) => report(Broken::NamespaceTerminating),
            (Some(_), Some(NamespaceState::Active)) => {
                sources(world, key, id, asked, planned, held, report);
            }
        }
    }
}

fn sources(
    world: &World,
    key: &ServiceKey,
    consumer: &ClusterId,
    asked: &CrossCluster,
    planned: &ClusterPlan,
    held: &LiteMap<ClusterId, SlicesFrom>,
    report: &mut dyn FnMut(Broken),
) {
    let fence = world.fences.around(&key.namespace);
    let mut names: BTreeSet<&SliceName> = BTreeSet::new();
    if let ImportPlan::Present { slices, .. } = &planned.import {
        for from in slices.values() {
            if let SlicesFrom::Exactly(list, _) = from {
                names.extend(list.iter().map(|slice| &slice.name)); // one namespace holds both kinds
            }
        }
    }
    for (source, from) in held {
        let named = || source.clone();
        let Some(cluster) = world.clusters.get(source) else {
            report(Broken::NotAnExporter { source: named() });
            continue;
        };
        if source == consumer || !asked.providers.contains(source) {
            report(Broken::NotAnExporter { source: named() });
        }
        if fence.export(source).is_err() {
            report(Broken::CrossedFence { source: named() });
        }
        let holding = world.holding(key, source);
        let known = cluster.heard.is_some() && holding.is_some_and(|holding| holding.followed);
        let retains = asked.liveness.unwrap_or(world.settings.liveness) != Liveness::Withdraw;
        match from {
            SlicesFrom::Nothing(WhyNothing::Withdrawn(_)) => {
                if retains || cluster.contact.lost().is_none() {
                    report(Broken::RetainedWithdrawn { source: named(), slice: None });
                }
            }
            SlicesFrom::KeepWhatIsThere(_) => {}
            SlicesFrom::Nothing(_) | SlicesFrom::Exactly(..) if !known => {
                report(Broken::UnheardWithdrawn { source: named() });
            }
            SlicesFrom::Nothing(_) => {}
            SlicesFrom::Exactly(list, _) => {
                let too_much = holding.is_some_and(|holding| mcs::within_limits(&fence, holding).is_err());
                if too_much {
                    if !list.is_empty() {
                        report(Broken::TooMuch);
                    }
                    continue;
                }
                let facts = || holding.into_iter().flat_map(|holding| &holding.slices);
                for (name, _) in facts().filter(|(name, _)| list.iter().all(|s| s.original != **name)) {
                    report(Broken::SliceMissing { source: named(), slice: name.clone() });
                }
                for slice in &**list {
                    if !names.insert(&slice.name) {
                        report(Broken::DuplicateSlice { slice: slice.name.clone() });
                    }
                    let fact = facts().find(|(name, _)| **name == slice.original);
                    if slice.source != *source || fact.is_none() {
                        report(Broken::WrongSource { slice: slice.name.clone() });
                    }
                    one(world, asked, slice, report);
                    let given = |address| {
                        fact.is_some_and(|(_, fact)| {
                            fact.endpoints.iter().any(|e| e.addresses.contains(address))
                        })
                    };
                    for address in slice.endpoints.iter().flat_map(|e| &e.addresses).filter(|a| !given(a)) {
                        report(Broken::Invented { slice: slice.name.clone(), address: *address });
                    }
                }
            }
        }
    }
    let provides = |id: &&ClusterId| asked.providers.contains(id) && fence.export(id).is_ok();
    for source in world.clusters.keys().filter(|id| provides(id) && *id != consumer) {
        if held.get(source).is_none() {
            report(Broken::UnheardWithdrawn { source: source.clone() });
        }
    }
}

fn one(world: &World, asked: &CrossCluster, slice: &Slice, report: &mut dyn FnMut(Broken)) {
    let name = || slice.name.clone();
    for endpoint in &slice.endpoints {
        if endpoint.node.is_some() || !endpoint.for_nodes.is_empty() {
            report(Broken::ForeignNode { slice: name() });
        }
        if endpoint.hostname.is_some() && !asked.hostnames {
            report(Broken::ForeignHostname { slice: name() });
        }
        for &address in &endpoint.addresses {
            if let Err(why) = super::borders::judge(world, &slice.source, address) {
                report(Broken::Forbidden { slice: name(), address, why });
            }
        }
    }
    let mut seen = BTreeSet::new();
    for port in slice.ports.iter().filter(|port| !seen.insert(&port.name)) {
        report(Broken::WrongSlicePort { slice: name(), port: port.name.clone() });
    }
}
