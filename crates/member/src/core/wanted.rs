//! What this cluster should hold, read off the plan: bodies of objects, as far as they can be made now.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::{annotation, condition, reason as reasons};
use atoll_apimachinery::conditions;
use atoll_engine::facts::{Pairs, SessionAffinity};
use atoll_engine::intent::Intent;
use atoll_engine::names::{ClusterId, ServiceKey, ServiceName, SliceName};
use atoll_engine::network::Family;
use atoll_engine::plan::{
    ClusterPlan, DerivedService, DispatchPlan, ExportStatus, Import, ImportPlan, Slice, SlicesFrom,
};
use atoll_engine::reason::{ImportReady, text};
use atoll_engine::time::Time;

use litemap::LiteMap;

use super::cache::Since;
use super::object::{ConditionBody, ImportBody, ImportStatusBody, ServiceBody};
use crate::stale;

/// The timeout that an API server gives to the session affinity `ClientIP` if it is told none.
const CLIENT_IP_TIMEOUT: u32 = 10800;

/// The slices of an intent by source, if the plan says what there should be.
fn sources(part: &ClusterPlan, intent: Intent) -> Option<&LiteMap<ClusterId, SlicesFrom>> {
    match (intent, &part.import, &part.dispatch) {
        (Intent::Export, ImportPlan::Present { slices, .. }, _) => Some(slices),
        (Intent::Export, ImportPlan::Absent(_) | ImportPlan::Untouched(_), _) => None,
        (Intent::CrossCluster, _, DispatchPlan::Present(slices)) => Some(slices),
        (Intent::CrossCluster, _, DispatchPlan::Absent(_) | DispatchPlan::Untouched(_)) => None,
    }
}

/// The slice of this name that should be held, and for which intent.
pub fn slice<'a>(part: &'a ClusterPlan, name: &SliceName) -> Option<(Intent, &'a Arc<Slice>)> {
    slices(part).find(|(_, slice)| slice.name == *name)
}

/// The slices that should be held, as far as the plan knows them.
pub fn slices(part: &ClusterPlan) -> impl Iterator<Item = (Intent, &Arc<Slice>)> {
    let of = |intent| slices_of(part, intent).map(move |slice| (intent, slice));
    of(Intent::Export).chain(of(Intent::CrossCluster))
}

/// The slices of one intent that should be held, as far as the plan knows them.
pub fn slices_of(part: &ClusterPlan, intent: Intent) -> impl Iterator<Item = &Arc<Slice>> {
    let sources = sources(part, intent).map(LiteMap::values);
    sources.into_iter().flatten().flat_map(|from| match from {
        SlicesFrom::Exactly(slices, _) => &slices[..],
        SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => &[],
    })
}

/// Whether the slices of this source stay as they are. One that does not say its source could be of any source.
pub fn keeps(part: &ClusterPlan, intent: Intent, source: Option<&ClusterId>) -> bool {
    let kept = |from: &SlicesFrom| matches!(from, SlicesFrom::KeepWhatIsThere(_));
    let untouched = match intent {
        Intent::Export => matches!(part.import, ImportPlan::Untouched(_)),
        Intent::CrossCluster => matches!(part.dispatch, DispatchPlan::Untouched(_)),
    };
    untouched
        || sources(part, intent).is_some_and(|slices| match source {
            Some(source) => slices.get(source).is_some_and(kept),
            None => slices.values().any(kept),
        })
}

/// The names that a slice of a source has in a plan.
pub fn names_of<'a>(
    part: Option<&'a ClusterPlan>,
    source: &'a ClusterId,
    original: &'a SliceName,
) -> impl Iterator<Item = SliceName> + 'a {
    let of = |intent| part.and_then(|part| sources(part, intent)?.get(source));
    let lists = [of(Intent::Export), of(Intent::CrossCluster)].into_iter().flatten();
    let slices = lists.flat_map(|from| match from {
        SlicesFrom::Exactly(slices, _) => &slices[..],
        SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => &[],
    });
    slices.filter(move |slice| slice.original == *original).map(|slice| slice.name.clone())
}

