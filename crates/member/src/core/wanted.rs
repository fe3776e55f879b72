//! What this cluster should hold, read off the plan: bodies of objects, as far as they can be made now.

use std::net::IpAddr;
use std::sync::Arc;

use atoll_api::names::{annotation, condition, reason as reasons};
use atoll_engine::facts::{Pairs, SessionAffinity};
use atoll_engine::names::{ClusterId, ServiceKey, ServiceName, SliceName};
use atoll_engine::network::Family;
use atoll_engine::plan::{DerivedService, ExportStatus, Import, ImportPlan, Plan, Slice, SlicesFrom};
use atoll_engine::reason::{ImportReady, text};
use atoll_engine::time::Time;

use super::cache::Since;
use super::object::{ConditionBody, ImportBody, ImportStatusBody, ServiceBody};
use crate::stale;

/// The timeout that an API server gives to the session affinity `ClientIP` if it is told none.
const CLIENT_IP_TIMEOUT: u32 = 10800;

/// The part of a plan that is one importer's.
pub fn import_plan<'a>(plan: Option<&'a Arc<Plan>>, me: &ClusterId) -> Option<&'a ImportPlan> {
    Some(&plan?.clusters.get(me)?.import)
}

/// The slice of this name that should be held.
pub fn slice<'a>(import: &'a ImportPlan, name: &SliceName) -> Option<&'a Arc<Slice>> {
    slices(import).find(|slice| slice.name == *name)
}

/// The slices that should be held, as far as the plan knows them.
pub fn slices(import: &ImportPlan) -> impl Iterator<Item = &Arc<Slice>> {
    let sources = match import {
        ImportPlan::Present { slices, .. } => Some(slices.values()),
        ImportPlan::Absent(_) | ImportPlan::Untouched(_) => None,
    };
    sources.into_iter().flatten().flat_map(|from| match from {
        SlicesFrom::Exactly(slices, _) => &slices[..],
        SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_) => &[],
    })
}

/// Whether the slices of this source stay as they are. One that does not say its source could be anybody's.
pub fn keeps(import: &ImportPlan, source: Option<&ClusterId>) -> bool {
    let kept = |from: &SlicesFrom| matches!(from, SlicesFrom::KeepWhatIsThere(_));
    match (import, source) {
        (ImportPlan::Untouched(_), _) => true,
        (ImportPlan::Absent(_), _) => false,
        (ImportPlan::Present { slices, .. }, Some(source)) => slices.get(source).is_some_and(kept),
        (ImportPlan::Present { slices, .. }, None) => slices.values().any(kept),
    }
}

/// The names that a slice of a source has in two plans.
pub fn names_of<'a>(
    import: Option<&'a ImportPlan>,
    source: &'a ClusterId,
    original: &'a SliceName,
) -> impl Iterator<Item = SliceName> + 'a {
    let from = match import {
        Some(ImportPlan::Present { slices, .. }) => slices.get(source),
        Some(ImportPlan::Absent(_) | ImportPlan::Untouched(_)) | None => None,
    };
    let list: &[Arc<Slice>] = match from {
        Some(SlicesFrom::Exactly(slices, _)) => slices,
        Some(SlicesFrom::KeepWhatIsThere(_) | SlicesFrom::Nothing(_)) | None => &[],
    };
    list.iter().filter(move |slice| slice.original == *original).map(|slice| slice.name.clone())
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

/// The status of the ServiceImport.
pub fn import_status(
    import: &Import,
    derived: DerivedState<'_>,
    before: &[Since],
    now: Time,
) -> ImportStatusBody {
    let (status, reason, message) = match (&import.ready, derived) {
        (ImportReady::Ready, DerivedState::Usable) => {
            (true, reasons::import::READY.to_owned(), text::import_message(&import.ready, &import.notes))
        }
        (ImportReady::Ready, DerivedState::Awaited) => {
            (false, reasons::import::PENDING.to_owned(), crate::text::DERIVED_SERVICE_AWAITED.to_owned())
        }
        (ImportReady::Ready, DerivedState::Refused(why)) => {
            let name = import.derived.as_ref().map_or("", |derived| derived.name.as_str());
            (false, reasons::import::PENDING.to_owned(), crate::text::derived_service_refused(name, why))
        }
        (other @ (ImportReady::IpFamilyNotSupported { .. } | ImportReady::NamesTaken { .. }), _) => {
            (false, other.as_str().to_owned(), text::import_message(other, &import.notes))
        }
    };
    let ready = dated(condition::import::READY, status, reason, message, before, now);
    ImportStatusBody {
        clusters: import.clusters.to_vec(),
        conditions: vec![ready],
        slices: Some(import.derived.is_some()),
    }
}

/// The conditions of a ServiceExport, by type.
pub fn export_status(status: &ExportStatus, before: &[Since], now: Time) -> Vec<ConditionBody> {
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
        text::export_message(&status.ready, &status.refused_keys),
        before,
        now,
    ));
    conditions.push(dated(
        condition::export::VALID,
        status.valid.is_ok(),
        valid_reason.to_owned(),
        text::valid_message(status.valid).to_owned(),
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
    let same = |Since(of, was, _): &&Since| **of == *kind && *was == Some(status);
    let since = before.iter().find(same).map_or(now, |Since(_, _, at)| *at);
    ConditionBody { kind: kind.into(), status: Some(status), reason, message: cut(message), since }
}

/// What the API takes for a message.
fn cut(mut message: String) -> String {
    const LONGEST: usize = 32_000;
    if message.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| message.is_char_boundary(*at)).unwrap_or(0);
        message.truncate(end);
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
