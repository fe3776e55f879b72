//! The whole of a service: verdict first, then each member.

use atoll_api::explain::{ClusterPart, Header, Port, Remark, ServiceExplanation, worst};
use atoll_api::names::code::{Code, Severity};
use atoll_api::names::kind::explain as names;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{DispatchPlan, ImportPlan};
use atoll_engine::reason::text;

use super::known::{Known, rfc3339};
use super::sources::Room;
use super::{conflicts, crossing, export, import, member};
use crate::services::brain::Unwritten;

/// Addresses that one answer lists, at most. All are counted.
pub(super) const MOST_CANDIDATES: usize = 2000;
/// Where `atoll dns` answers.
const ZONE: &str = "clusterset.local";

/// What of a service is asked for.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    /// What this cluster holds; all clusters, if none.
    pub(super) into: Option<ClusterId>,
    /// What comes from this source; all, if none.
    pub(super) from: Option<ClusterId>,
    /// Addresses that are listed, at most.
    pub(super) candidates: usize,
}

impl Scope {
    fn shows(&self, id: &ClusterId) -> bool {
        match (&self.into, &self.from) {
            (None, None) => true,
            (into, from) => into.as_ref() == Some(id) || from.as_ref() == Some(id),
        }
    }
}

/// Why a service is as it is.
pub(super) fn explain(known: &Known<'_>, key: &ServiceKey, scope: &Scope) -> ServiceExplanation {
    let mut room = Room::of(scope);
    let mut clusters = Vec::new();
    for id in known.world().clusters.keys().filter(|id| scope.shows(id)) {
        let export = export::export(known, key, id);
        let target = scope.into.as_ref().is_none_or(|into| into == id);
        // Of a cluster that is asked for as a source only, its own addresses are of no interest.
        let (no_room, nothing) = (&mut Room::of(&Scope::default()), Scope::default());
        let import =
            import::import(known, key, id, if target { (scope, &mut room) } else { (&nothing, no_room) });
        let dispatch = if target { import::dispatch(known, key, id, (scope, &mut room)) } else { None };
        let member = member::remarks(known, id);
        clusters.push(ClusterPart { cluster: id.to_string(), member, export, import, dispatch });
    }
    let merged = known.engine().merged(key);
    let port = |port: &atoll_engine::facts::ServicePort| Port {
        name: port.name.to_string(),
        protocol: port.protocol.as_str().to_owned(),
        port: port.port,
    };
    let ports = merged.map(|merged| merged.spec.ports.iter().map(port).collect());
    let mut explanation = ServiceExplanation {
        header: Header::new(names::SERVICE_EXPLANATION, Some(key.namespace.as_str()), key.name.as_str()),
        at: rfc3339(known.now.time),
        clusterset: known.about.clusterset.clone(),
        verdict: Remark::of(Code::Healthy),
        pending: pending(known, key),
        names: dns_names(known, key),
        kind: merged.map(|merged| text::import_type(merged.spec.headless).to_owned()),
        ports: ports.unwrap_or_default(),
        conflicts: conflicts::conflicts(known, key),
        clusters,
        multi_cluster_service: crossing::crossing(known, key),
        template: None,
    };
    explanation.verdict = verdict(known, key, &explanation);
    explanation
}

/// What the hub waits for.
fn pending(known: &Known<'_>, key: &ServiceKey) -> Vec<Remark> {
    let mut pending = Vec::new();
    if known.brain.is_settling() {
        pending.push(Remark::of(Code::Starting));
    } else if known.engine().is_dirty(key) {
        pending.push(Remark::of(Code::NotPlannedYet));
    }
    match known.brain.unwritten(key) {
        Some(Unwritten::Waits) => pending.push(Remark::of(Code::WaitsForHubApi)),
        Some(Unwritten::Refused) => pending.push(Remark::new(
            Code::WaitsForHubApi,
            "The hub's API refuses to store the hub's memory of this service. Plans are carried out, and may change after a restart of the hub.",
        )),
        None => {}
    }
    pending
}

/// Under which names clients find it.
fn dns_names(known: &Known<'_>, key: &ServiceKey) -> Vec<String> {
    let Some(plan) = known.plan(key) else { return Vec::new() };
    let mut names = Vec::new();
    let svc = format!("{}.{}.svc", key.name, key.namespace);
    let imported = plan.clusters.values().any(|part| match &part.import {
        ImportPlan::Present { import, .. } => import.derived.is_some(),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => false,
    });
    if imported {
        names.push(format!("{svc}.{ZONE}"));
        if known.engine().merged(key).is_some_and(|merged| merged.spec.headless) {
            names.push(format!("HOSTNAME.CLUSTER.{svc}.{ZONE}"));
        }
    }
    let dispatched = plan.clusters.values().any(|part| match &part.dispatch {
        DispatchPlan::Present(_) => true,
        DispatchPlan::Absent(_) | DispatchPlan::Untouched(_) => false,
    });
    if dispatched {
        names.push(svc);
    }
    names
}

