//! A pod's line: the one word that says how it does is found among its containers.

use crate::table::age;
use crate::table::builtin::object::{NONE, Object, text};
use jiff::Timestamp;
use serde_json::Value;

/// What the containers' states add up to.
struct Sum {
    reason: String,
    ready: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

impl Sum {
    fn restarted(&mut self, status: &Value) {
        self.restarts += status.get("restartCount").and_then(Value::as_i64).unwrap_or_default();
        let finished = status.pointer("/lastState/terminated/finishedAt").and_then(Value::as_str);
        self.last_restart = self.last_restart.max(finished.and_then(|at| at.parse().ok()));
    }
}

pub(in crate::table::builtin) fn pod(object: &Object<'_>) -> Vec<Value> {
    let sidecars: Vec<&str> = object
        .items("spec.initContainers")
        .iter()
        .filter(|container| text(container, "restartPolicy") == "Always")
        .map(|container| text(container, "name"))
        .collect();
    let total = object.items("spec.containers").len() + sidecars.len();
    let sum = summed(object, &sidecars);
    let restarts = match sum.last_restart {
        Some(last) if sum.restarts != 0 => {
            format!("{} ({} ago)", sum.restarts, age::human(last, object.now()))
        }
        _ => sum.restarts.to_string(),
    };
    let address = object.items("status.podIPs").first().map_or("", |address| text(address, "ip"));
    vec![
        object.name(),
        format!("{}/{total}", sum.ready).into(),
        sum.reason.into(),
        restarts.into(),
        object.age(),
        if address.is_empty() { NONE.into() } else { address.into() },
        object.text_or("spec.nodeName", NONE).into(),
        object.text_or("status.nominatedNodeName", NONE).into(),
        gates(object).into(),
    ]
}

fn gates(object: &Object<'_>) -> String {
    let gates = object.items("spec.readinessGates");
    let open = gates.iter().filter(|gate| object.condition(text(gate, "conditionType"))).count();
    if gates.is_empty() { NONE.to_owned() } else { format!("{open}/{}", gates.len()) }
}

fn summed(object: &Object<'_>, sidecars: &[&str]) -> Sum {
    let mut reason = object.text("status.reason");
    if reason.is_empty() {
        reason = object.text("status.phase");
    }
    let gated = object.items("status.conditions").iter().any(|condition| {
        text(condition, "type") == "PodScheduled" && text(condition, "reason") == "SchedulingGated"
    });
    if gated {
        reason = "SchedulingGated";
    }
    let start = || Sum { reason: reason.to_owned(), ready: 0, restarts: 0, last_restart: None };
    let (mut sum, mut of_sidecars) = (start(), start());
    let initializing = initialize(object, sidecars, &mut sum, &mut of_sidecars);
    if !initializing || object.condition("Initialized") {
        (sum.restarts, sum.last_restart) = (of_sidecars.restarts, of_sidecars.last_restart);
        run(object, &mut sum);
    }
    let phase = object.text("status.phase");
    if object.deleted() && object.text("status.reason") == "NodeLost" {
        "Unknown".clone_into(&mut sum.reason);
    } else if object.deleted() && !matches!(phase, "Succeeded" | "Failed") {
        "Terminating".clone_into(&mut sum.reason);
    }
    sum
}

/// Goes through the init containers up to the first that is not done; says whether there is one.
fn initialize(object: &Object<'_>, sidecars: &[&str], sum: &mut Sum, of_sidecars: &mut Sum) -> bool {
    for (at, status) in object.items("status.initContainerStatuses").iter().enumerate() {
        sum.restarted(status);
        let sidecar = sidecars.contains(&text(status, "name"));
        if sidecar {
            of_sidecars.restarted(status);
        }
        let flag = |field: &str| status.get(field).and_then(Value::as_bool).unwrap_or_default();
        let terminated = status.pointer("/state/terminated");
        if terminated.is_some_and(|state| exit_code(state) == 0) {
            continue;
        }
        if sidecar && flag("started") {
            sum.ready += usize::from(flag("ready"));
            continue;
        }
        let waiting = status.pointer("/state/waiting").map_or("", |state| text(state, "reason"));
        sum.reason = match terminated {
            Some(state) => format!("Init:{}", ended(state)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{at}/{}", object.items("spec.initContainers").len()),
        };
        return true;
    }
    false
}

fn run(object: &Object<'_>, sum: &mut Sum) {
    let (mut running, mut failure) = (false, String::new());
    for status in object.items("status.containerStatuses").iter().rev() {
        sum.restarted(status);
        let waiting = status.pointer("/state/waiting").map_or("", |state| text(state, "reason"));
        let ready = status.get("ready").and_then(Value::as_bool).unwrap_or_default();
        if !waiting.is_empty() {
            waiting.clone_into(&mut sum.reason);
        } else if let Some(state) = status.pointer("/state/terminated") {
            sum.reason = ended(state);
            if exit_code(state) != 0 {
                failure.clone_from(&sum.reason);
            }
        } else if ready && status.pointer("/state/running").is_some() {
            running = true;
            sum.ready += 1;
        }
    }
    // One that is done does not make the pod done.
    if sum.reason == "Completed" {
        if running && object.condition("Ready") {
            "Running".clone_into(&mut sum.reason);
        } else if !failure.is_empty() {
            sum.reason = failure;
        } else if running {
            "NotReady".clone_into(&mut sum.reason);
        }
    }
}

fn exit_code(state: &Value) -> i64 {
    state.get("exitCode").and_then(Value::as_i64).unwrap_or_default()
}

fn ended(state: &Value) -> String {
    match (text(state, "reason"), state.get("signal").and_then(Value::as_i64).unwrap_or_default()) {
        ("", 0) => format!("ExitCode:{}", exit_code(state)),
        ("", signal) => format!("Signal:{signal}"),
        (reason, _) => reason.to_owned(),
    }
}
