//! Jobs: pods that end, until enough have ended well or too many badly.
//!
//! What is not done: indexed completion, pod failure policies, and finalizers on pods. A pod that is deleted after
//! it was counted stays counted; one that is deleted before that never was.

#[cfg(test)]
mod tests;

use super::action::{Action, Kind, Plan};
use super::conditions::stamp;
use super::facts::{Job, Phase, Pod, list, number};
use super::template::owner;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// How long a Job waits after its first failure; twice as long after each further one.
const FIRST_DELAY: i64 = 10;
const LONGEST_DELAY: i64 = 600;

/// How a Job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Goes,
    Rests,
    Succeeded,
    Failed(Why),
}

/// Why a Job has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    TooOften,
    TooLong,
}

impl Why {
    fn said(self) -> (&'static str, &'static str) {
        match self {
            Self::TooOften => ("BackoffLimitExceeded", "Job has reached the specified backoff limit"),
            Self::TooLong => ("DeadlineExceeded", "Job was active longer than specified deadline"),
        }
    }
}

/// The pods of a Job, counted.
struct Counts<'a> {
    active: Vec<&'a Pod>,
    going: usize,
    succeeded: i64,
    failed: i64,
}

/// One step of a Job. `pods` are its own.
pub(crate) fn plan(job: &Job, pods: &[&Pod], now: Timestamp) -> Plan {
    if job.is_over() {
        return Plan::default();
    }
    let ended = |phase: Phase| pods.iter().filter(|pod| pod.phase == phase).count();
    let at_least = |field: &str, seen: usize| {
        number(&job.status[field]).unwrap_or(0).max(i64::try_from(seen).unwrap_or(i64::MAX))
    };
    let counts = Counts {
        active: pods.iter().copied().filter(|pod| pod.is_active()).collect(),
        going: pods.iter().filter(|pod| pod.meta.going && !pod.is_over()).count(),
        succeeded: at_least("succeeded", ended(Phase::Succeeded)),
        failed: at_least("failed", ended(Phase::Failed)),
    };
    let started = job.started.unwrap_or(now);
    let deadline =
        job.deadline.and_then(|seconds| started.checked_add(SignedDuration::from_secs(seconds)).ok());
    let verdict = judge(job, &counts, deadline, now);
    let mut plan = Plan::default();
    let mut surplus = counts.active.len();
    if !job.meta.going && verdict == Verdict::Goes {
        let wanted = wanted(job, &counts);
        surplus = counts.active.len().saturating_sub(wanted);
        let missing = wanted.saturating_sub(counts.active.len() + counts.going);
        let not_before = Some(pods).filter(|_| missing > 0).and_then(not_before).filter(|at| *at > now);
        if not_before.is_none() {
            plan.actions.extend((0..missing).map(|_| Action::Create(Kind::Pod, pod(job))));
        }
        plan.look_again(not_before);
        plan.look_again(deadline);
    }
    if !job.meta.going {
        // Those that have come the least far go first.
        let mut active = counts.active.clone();
        active.sort_by_key(|pod| (pod.phase, pod.ready.is_some(), pod.meta.created));
        let going = active.into_iter().take(surplus);
        plan.actions.extend(going.map(|pod| Action::Delete(Kind::Pod, (&pod.meta).into())));
    }
    let status = status(job, &counts, verdict, started, now);
    plan.actions.extend(Action::status(Kind::Job, &job.meta, &job.status, &status));
    plan
}

fn judge(job: &Job, counts: &Counts<'_>, deadline: Option<Timestamp>, now: Timestamp) -> Verdict {
    let restarts: i64 = if job.template.value()["spec"]["restartPolicy"] == "OnFailure" {
        counts.active.iter().map(|pod| pod.restarts).sum()
    } else {
        0
    };
    let worn_out = if job.backoff_limit == 0 { restarts > 0 } else { restarts >= job.backoff_limit };
    let enough = job
        .completions
        .map_or(counts.succeeded > 0 && counts.active.is_empty(), |wanted| counts.succeeded >= wanted);
    match said(job, "FailureTarget") {
        Some("DeadlineExceeded") => Verdict::Failed(Why::TooLong),
        Some(_) => Verdict::Failed(Why::TooOften),
        None if said(job, "SuccessCriteriaMet").is_some() || enough => Verdict::Succeeded,
        None if counts.failed > job.backoff_limit || worn_out => Verdict::Failed(Why::TooOften),
        None if deadline.is_some_and(|at| at <= now) && !job.suspended => Verdict::Failed(Why::TooLong),
        None if job.suspended => Verdict::Rests,
        None => Verdict::Goes,
    }
}

