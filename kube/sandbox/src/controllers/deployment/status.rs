//! What a Deployment says of itself: counts, and the conditions Available and Progressing.

use super::Sets;
use super::bounds::Bounds;
use super::revisions::{self, REVISION};
use crate::controllers::action::{Action, Kind, Plan, difference};
use crate::controllers::conditions::{self, Condition};
use crate::controllers::facts::{Deployment, list, number, time};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

const PROGRESSING: &str = "Progressing";
const AVAILABLE: &str = "NewReplicaSetAvailable";
const TIMED_OUT: &str = "ProgressDeadlineExceeded";
const PAUSED: &str = "DeploymentPaused";

fn count(status: &Value, field: &str) -> i64 {
    number(&status[field]).unwrap_or(0)
}

/// Are all pods new, and available?
pub(super) fn is_complete(deployment: &Deployment, status: &Value) -> bool {
    let wanted = deployment.replicas;
    ["updatedReplicas", "replicas", "availableReplicas"].iter().all(|field| count(status, field) == wanted)
        && count(status, "observedGeneration") >= deployment.meta.generation
}

/// The status of a Deployment that does not roll out now.
pub(super) fn only(deployment: &Deployment, sets: &Sets<'_>, now: Timestamp) -> Plan {
    let mut status = counts(deployment, sets);
    let mut all = conditions_of(deployment, &status, now);
    resumed_or_paused(deployment, &mut all, now);
    status["conditions"] = all.into();
    write(deployment, sets, &status, None)
}

/// The status during and after a rollout; `begun` names a ReplicaSet that is about to be made.
pub(super) fn rolling(deployment: &Deployment, sets: &Sets<'_>, begun: Option<&str>, now: Timestamp) -> Plan {
    let mut status = counts(deployment, sets);
    let mut all = conditions_of(deployment, &status, now);
    resumed_or_paused(deployment, &mut all, now);
    let mut again = None;
    if deployment.deadline.is_some() {
        again = progress(deployment, sets, begun, &status, &mut all, now);
    } else {
        conditions::remove(&mut all, PROGRESSING);
    }
    status["conditions"] = all.into();
    write(deployment, sets, &status, again)
}

fn write(deployment: &Deployment, sets: &Sets<'_>, status: &Value, again: Option<Timestamp>) -> Plan {
    let mut body = json!({});
    if let Some(status) = difference(&deployment.status, status) {
        body["status"] = status;
    }
    let revision = revisions::present(sets).to_string();
    // A paused Deployment has not begun its next template.
    if !deployment.paused && !deployment.meta.going && deployment.annotations.get(REVISION) != Some(&revision)
    {
        body["metadata"]["annotations"][REVISION] = revision.into();
    }
    let some = body.as_object().is_some_and(|fields| !fields.is_empty());
    let target = (&deployment.meta).into();
    let patch = Action::Patch { kind: Kind::Deployment, target, status: true, body };
    Plan { actions: some.then_some(patch).into_iter().collect(), again }
}

fn counts(deployment: &Deployment, sets: &Sets<'_>) -> Value {
    let sum = |field: &str| sets.all().map(|set| set.count(field)).sum::<i64>();
    let available = sum("availableReplicas");
    let mut status = json!({
        "observedGeneration": deployment.meta.generation,
        "terminatingReplicas": sum("terminatingReplicas"),
    });
    for (field, number) in [
        ("replicas", sum("replicas")),
        ("updatedReplicas", sets.new.map_or(0, |new| new.count("replicas"))),
        ("readyReplicas", sum("readyReplicas")),
        ("availableReplicas", available),
        ("unavailableReplicas", (sets.total() - available).max(0)),
        ("collisionCount", count(&deployment.status, "collisionCount")),
    ] {
        if number > 0 {
            status[field] = number.into();
        }
    }
    status
}

/// The old conditions, and whether enough pods are available.
fn conditions_of(deployment: &Deployment, status: &Value, now: Timestamp) -> Vec<Value> {
    let mut all: Vec<Value> = list(&deployment.status["conditions"]).cloned().collect();
    let enough = count(status, "availableReplicas") >= Bounds::of(deployment).least;
    let available = if enough {
        ("True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    } else {
        ("False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    };
    let (status, reason, message) = available;
    conditions::set(&mut all, Condition { kind: "Available", status, reason, message }, now);
    all
}

fn resumed_or_paused(deployment: &Deployment, all: &mut Vec<Value>, now: Timestamp) {
    if deployment.deadline.is_none() {
        return;
    }
    let said = conditions::reason(&deployment.status, PROGRESSING);
    let say = match (deployment.paused, said) {
        // A deadline that passed is told first.
        (true, TIMED_OUT | PAUSED) => return,
        (true, _) => Condition {
            kind: PROGRESSING,
            status: "Unknown",
            reason: PAUSED,
            message: "Deployment is paused",
        },
        (false, PAUSED) => Condition {
            kind: PROGRESSING,
            status: "Unknown",
            reason: "DeploymentResumed",
            message: "Deployment is resumed",
        },
        (false, _) => return,
    };
    conditions::set(all, say, now);
}

/// Sets the condition Progressing; says when to look at the deadline.
fn progress(
    deployment: &Deployment,
    sets: &Sets<'_>,
    begun: Option<&str>,
    status: &Value,
    all: &mut Vec<Value>,
    now: Timestamp,
) -> Option<Timestamp> {
    let mut say = |status: &str, reason: &str, message: String| {
        let wanted = Condition { kind: PROGRESSING, status, reason, message: &message };
        if reason == "ReplicaSetUpdated" {
            conditions::renew(all, wanted, now);
        } else {
            conditions::set(all, wanted, now);
        }
    };
    if let Some(name) = begun {
        say("True", "NewReplicaSetCreated", format!("Created new replica set \"{name}\""));
        return None;
    }
    let old = &deployment.status;
    let said = conditions::reason(old, PROGRESSING);
    let subject = sets.new.map_or_else(
        || format!("Deployment \"{}\"", deployment.meta.name),
        |new| format!("ReplicaSet \"{}\"", new.meta.name),
    );
    if said.is_empty()
        && let Some(new) = sets.new
    {
        say("True", "FoundNewReplicaSet", format!("Found new replica set \"{}\"", new.meta.name));
        return None;
    }
    if said == AVAILABLE && count(status, "replicas") == count(status, "updatedReplicas") {
        return None;
    }
    if is_complete(deployment, status) {
        say("True", AVAILABLE, format!("{subject} has successfully progressed."));
        return None;
    }
    if has_moved(old, status) {
        say("True", "ReplicaSetUpdated", format!("{subject} is progressing."));
        return None;
    }
    let since = conditions::find(old, PROGRESSING).and_then(|one| time(&one["lastUpdateTime"]))?;
    if said == AVAILABLE || said == TIMED_OUT {
        return None;
    }
    let until = since.checked_add(SignedDuration::from_secs(deployment.deadline?)).ok()?;
    if until < now {
        say("False", TIMED_OUT, format!("{subject} has timed out progressing."));
        return None;
    }
    // A moment later than the deadline, since times in objects are whole seconds.
    until.checked_add(SignedDuration::from_secs(1)).ok()
}

/// More new pods, fewer old ones, more ready or available ones.
fn has_moved(old: &Value, new: &Value) -> bool {
    let outdated = |status: &Value| count(status, "replicas") - count(status, "updatedReplicas");
    let more = |field: &str| count(new, field) > count(old, field);
    more("updatedReplicas")
        || outdated(new) < outdated(old)
        || more("readyReplicas")
        || more("availableReplicas")
}