/// The worst of all. Of what is equally bad a cause comes before what follows from it: exporters first, then what they disagree on, then
/// importers, and members that take no part last.
fn verdict(known: &Known<'_>, key: &ServiceKey, all: &ServiceExplanation) -> Remark {
    let exporters = || all.clusters.iter().filter(|part| part.export.is_some());
    let takes_part =
        |part: &&ClusterPart| part.export.is_some() || part.import.present || part.dispatch.is_some();
    // Who exports it may be out of sight, where one cluster is asked for.
    let exported = exporters().any(|part| part.export.as_ref().is_some_and(|export| export.valid))
        || known.engine().merged(key).is_some_and(|merged| !merged.clusters.is_empty());
    let asked = all.multi_cluster_service.is_some();
    let cause = exporters().flat_map(|part| part.member.iter());
    // That exports disagree is said with who won, below.
    let disputed = |remark: &&Remark| all.conflicts.iter().any(|conflict| conflict.code == remark.code);
    let exports = exporters().flat_map(|part| part.export.iter().flat_map(|export| &export.remarks));
    let exports = exports.filter(|remark| !disputed(remark));
    // Where nothing is exported, any member could be the one that should.
    let others = all.clusters.iter().filter(|part| !exported || takes_part(part));
    let dark = others.clone().filter(|_| !exported).flat_map(|part| &part.member);
    let crossing = all.multi_cluster_service.iter().flat_map(|crossing| &crossing.remarks);
    let held = |import: &atoll_api::explain::Import| {
        let remarks: Vec<Remark> = import.remarks.clone();
        let sources = import.sources.iter().flat_map(|source| source.remarks.iter().cloned());
        remarks.into_iter().chain(sources).collect::<Vec<_>>()
    };
    // A service that is not exported at all is not imported anywhere: said once, and not where a MultiClusterService brings it.
    let not_exported = |remark: &Remark| remark.code == Code::NotExported;
    let imports: Vec<Remark> = all
        .clusters
        .iter()
        .flat_map(|part| {
            let imports = if exported || !asked { held(&part.import) } else { Vec::new() };
            imports.into_iter().chain(part.dispatch.iter().flat_map(held))
        })
        .collect();
    let own = imports.iter().filter(|remark| !not_exported(remark));
    let members = others.flat_map(|part| &part.member);
    let pending = &all.pending;
    let invalid = !exported && exporters().next().is_some();
    let nowhere = (!exported && !asked && !invalid && pending.is_empty()).then(|| nowhere(known, key));
    // What is wrong with the service itself is not hidden by the state of members that only take part in it, or could.
    let follows = |remark: &&Remark| remark.code == Code::NotHeard;
    let of_service = cause
        .clone()
        .chain(exports.clone())
        .chain(&all.conflicts)
        .chain(crossing.clone())
        .chain(own.clone().filter(|remark| !follows(remark)));
    if let Some(remark) = worst(of_service).filter(|remark| remark.severity > Severity::Info) {
        return remark.clone();
    }
    let candidates = cause
        .chain(exports)
        .chain(dark)
        .chain(&all.conflicts)
        .chain(crossing)
        .chain(&nowhere)
        .chain(own)
        .chain(members)
        .chain(pending);
    match worst(candidates) {
        Some(remark) if remark.severity > Severity::Info => remark.clone(),
        Some(_) | None => match pending.first() {
            Some(waits) => waits.clone(),
            None => well(known, key, all, exported),
        },
    }
}

/// No cluster exports it.
fn nowhere(known: &Known<'_>, key: &ServiceKey) -> Remark {
    let remark = Remark::new(Code::NotExported, format!("No cluster exports {key}."));
    if let Some(original) = super::list::derived_from(known, key) {
        let message =
            format!("{key} is the derived Service of the import {original}. It is not exported itself.");
        let next = format!("See the service: `atoll explain {} -n {}`.", original.name, original.namespace);
        return Remark::new(Code::NotExported, message).next(next);
    }
    let mut clusters = known.world().clusters.values();
    if clusters.all(|cluster| cluster.heard.is_some() && !cluster.namespaces.contains_key(&key.namespace)) {
        let message = format!("No cluster exports {key}: no cluster has namespace {}.", key.namespace);
        return Remark::new(Code::NotExported, message)
            .next(format!("Check the spelling of namespace {}, or create it in a cluster, with the Service and a ServiceExport.", key.namespace));
    }
    let alike = super::list::alike(known, key);
    let create = format!(
        "Create a ServiceExport {} in namespace {}, in a cluster that has the Service.",
        key.name, key.namespace
    );
    match alike.is_empty() {
        true => remark.next(create),
        false => remark.next(format!("Check the spelling: there is {}. {create}", alike.join(", "))),
    }
}

fn well(known: &Known<'_>, key: &ServiceKey, all: &ServiceExplanation, exported: bool) -> Remark {
    let named = |clusters: Vec<&str>| {
        const MOST: usize = 5;
        let more = clusters.len().saturating_sub(MOST);
        let named = clusters.into_iter().take(MOST).collect::<Vec<_>>().join(", ");
        if more > 0 { format!("{named} and {more} more") } else { named }
    };
    let with = |is: fn(&ClusterPart) -> bool| -> Vec<&str> {
        all.clusters.iter().filter(|part| is(part)).map(|part| part.cluster.as_str()).collect()
    };
    let merged = known.engine().merged(key).into_iter();
    let exporters = merged.flat_map(|merged| merged.clusters.iter()).map(ClusterId::as_str).collect();
    let importers = with(|part| part.import.present);
    let consumers = with(|part| part.dispatch.as_ref().is_some_and(|dispatch| dispatch.present));
    let balanced = all.multi_cluster_service.iter().flat_map(|crossing| &crossing.remarks);
    if exported {
        let message = format!("Exported by {}; imported by {}.", named(exporters), named(importers));
        return Remark::new(Code::Imported, message);
    }
    if let Some(balanced) = balanced.into_iter().find(|remark| remark.code == Code::Balanced) {
        return balanced.clone();
    }
    Remark::new(Code::Consumes, format!("{} get the endpoints of the MultiClusterService.", named(consumers)))
}
