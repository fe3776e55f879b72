//! How it is with a cluster's export.

use atoll_api::explain::{Endpoints, Export, Remark};
use atoll_api::names::code::Code;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::ExportStatus;
use atoll_engine::reason::{ExportReady, WhyKeyRefused, text};
use atoll_engine::services::dissent::dissenters;
use atoll_engine::world::Holding;
use atoll_link::{Kind, Problem};

use super::known::{Known, remark, rfc3339};
use super::member;
use crate::services::brain::words;

/// Keys and objects that are named, at most.
const MOST: usize = 8;

/// The export of a cluster, if it has one.
pub(super) fn export(known: &Known<'_>, key: &ServiceKey, id: &ClusterId) -> Option<Export> {
    let world = known.world();
    let cluster = world.clusters.get(id)?;
    let merged = known.engine().merged(key);
    let place = merged.and_then(|merged| merged.clusters.iter().position(|one| one == id));
    let precedence = place.map(|place| place + 1);
    if cluster.heard.is_none() {
        let remembered = world.memory.get(key)?.exports.get(id)?;
        let remarks = vec![remark(Code::NotHeard, Code::NotHeard.meaning(), key, id)];
        let (valid, endpoints) = (remembered.offer.is_some(), Endpoints::default());
        return Some(Export { valid, precedence, endpoints, remarks });
    }
    let holding = world.holding(key, id)?;
    holding.export.as_ref()?;
    let endpoints = count(known, id, holding);
    let Some(status) = known.part(key, id).and_then(|part| part.export.as_ref()) else {
        let remarks = vec![Remark::of(Code::NotPlannedYet)];
        return Some(Export { valid: false, precedence: None, endpoints, remarks });
    };
    let mut remarks = vec![ready(status, endpoints, key, id)];
    if let Some(merged) = merged.filter(|_| status.valid.is_ok()) {
        for conflict in &*merged.conflicts {
            if dissenters(merged, &conflict.about).contains(&id) {
                let message = format!(
                    "{} differ here from the export in {}, which has precedence.",
                    super::conflicts::field(&conflict.about),
                    conflict.winner
                );
                remarks.push(remark(conflict.about.code(), &message, key, id));
            }
        }
    }
    for refused in status.refused_keys.iter().take(MOST) {
        let why = match refused.why {
            WhyKeyRefused::Reserved => "its prefix is reserved",
            WhyKeyRefused::Malformed => "it is not valid in Kubernetes",
            WhyKeyRefused::TooMuch => "all of them together are too large for one object",
        };
        let shown: String = refused.key.chars().take(100).collect();
        remarks.push(remark(Code::KeyNotExported, &format!("{shown:?} is not exported: {why}."), key, id));
    }
    remarks.extend(left_out(known, key, id, holding));
    Some(Export { valid: status.valid.is_ok(), precedence, endpoints, remarks })
}

/// Whether it is ready, and whether it brings anything.
fn ready(status: &ExportStatus, endpoints: Endpoints, key: &ServiceKey, id: &ClusterId) -> Remark {
    let Endpoints { ready, not_ready, refused } = endpoints;
    let code = match (&status.ready, ready, not_ready, refused) {
        (ExportReady::Exported { .. }, 0, 0, 0) => Code::NoEndpoints,
        (ExportReady::Exported { .. }, 0, 1.., _) => Code::NoReadyEndpoints,
        (ExportReady::Exported { .. } | ExportReady::Pending(_) | ExportReady::Failed(_), _, _, _) => {
            status.ready.code()
        }
    };
    match code {
        Code::NoEndpoints | Code::NoReadyEndpoints => remark(code, code.meaning(), key, id),
        _ => remark(code, &text::export_message(&status.ready, &[]), key, id), // the others have words of their own
    }
}

/// Addresses, counted, by the rule that plans go by.
pub(super) fn count(known: &Known<'_>, id: &ClusterId, holding: &Holding) -> Endpoints {
    let border = known.world().territory.border(id);
    let mut endpoints = Endpoints::default();
    for slice in holding.slices.values() {
        for endpoint in &slice.endpoints {
            for &address in &endpoint.addresses {
                match border.judge(address, slice.family) {
                    Err(_) => endpoints.refused += 1,
                    Ok(()) if endpoint.conditions.is_ready() => endpoints.ready += 1,
                    Ok(()) => endpoints.not_ready += 1,
                }
            }
        }
    }
    endpoints
}

/// What of its objects can't be passed on.
fn left_out<'a>(
    known: &'a Known<'_>,
    key: &'a ServiceKey,
    id: &'a ClusterId,
    holding: &'a Holding,
) -> impl Iterator<Item = Remark> + 'a {
    // Slices that can't be passed on at all are no facts; the controller calls them after their Service.
    let slice = move |name: &str| {
        holding.slices.keys().any(|known| known.as_str() == name)
            || name.strip_prefix(key.name.as_str()).is_some_and(|rest| rest.starts_with('-'))
    };
    let its = move |problem: &Problem| match problem {
        Problem::Unrepresentable { object, .. } => {
            object.kind != Kind::Import && words::is_of(problem, key, slice)
        }
        Problem::Forbidden { .. }
        | Problem::KindAbsent(_)
        | Problem::Foreign { .. }
        | Problem::Refused { .. }
        | Problem::OtherProperty { .. } => false,
    };
    let problems = known.brain.problems(id, known.now).filter(move |(problem, _)| its(problem)).take(MOST);
    problems.map(move |(problem, since)| member::problem(problem, Some(key), id).since(rfc3339(since)))
}
