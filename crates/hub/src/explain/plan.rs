//! What would change: `create plans`. Computed on a copy of the engine's state, so that what is said is what would be done.
//!
//! ```text
//!   leader's task:  question ─▶ checked, bounded ─▶ a copy of the engine
//!   elsewhere:      copy + objects (read as members read them) ─▶ plans before, plans after ─▶ what lies between
//! ```
//! Nothing is written, and the leader's task does no more than copy.

mod diff;
mod endpoints;
mod fields;
mod placements;
mod remarks;
mod suppose;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use atoll_api::explain::Header;
use atoll_api::explain::plan::{Change, PlanAnswer, PlanRequest, Summary};
use atoll_api::names::kind::explain;
use atoll_engine::engine::Engine;
use atoll_engine::names::Namespace;
use atoll_engine::time::Time;
use k8s_openapi::Resource as _;
use k8s_openapi::api::core::v1::Namespace as NamespaceObject;
use serde_json::Value;

use super::questions::{Answered, Asked, Verb};
use crate::policies::Trial;
use crate::services::brain::Brain;
use suppose::{Outcome, Setting, suppose, text};

/// So many objects are read for one plan.
const OBJECTS: usize = 2000;
/// So much text all objects of one request may have.
const BYTES: usize = 8 << 20;
/// So many services may be copied for one plan: more would hold up the leader.
const SERVICES: usize = 50_000;

/// So many plans are made at the same time.
pub(crate) const AT_ONCE: usize = 4;

/// A plan that is to be made, away from the leader's task.
#[derive(Debug)]
pub(crate) struct Job {
    engine: Engine,
    request: PlanRequest,
    setting: Setting,
}

/// Whether this asks for a plan.
pub(crate) fn is_asked(asked: &Asked) -> bool {
    asked.verb == Verb::Create && asked.resource == explain::PLANS
}

/// Reads the question, and copies what it is about. `hub`: the hub's uid; `balances`: whether load balancers are ours to make.
pub(crate) fn prepare(
    brain: &Brain,
    hub: &Arc<str>,
    balances: bool,
    asked: &Asked,
    now: Time,
) -> Result<Job, Answered> {
    let request = read(asked.body.as_ref())?;
    let namespaces = namespaces(&request);
    if namespaces.is_none() && brain.size() > SERVICES {
        let message = format!(
            "the plan concerns all {} services of the clusterset, which is more than the {SERVICES} that are planned at once; ask \
             about objects of one namespace",
            brain.size()
        );
        return Err(Answered::refused(413, "RequestEntityTooLarge", message));
    }
    let Some(engine) = brain.copy(namespaces.as_ref()) else {
        return Err(Answered::refused(
            503,
            "ServiceUnavailable",
            "the hub has just started, and waits for its members to report; ask again in a few seconds",
        ));
    };
    Ok(Job { engine, request, setting: Setting { hub: Arc::clone(hub), balances, now } })
}

/// More than [`AT_ONCE`] were asked for.
pub(crate) fn busy() -> Answered {
    let message = format!("{AT_ONCE} plans are being made; ask again in a few seconds");
    Answered::refused(429, "TooManyRequests", message)
}

impl Job {
    /// Makes the plan. Takes a while: not for a task that others wait for. `trial`: what policies plan by.
    pub(crate) fn run(self, trial: Option<Trial>) -> Answered {
        let Self { engine, request, setting } = self;
        let now = setting.now;
        match suppose(engine, trial, &request, setting) {
            Ok(outcome) => match serde_json::to_value(answer(outcome, now)) {
                Ok(body) => Answered::found(body),
                Err(error) => Answered::refused(500, "InternalError", error.to_string()),
            },
            Err(unclear) => Answered::refused(422, "Invalid", unclear.to_string()),
        }
    }
}