fn said<'a>(job: &'a Job, kind: &str) -> Option<&'a str> {
    let found = list(&job.status["conditions"]).find(|one| one["type"] == kind && one["status"] == "True")?;
    found["reason"].as_str()
}

/// How many pods should run now.
fn wanted(job: &Job, counts: &Counts<'_>) -> usize {
    let wanted = match job.completions {
        Some(completions) => (completions - counts.succeeded).min(job.parallelism),
        // One has succeeded: those that run may end, but no more are begun.
        None if counts.succeeded > 0 => i64::try_from(counts.active.len()).unwrap_or(0),
        None => job.parallelism,
    };
    usize::try_from(wanted).unwrap_or(0)
}

/// When the next pod may start: the more have failed since the last success, the later.
fn not_before(pods: &[&Pod]) -> Option<Timestamp> {
    let ended = |phase: Phase| {
        pods.iter().filter(move |pod| pod.phase == phase).filter_map(|pod| pod.ended.or(pod.meta.created))
    };
    let success = ended(Phase::Succeeded).max();
    let since: Vec<Timestamp> =
        ended(Phase::Failed).filter(|at| success.is_none_or(|success| *at > success)).collect();
    let last = since.iter().max()?;
    let doubled = FIRST_DELAY << (since.len() - 1).min(16);
    last.checked_add(SignedDuration::from_secs(doubled.min(LONGEST_DELAY))).ok()
}

/// The labels of a Job's pods are the API's gift to its template.
fn pod(job: &Job) -> Value {
    let mut pod = job.template.pod(&owner("batch/v1", "Job", &job.meta), &job.meta.namespace);
    pod["metadata"]["generateName"] = format!("{}-", job.meta.name).into();
    pod
}

fn status(job: &Job, counts: &Counts<'_>, verdict: Verdict, started: Timestamp, now: Timestamp) -> Value {
    let ready = counts.active.iter().filter(|pod| pod.ready.is_some()).count();
    let mut status = json!({"ready": ready, "terminating": counts.going, "uncountedTerminatedPods": {}});
    let active = i64::try_from(counts.active.len()).unwrap_or(0);
    for (field, number) in [("active", active), ("succeeded", counts.succeeded), ("failed", counts.failed)] {
        if number > 0 {
            status[field] = number.into();
        }
    }
    if job.started.is_some() || !job.suspended {
        status["startTime"] = stamp(started);
    }
    let mut all: Vec<Value> = list(&job.status["conditions"]).cloned().collect();
    let mut say = |kind: &str, is: &str, reason: &str, message: &str| {
        if all.iter().any(|one| one["type"] == kind && one["status"] == is) {
            return;
        }
        all.retain(|one| one["type"] != kind);
        all.push(json!({"type": kind, "status": is, "reason": reason, "message": message,
            "lastProbeTime": stamp(now), "lastTransitionTime": stamp(now)}));
    };
    // The end is told when the last pod is gone; that it comes is told before.
    let quiet = counts.active.is_empty() && counts.going == 0;
    match verdict {
        Verdict::Succeeded => {
            let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
            say("SuccessCriteriaMet", "True", reason, message);
            if quiet {
                say("Complete", "True", reason, message);
                status["completionTime"] = stamp(now);
            }
        }
        Verdict::Failed(why) => {
            let (reason, message) = why.said();
            say("FailureTarget", "True", reason, message);
            if quiet {
                say("Failed", "True", reason, message);
            }
        }
        Verdict::Rests => say("Suspended", "True", "JobSuspended", "Job suspended"),
        Verdict::Goes if said(job, "Suspended").is_some() => {
            say("Suspended", "False", "JobResumed", "Job resumed");
            status["startTime"] = stamp(now);
        }
        Verdict::Goes => {}
    }
    if !all.is_empty() {
        status["conditions"] = all.into();
    }
    status
}
