//! What a cluster holds of a service: as an importer, and because of a `MultiClusterService`.

use atoll_api::explain::{Endpoints, Import, Remark};
use atoll_api::names::code::{Code, Severity};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::network::Family;
use atoll_engine::plan::{ClusterPlan, DispatchPlan, ImportPlan, SlicesFrom, WhyAbsent, WhyNotDispatched};
use atoll_engine::reason::{ImportReady, text};
use atoll_link::Problem;
use litemap::LiteMap;

use super::known::{Known, list, remark, rfc3339};
use super::member;
use super::service::Scope;
use super::sources::{Room, sources};
use crate::services::brain::words;

/// Remarks of members on their objects, at most.
const MOST: usize = 8;

/// The import of a service in a cluster.
pub(super) fn import(
    known: &Known<'_>,
    key: &ServiceKey,
    id: &ClusterId,
    (scope, room): (&Scope, &mut Room),
) -> Import {
    let Some(part) = known.part(key, id) else {
        let code = if known.brain.is_settling() { Code::Starting } else { unplanned(known, key, id) };
        return nothing(match code {
            Code::NotExported => unexported(known, key),
            _ => remark(code, code.meaning(), key, id), // the others have words of their own
        });
    };
    match &part.import {
        ImportPlan::Absent(WhyAbsent::NotExported) => nothing(unexported(known, key)),
        ImportPlan::Absent(why) => nothing(remark(why.code(), text::absent(*why), key, id)),
        ImportPlan::Untouched(why) => nothing(remark(why.code(), text::untouched(*why), key, id)),
        ImportPlan::Present { import, slices } => {
            let mut remarks = vec![remark(import.ready.code(), &text::import_ready(&import.ready), key, id)];
            remarks.extend(
                import.notes.iter().map(|note| remark(note.code(), &text::import_note(note), key, id)),
            );
            let (sources, endpoints) = sources(known, key, id, slices, &import.families, (scope, room));
            // What is kept unseen may well serve.
            if import.ready == ImportReady::Ready && endpoints.ready == 0 && all_known(slices) {
                remarks.push(unserved(known, key, id, endpoints));
            }
            remarks.extend(reported(known, key, id, part));
            let service = import.derived.as_ref().map(|derived| derived.name.to_string());
            Import { present: true, service, endpoints, remarks, sources }
        }
    }
}

/// What a `MultiClusterService` brings to a cluster, if there is one.
pub(super) fn dispatch(
    known: &Known<'_>,
    key: &ServiceKey,
    id: &ClusterId,
    (scope, room): (&Scope, &mut Room),
) -> Option<Import> {
    let plan = known.plan(key)?;
    let crossing = plan.crossing.as_ref()?;
    let part = plan.clusters.get(id)?;
    let provides =
        crossing.providers.contains(id).then(|| remark(Code::Provides, Code::Provides.meaning(), key, id));
    let mut import = match &part.dispatch {
        DispatchPlan::Absent(WhyNotDispatched::NotAsked | WhyNotDispatched::Refused)
            if provides.is_none() =>
        {
            return None;
        }
        DispatchPlan::Absent(why) => match why.code() {
            Some(code) => nothing(remark(code, text::not_dispatched(*why), key, id)),
            None => empty(),
        },
        DispatchPlan::Untouched(why) => nothing(remark(why.code(), text::untouched(*why), key, id)),
        DispatchPlan::Present(slices) => {
            let mut remarks = vec![remark(Code::Consumes, Code::Consumes.meaning(), key, id)];
            let (sources, endpoints) = sources(known, key, id, slices, &Family::BOTH, (scope, room));
            if known.brain.said(key, id).is_some_and(|said| said.pending) {
                remarks.push(remark(Code::WaitsForMember, Code::WaitsForMember.meaning(), key, id));
            }
            remarks.extend(reported(known, key, id, part));
            Import { present: true, service: Some(key.name.to_string()), endpoints, remarks, sources }
        }
    };
    import.remarks.extend(provides);
    Some(import)
}