/// The question, if it can be one.
fn read(body: Option<&Value>) -> Result<PlanRequest, Answered> {
    let bad = |message: String| Answered::refused(400, "BadRequest", message);
    let Some(body) = body else {
        return Err(bad("a plan needs a body: a PlanRequest with `changes` or `without`".to_owned()));
    };
    let mut budget = BYTES;
    if !fits(body, &mut budget) {
        let message = format!("the request has more than {} MB of objects; send fewer", BYTES >> 20);
        return Err(Answered::refused(413, "RequestEntityTooLarge", message));
    }
    let request: PlanRequest =
        serde_json::from_value(body.clone()).map_err(|error| bad(format!("not a PlanRequest: {error}")))?;
    let objects = request.changes.len() + request.current.len() + request.without.len();
    if objects > OBJECTS {
        let message =
            format!("the request has {objects} objects, and {OBJECTS} are planned at once; send fewer");
        return Err(Answered::refused(413, "RequestEntityTooLarge", message));
    }
    Ok(request)
}

/// Whether a value is within a budget of bytes, roughly.
fn fits(value: &Value, budget: &mut usize) -> bool {
    const EACH: usize = 8;
    let mut take = |bytes: usize| {
        let left = budget.checked_sub(bytes + EACH);
        *budget = left.unwrap_or_default();
        left.is_some()
    };
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => take(0),
        Value::String(text) => take(text.len()),
        Value::Array(list) => take(0) && list.iter().all(|one| fits(one, budget)),
        Value::Object(map) => {
            take(map.keys().map(String::len).sum()) && map.values().all(|one| fits(one, budget))
        }
    }
}

/// The namespaces that a question is about; none if it is about everything.
fn namespaces(request: &PlanRequest) -> Option<BTreeSet<Namespace>> {
    if !request.without.is_empty() {
        return None;
    }
    let mut namespaces = BTreeSet::new();
    for change in &request.changes {
        let kind = text(&change.object, "/kind");
        let of_all = text(&change.object, "/metadata/namespace").is_empty() && kind != NamespaceObject::KIND;
        if change.cluster.is_none() && of_all {
            return None; // a policy for all namespaces, a member
        }
        let named = if kind == NamespaceObject::KIND { "/metadata/name" } else { "/metadata/namespace" };
        // What has no name that a namespace can have concerns no service.
        namespaces.extend(Namespace::parse(text(&change.object, named)).ok());
    }
    Some(namespaces)
}

fn answer(Outcome { changes, placements, ignored }: Outcome, now: Time) -> PlanAnswer {
    let clusters: Vec<_> = changes.clusters.into_values().collect();
    let mut summary = Summary { conflicts: changes.conflicts.len(), ..Summary::default() };
    for cluster in &clusters {
        for object in &cluster.objects {
            *match object.change {
                Change::Add => &mut summary.made,
                Change::Change => &mut summary.changed,
                Change::Remove => &mut summary.deleted,
            } += 1;
        }
        for endpoints in &cluster.endpoints {
            summary.endpoints_added += endpoints.added.len();
            summary.endpoints_removed += endpoints.removed.len();
        }
        summary.conditions += cluster.conditions.len();
        summary.problems += cluster.problems.iter().filter(|one| remarks::is_problem(&one.remark)).count();
    }
    for service in &changes.hub {
        summary.changed += usize::from(!service.fields.is_empty());
        summary.endpoints_added += service.added.len();
        summary.endpoints_removed += service.removed.len();
        summary.problems += service.remarks.iter().filter(|one| remarks::is_problem(one)).count();
    }
    for placement in &placements {
        summary.placements += usize::from(!placement.fields.is_empty() || !placement.clusters.is_empty());
        summary.problems += placement.remarks.iter().filter(|one| remarks::is_problem(one)).count();
    }
    let at = jiff::Timestamp::from_millisecond(now.0).unwrap_or_default();
    PlanAnswer {
        header: Header::new(explain::PLAN, None, explain::PLAN_NAME),
        at: format!("{at:.3}"),
        clusters,
        conflicts: changes.conflicts,
        hub: changes.hub,
        placements,
        ignored,
        summary,
    }
}