/// The derived Service.
pub fn service(key: &ServiceKey, import: &Import, derived: &DerivedService) -> ServiceBody {
    let spec = &import.spec;
    ServiceBody {
        name: derived.name.clone(),
        of: key.clone(),
        headless: spec.headless,
        ports: spec.ports.clone(),
        session_affinity: spec.session_affinity,
        client_ip_timeout: match spec.session_affinity {
            SessionAffinity::None => None,
            SessionAffinity::ClientIp => Some(spec.client_ip_timeout.unwrap_or(CLIENT_IP_TIMEOUT)),
        },
        internal_traffic_policy: spec.internal_traffic_policy,
        traffic_distribution: derived.traffic_distribution,
        families: derived.families.clone(),
        extras: false,
    }
}

/// The ServiceImport, with the addresses of the derived Service.
pub fn import(key: &ServiceKey, import: &Import, ips: &[IpAddr], stale_now: Option<&str>) -> ImportBody {
    let spec = &import.spec;
    let mut annotations: Pairs = spec.annotations.clone();
    if let Some(derived) = &import.derived {
        annotations.insert(annotation::DERIVED_SERVICE.into(), derived.name.as_str().into());
    }
    if let Some(marks) = stale::marks(&import.stale, stale_now) {
        annotations.insert(annotation::STALE_SINCE.into(), marks);
    }
    ImportBody {
        key: key.clone(),
        labels: spec.labels.clone(),
        annotations,
        headless: spec.headless,
        ports: spec.ports.clone(),
        ips: if spec.headless { Vec::new() } else { in_order(ips, &import.families) },
        families: import.families.clone(),
        session_affinity: spec.session_affinity,
        client_ip_timeout: spec.client_ip_timeout,
        internal_traffic_policy: spec.internal_traffic_policy,
        traffic_distribution: spec.traffic_distribution,
    }
}

/// The first address of each family, in the families' order.
pub fn in_order(ips: &[IpAddr], families: &[Family]) -> Vec<IpAddr> {
    let of = |family: &Family| ips.iter().find(|ip| Family::of(**ip) == *family).copied();
    families.iter().filter_map(of).collect()
}

/// How the derived Service of an import is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DerivedState<'a> {
    /// As it should be.
    Usable,
    /// Not there yet.
    Awaited,
    /// The API server does not take it; its words.
    Refused(&'a str),
}

/// Since when which sources of an import are stale, and which sources are withdrawn. `marks` are those that stand on the object.
pub fn lost_sources(
    plan: &ImportPlan,
    marks: Option<&str>,
) -> (BTreeMap<ClusterId, String>, BTreeSet<ClusterId>) {
    let ImportPlan::Present { import, .. } = plan else { return Default::default() };
    (stale::times(stale::marks(&import.stale, marks).as_deref()), super::notices::withdrawn(plan))
}

/// The status of the ServiceImport.
pub fn import_status(
    import: &Import,
    derived: DerivedState<'_>,
    (stale, lost): (&BTreeMap<ClusterId, String>, &BTreeSet<ClusterId>),
    before: &[Since],
    now: Time,
) -> ImportStatusBody {
    let (status, reason, message) = match (&import.ready, derived) {
        (ImportReady::Ready, DerivedState::Usable) => {
            let none_left =
                !import.clusters.is_empty() && import.clusters.iter().all(|one| lost.contains(one));
            let reason = match (none_left, stale.is_empty()) {
                (true, _) => reasons::import::SOURCES_LOST,
                (false, false) => reasons::import::SOURCES_STALE,
                (false, true) => reasons::import::READY,
            };
            (!none_left, reason.to_owned(), text::imported_message(import, stale, lost))
        }
        (ImportReady::Ready, DerivedState::Awaited) => {
            (false, reasons::import::PENDING.to_owned(), crate::text::DERIVED_SERVICE_AWAITED.to_owned())
        }
        (ImportReady::Ready, DerivedState::Refused(why)) => {
            let name = import.derived.as_ref().map_or("", |derived| derived.name.as_str());
            (false, reasons::import::REFUSED.to_owned(), crate::text::derived_service_refused(name, why))
        }
        (
            other @ (ImportReady::IpFamilyNotSupported { .. }
            | ImportReady::NamesTaken { .. }
            | ImportReady::NoPortAsked { .. }),
            _,
        ) => (false, other.as_str().to_owned(), text::import_message(other, &import.notes)),
    };
    let ready = dated(condition::import::READY, status, reason, message, before, now);
    ImportStatusBody {
        clusters: import.clusters.to_vec(),
        conditions: vec![ready],
        slices: Some(import.derived.is_some()),
    }
}