/// Why nothing is planned for a cluster: nothing has come of the service, or nothing yet.
fn unplanned(known: &Known<'_>, key: &ServiceKey, id: &ClusterId) -> Code {
    let heard = known.world().clusters.get(id).is_some_and(|cluster| cluster.heard.is_some());
    match (known.engine().is_dirty(key), heard) {
        (true, _) => Code::NotPlannedYet,
        (false, true) => Code::NotExported,
        (false, false) => Code::NotHeard,
    }
}

/// No cluster exports the service: said by what there is of it.
fn unexported(known: &Known<'_>, key: &ServiceKey) -> Remark {
    let world = known.world();
    if world.intents.as_ref().is_some_and(|intents| intents.contains_key(key)) {
        let message = "No cluster exports the service; a MultiClusterService brings its endpoints.";
        return Remark { severity: Severity::Info, next: None, ..Remark::new(Code::NotExported, message) };
    }
    let holdings = world.services.get(key).into_iter().flatten();
    let invalid: Vec<&ClusterId> =
        holdings.filter(|(_, holding)| holding.export.is_some()).map(|(id, _)| id).collect();
    if invalid.is_empty() {
        return Remark::new(Code::NotExported, "No cluster exports the service.");
    }
    let message = format!("The ServiceExport in {} is not valid, and there is no other.", list(&invalid));
    let next = format!("See why: `atoll explain {} -n {} --in {}`.", key.name, key.namespace, invalid[0]);
    Remark::new(Code::NotExported, message).next(next)
}

/// Why clients get no answer although the service is imported.
fn unserved(known: &Known<'_>, key: &ServiceKey, id: &ClusterId, endpoints: Endpoints) -> Remark {
    let exporters = known.engine().merged(key).map_or(0, |merged| merged.clusters.len());
    let message = match (endpoints.not_ready, endpoints.refused) {
        (0, 0) => format!(
            "the service is imported, and none of the {exporters} exporting clusters gives it an endpoint"
        ),
        (0, refused) => format!("the service is imported, and all {refused} addresses are refused"),
        (not_ready, _) => format!("the service is imported, and none of its {not_ready} endpoints is ready"),
    };
    remark(Code::NothingToServe, &message, key, id)
}

fn all_known(slices: &LiteMap<ClusterId, SlicesFrom>) -> bool {
    slices.values().all(|from| match from {
        SlicesFrom::Exactly(..) | SlicesFrom::Nothing(_) => true,
        SlicesFrom::KeepWhatIsThere(_) => false,
    })
}

/// What stands in the way of what it should write.
fn reported<'a>(
    known: &'a Known<'_>,
    key: &'a ServiceKey,
    id: &'a ClusterId,
    part: &'a ClusterPlan,
) -> impl Iterator<Item = Remark> + 'a {
    let imported = match &part.import {
        ImportPlan::Present { slices, .. } => Some(slices),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => None,
    };
    let dispatched = match &part.dispatch {
        DispatchPlan::Present(slices) => Some(slices),
        DispatchPlan::Absent(_) | DispatchPlan::Untouched(_) => None,
    };
    let slice = move |name: &str| {
        let all = imported.into_iter().chain(dispatched).flat_map(|slices| slices.values());
        let lists = all.filter_map(|from| match from {
            SlicesFrom::Exactly(list, _) => Some(list),
            SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => None,
        });
        lists.flat_map(|list| list.iter()).any(|slice| slice.name.as_str() == name)
    };
    let its = move |problem: &Problem| match problem {
        Problem::Foreign { .. } | Problem::Refused { .. } => words::is_of(problem, key, slice),
        Problem::Forbidden { .. }
        | Problem::KindAbsent(_)
        | Problem::Unrepresentable { .. }
        | Problem::OtherProperty { .. } => false,
    };
    let problems = known.brain.problems(id, known.now).filter(move |(problem, _)| its(problem)).take(MOST);
    problems.map(move |(problem, since)| member::problem(problem, Some(key), id).since(rfc3339(since)))
}

fn nothing(why: Remark) -> Import {
    Import { remarks: vec![why], ..empty() }
}

fn empty() -> Import {
    Import {
        present: false,
        service: None,
        endpoints: Endpoints::default(),
        remarks: Vec::new(),
        sources: Vec::new(),
    }
}
