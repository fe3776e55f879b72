//! Workloads: what they want, and the status that they had.

use super::{Meta, StringMap, list, number, text, time, words};
use crate::controllers::template::Template;
use atoll_apimachinery::selector::labels::{self, Selector};
use jiff::Timestamp;
use serde_json::Value;

/// The annotation in which kubectl keeps what was applied: large, and not needed.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A Deployment.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Deployment {
    pub(crate) meta: Meta,
    pub(crate) annotations: StringMap,
    pub(crate) replicas: i64,
    /// As it stands in the object.
    pub(crate) selector: Value,
    pub(crate) template: Template,
    pub(crate) strategy: Strategy,
    pub(crate) min_ready: i64,
    pub(crate) history: i64,
    /// How many seconds may pass without progress; none if there is no limit.
    pub(crate) deadline: Option<i64>,
    pub(crate) paused: bool,
    pub(crate) status: Value,
}

/// How a Deployment replaces pods.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Strategy {
    /// All old ones go before the first new one comes.
    Recreate,
    /// Little by little, in these bounds; numbers or percentages.
    Rolling { surge: Value, unavailable: Value },
}

/// A ReplicaSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReplicaSet {
    pub(crate) meta: Meta,
    pub(crate) annotations: StringMap,
    pub(crate) replicas: i64,
    pub(crate) selector: Selector,
    pub(crate) template: Template,
    pub(crate) min_ready: i64,
    pub(crate) status: Value,
}

/// A StatefulSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StatefulSet {
    pub(crate) meta: Meta,
    pub(crate) replicas: i64,
    /// The number of the first pod.
    pub(crate) start: i64,
    pub(crate) selector: Selector,
    pub(crate) service: String,
    pub(crate) template: Template,
    /// All pods at once, instead of one after the other.
    pub(crate) parallel: bool,
    pub(crate) update: Update,
    pub(crate) min_ready: i64,
    pub(crate) history: i64,
    pub(crate) status: Value,
}

/// How a StatefulSet replaces pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    /// A pod gets the new template when it is deleted by hand.
    OnDelete,
    /// From the last pod down to this number.
    Rolling { partition: i64 },
}

/// An earlier or the present template of a StatefulSet.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Revision {
    pub(crate) meta: Meta,
    pub(crate) number: i64,
    pub(crate) template: Template,
}

/// A Job.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Job {
    pub(crate) meta: Meta,
    pub(crate) parallelism: i64,
    /// How many must succeed; none if one success ends it.
    pub(crate) completions: Option<i64>,
    pub(crate) backoff_limit: i64,
    /// How many seconds it may take.
    pub(crate) deadline: Option<i64>,
    pub(crate) suspended: bool,
    pub(crate) template: Template,
    pub(crate) started: Option<Timestamp>,
    pub(crate) status: Value,
}

/// What a selector selects; nothing where it can't be read.
fn selector(given: &Value) -> Selector {
    labels::from_object(given).unwrap_or_default()
}

fn annotations(object: &Value) -> StringMap {
    let mut all = words(&object["metadata"]["annotations"]);
    all.remove(LAST_APPLIED);
    all
}

impl Deployment {
    pub(crate) fn selects(&self) -> Selector {
        selector(&self.selector)
    }

    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        let rolling = &spec["strategy"]["rollingUpdate"];
        Self {
            meta: Meta::read(object),
            annotations: annotations(object),
            replicas: number(&spec["replicas"]).unwrap_or(1),
            selector: spec["selector"].clone(),
            template: Template::read(&spec["template"]),
            strategy: match spec["strategy"]["type"].as_str() {
                Some("Recreate") => Strategy::Recreate,
                _ => Strategy::Rolling {
                    surge: rolling["maxSurge"].clone(),
                    unavailable: rolling["maxUnavailable"].clone(),
                },
            },
            min_ready: number(&spec["minReadySeconds"]).unwrap_or(0),
            history: number(&spec["revisionHistoryLimit"]).unwrap_or(10),
            deadline: number(&spec["progressDeadlineSeconds"])
                .filter(|seconds| *seconds != i64::from(i32::MAX)),
            paused: spec["paused"] == true,
            status: object["status"].clone(),
        }
    }
}

impl ReplicaSet {
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        Self {
            meta: Meta::read(object),
            annotations: annotations(object),
            replicas: number(&spec["replicas"]).unwrap_or(1),
            selector: selector(&spec["selector"]),
            template: Template::read(&spec["template"]),
            min_ready: number(&spec["minReadySeconds"]).unwrap_or(0),
            status: object["status"].clone(),
        }
    }

    /// A count of its status.
    pub(crate) fn count(&self, field: &str) -> i64 {
        number(&self.status[field]).unwrap_or(0)
    }
}

impl StatefulSet {
    pub(crate) fn read(object: &Value) -> Self {
        let spec = &object["spec"];
        Self {
            meta: Meta::read(object),
            replicas: number(&spec["replicas"]).unwrap_or(1),
            start: number(&spec["ordinals"]["start"]).unwrap_or(0),
            selector: selector(&spec["selector"]),
            service: text(&spec["serviceName"]),
            template: Template::read(&spec["template"]),
            parallel: spec["podManagementPolicy"] == "Parallel",
            update: match spec["updateStrategy"]["type"].as_str() {
                Some("OnDelete") => Update::OnDelete,
                _ => Update::Rolling {
                    partition: number(&spec["updateStrategy"]["rollingUpdate"]["partition"]).unwrap_or(0),
                },
            },
            min_ready: number(&spec["minReadySeconds"]).unwrap_or(0),
            history: number(&spec["revisionHistoryLimit"]).unwrap_or(10),
            status: object["status"].clone(),
        }
    }
}

impl Revision {
    pub(crate) fn read(object: &Value) -> Self {
        Self {
            meta: Meta::read(object),
            number: number(&object["revision"]).unwrap_or(0),
            template: Template::read(&object["data"]["spec"]["template"]),
        }
    }
}

impl Job {
    pub(crate) fn read(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        Self {
            meta: Meta::read(object),
            parallelism: number(&spec["parallelism"]).unwrap_or(1),
            completions: number(&spec["completions"]),
            backoff_limit: number(&spec["backoffLimit"]).unwrap_or(6),
            deadline: number(&spec["activeDeadlineSeconds"]),
            suspended: spec["suspend"] == true,
            template: Template::read(&spec["template"]),
            started: time(&status["startTime"]),
            status: status.clone(),
        }
    }

    /// It has succeeded or failed, for ever.
    pub(crate) fn is_over(&self) -> bool {
        list(&self.status["conditions"])
            .any(|one| one["status"] == "True" && matches!(one["type"].as_str(), Some("Complete" | "Failed")))
    }
}