/// The conditions of a ServiceExport, by type.
pub fn export_status(
    status: &ExportStatus,
    (key, here, imports): (&ServiceKey, &ClusterId, bool),
    before: &[Since],
    now: Time,
) -> Vec<ConditionBody> {
    use atoll_engine::reason::ExportReady;
    let valid_reason =
        status.valid.map_or_else(atoll_engine::reason::Invalid::as_str, |()| reasons::export::VALID);
    let mut conditions = Vec::with_capacity(3);
    if let Some(conflicts) = &status.conflicts {
        conditions.push(dated(
            condition::export::CONFLICT,
            !conflicts.is_empty(),
            text::conflict_reason(conflicts),
            text::conflict_message(conflicts),
            before,
            now,
        ));
    }
    conditions.push(dated(
        condition::export::READY,
        matches!(status.ready, ExportReady::Exported { .. }),
        status.ready.as_str().to_owned(),
        text::exported_message(status, &key.namespace, here, imports),
        before,
        now,
    ));
    conditions.push(dated(
        condition::export::VALID,
        status.valid.is_ok(),
        valid_reason.to_owned(),
        text::valid_message(status.valid).into_owned(),
        before,
        now,
    ));
    conditions
}

/// The conditions of a ServiceExport with a name that no Service can have, by type.
pub fn misnamed_status(name: &str, before: &[Since], now: Time) -> Vec<ConditionBody> {
    use atoll_engine::reason::{ExportFailed, ExportReady, Invalid};
    let ready = ExportReady::Failed(ExportFailed::Invalid(Invalid::NoService)).as_str();
    let message = || crate::text::misnamed(name);
    vec![
        dated(condition::export::READY, false, ready.to_owned(), message(), before, now),
        dated(
            condition::export::VALID,
            false,
            Invalid::NoService.as_str().to_owned(),
            message(),
            before,
            now,
        ),
    ]
}

/// A condition that keeps its time while its status stays.
fn dated(
    kind: &'static str,
    status: bool,
    reason: String,
    message: String,
    before: &[Since],
    now: Time,
) -> ConditionBody {
    let old = before.iter().find(|Since(of, ..)| **of == *kind).map(|Since(_, was, at, _)| (was, *at));
    let since = conditions::since(old, &Some(status), now);
    ConditionBody { kind: kind.into(), status: Some(status), reason, message: cut(message), since }
}

/// What the API takes for a message.
fn cut(mut message: String) -> String {
    const LONGEST: usize = 32_000;
    if message.len() > LONGEST {
        message.truncate(message.floor_char_boundary(LONGEST));
    }
    message
}

/// The derived Service that the import should have.
pub fn derived(import: &ImportPlan) -> Option<(&Arc<Import>, Option<&DerivedService>)> {
    match import {
        ImportPlan::Present { import, .. } => Some((import, import.derived.as_ref())),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => None,
    }
}

/// The name of the derived Service that the import should have.
pub fn derived_name(import: &ImportPlan) -> Option<&ServiceName> {
    derived(import)?.1.map(|derived| &derived.name)
}
