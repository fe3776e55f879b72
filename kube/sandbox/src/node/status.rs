//! A pod's status as a kubelet writes it. Pure.

use super::lifecycle::{Container, Ended, Lifecycle, Phase, State};
use atoll_apimachinery::conditions::since;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// What is known of a pod besides its containers.
#[derive(Clone, Debug)]
pub(super) struct PodPlacement {
    pub(super) host: Ipv4Addr,
    pub(super) address: Ipv4Addr,
    pub(super) since: Timestamp,
    /// The pod's generation after it was put on this node.
    pub(super) bound: Option<i64>,
}

impl PodPlacement {
    fn generation(&self, pod: &Pod) -> Option<i64> {
        pod.metadata.generation.max(self.bound)
    }
}

/// The conditions that a kubelet and a scheduler write; others are kept.
const OURS: [&str; 5] =
    ["PodScheduled", "PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready"];

/// The status of a pod, as a merge patch of it. `written` is the one before, which a watch may not have told yet.
pub(super) fn status(
    pod: &Pod,
    life: &Lifecycle,
    placement: &PodPlacement,
    written: Option<&Value>,
    now: Timestamp,
) -> Value {
    let phase = life.phase();
    let mut status = json!({
        "phase": name(phase),
        "hostIP": placement.host.to_string(),
        "hostIPs": [{"ip": placement.host.to_string()}],
        "podIP": placement.address.to_string(),
        "podIPs": [{"ip": placement.address.to_string()}],
        "startTime": time(placement.since),
        "conditions": conditions(pod, life, placement, written, now),
        "containerStatuses": containers(pod, life, false),
        "observedGeneration": placement.generation(pod),
    });
    if life.containers().iter().any(|one| one.plan.init) {
        status["initContainerStatuses"] = containers(pod, life, true);
    }
    status
}

fn name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
    }
}

/// Kubernetes counts whole seconds.
pub(super) fn time(at: Timestamp) -> String {
    Timestamp::from_second(at.as_second()).unwrap_or(at).to_string()
}

fn containers(pod: &Pod, life: &Lifecycle, init: bool) -> Value {
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    life.containers().iter().filter(|one| one.plan.init == init).map(|one| container(uid, one)).collect()
}

fn container(uid: &str, one: &Container) -> Value {
    let id = format!("sandbox://{uid}/{}/{}", one.plan.name, one.restarts);
    let ran = !matches!(one.state, State::Waiting { .. }) || one.last.is_some();
    let completed = matches!(&one.state, State::Ended(ended) if ended.code == 0);
    let mut status = json!({
        "name": one.plan.name,
        "image": one.plan.image,
        "imageID": if ran { format!("sandbox://{}", one.plan.image) } else { String::new() },
        "restartCount": one.restarts,
        "started": one.started,
        "ready": if one.plan.init && !one.plan.sidecar { completed } else { one.ready },
        "state": match &one.state {
            State::Waiting { reason, message } if message.is_empty() => json!({"waiting": {"reason": reason}}),
            State::Waiting { reason, message } => json!({"waiting": {"reason": reason, "message": message}}),
            State::Running { since } => json!({"running": {"startedAt": time(*since)}}),
            State::Ended(ended) => terminated(ended, &id),
        },
        "lastState": one.last.as_ref().map_or(json!({}), |ended| terminated(ended, &id)),
    });
    if ran {
        status["containerID"] = id.into();
    }
    status
}

fn terminated(ended: &Ended, id: &str) -> Value {
    json!({"terminated": {
        "exitCode": ended.code,
        "reason": ended.reason,
        "startedAt": time(ended.since.unwrap_or(ended.at)),
        "finishedAt": time(ended.at),
        "containerID": id,
    }})
}

/// A condition's status, and why it is not true.
struct Condition {
    kind: &'static str,
    why_not: Option<(&'static str, String)>,
}

fn conditions(
    pod: &Pod,
    life: &Lifecycle,
    placement: &PodPlacement,
    written: Option<&Value>,
    now: Timestamp,
) -> Value {
    let list = |init: bool, fine: fn(&Container) -> bool| {
        let all = life.containers().iter().filter(|one| one.plan.init == init && !fine(one));
        all.map(|one| one.plan.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    let completed = life.phase() == Phase::Succeeded;
    let generation = placement.generation(pod);
    let unready = list(false, |one| one.ready);
    let initialized = match life.initialized() || completed {
        true => None,
        false => {
            let waiting = list(true, |one| matches!(&one.state, State::Ended(ended) if ended.code == 0));
            Some(("ContainersNotInitialized", format!("containers with incomplete status: [{waiting}]")))
        }
    };
    let ready = match (completed, unready.as_str()) {
        (true, _) => Some(("PodCompleted", String::new())),
        (false, "") => None,
        (false, names) => Some(("ContainersNotReady", format!("containers with unready status: [{names}]"))),
    };
    let gate = ready.clone().or_else(|| unmet_gate(pod));
    let new = [
        Condition { kind: "PodReadyToStartContainers", why_not: None },
        Condition { kind: "Initialized", why_not: initialized },
        Condition { kind: "Ready", why_not: gate },
        Condition { kind: "ContainersReady", why_not: ready },
        Condition { kind: "PodScheduled", why_not: None },
    ];
    let told = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let told: Vec<Value> =
        told.into_iter().flatten().map(|known| serde_json::to_value(known).unwrap_or_default()).collect();
    let old = written.and_then(|written| written["conditions"].as_array()).unwrap_or(&told);
    let others = |known: &&Value| !OURS.iter().any(|ours| known["type"] == *ours);
    let mut all: Vec<Value> = told.iter().filter(others).cloned().collect();
    for condition in new {
        let status = if condition.why_not.is_none() { "True" } else { "False" };
        let before = old.iter().find(|known| known["type"] == condition.kind);
        let before =
            before.and_then(|known| Some((known["status"].as_str()?, known["lastTransitionTime"].as_str()?)));
        let since = since(before.map(|(was, at)| (was, at.to_owned())), status, time(now));
        let mut value = json!({
            "type": condition.kind,
            "status": status,
            "lastProbeTime": null,
            "lastTransitionTime": since,
            "observedGeneration": generation,
        });
        if let Some((reason, message)) = condition.why_not {
            value["reason"] = reason.into();
            if !message.is_empty() {
                value["message"] = message.into();
            }
        }
        all.push(value);
    }
    all.into()
}

/// A condition of another controller that the pod waits for (a readiness gate).
fn unmet_gate(pod: &Pod) -> Option<(&'static str, String)> {
    let gates = pod.spec.as_ref()?.readiness_gates.as_ref()?;
    let known = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    let met = |kind: &str| known.into_iter().flatten().any(|one| one.type_ == kind && one.status == "True");
    let unmet = gates.iter().find(|gate| !met(&gate.condition_type))?;
    let message = format!("the status of pod readiness gate {:?} is not \"True\"", unmet.condition_type);
    Some(("ReadinessGatesNotReady", message))
}

#[cfg(test)]
mod tests {
    use super::super::lifecycle::{Event, KILLED};
    use super::*;
    use crate::node::spec;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    fn pod() -> Pod {
        serde_json::from_value(json!({
            "metadata": {"name": "web", "uid": "u1", "generation": 1},
            "spec": {
                "containers": [{"name": "a", "image": "nginx"}, {"name": "b", "image": "nginx",
                    "readinessProbe": {"tcpSocket": {"port": 80}}}],
                "readinessGates": [{"conditionType": "example.com/fed"}],
            },
            "status": {"conditions": [{"type": "example.com/fed", "status": "True"}]},
        }))
        .unwrap()
    }

    fn condition(status: &Value, kind: &str) -> (String, String, String) {
        let all = status["conditions"].as_array().unwrap();
        let one = all.iter().find(|one| one["type"] == kind).unwrap();
        let text = |field: &str| one[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("reason"), text("lastTransitionTime"))
    }

    #[test]
    fn a_pod_is_ready_when_its_containers_and_its_gates_are() {
        let mut pod = pod();
        let mut life = spec::lifecycle(&pod, spec::Timing::default(), at(0));
        let address = Ipv4Addr::new(127, 1, 1, 1);
        let placement =
            PodPlacement { host: Ipv4Addr::new(127, 1, 0, 1), address, since: at(0), bound: None };
        let look = |life: &Lifecycle, pod: &mut Pod, now: Timestamp| {
            let status = status(pod, life, &placement, None, now);
            pod.status = serde_json::from_value(status.clone()).unwrap();
            status
        };
        life.step(Event::Tick, at(0));
        assert_eq!(look(&life, &mut pod, at(0))["phase"], "Pending");
        life.step(Event::Started(0), at(1));
        life.step(Event::Started(1), at(1));
        let seen = look(&life, &mut pod, at(1));
        assert_eq!(seen["phase"], "Running");
        assert_eq!(seen["podIP"], "127.1.1.1");
        let not_ready = ("False".to_owned(), "ContainersNotReady".to_owned(), time(at(0)));
        assert_eq!(condition(&seen, "Ready"), not_ready, "it was not ready before either");
        let passed =
            Event::Probed { slot: 1, kind: super::super::lifecycle::ProbeKind::Readiness, passed: true };
        life.step(passed, at(2));
        let seen = look(&life, &mut pod, at(2));
        assert_eq!(condition(&seen, "Ready"), ("True".to_owned(), String::new(), time(at(2))));
        assert_eq!(condition(&seen, "example.com/fed").0, "True", "what others wrote is kept");
        if let Some(conditions) = pod.status.as_mut().and_then(|status| status.conditions.as_mut()) {
            conditions.retain(|one| one.type_ != "example.com/fed");
        }
        let seen = look(&life, &mut pod, at(3));
        assert_eq!(condition(&seen, "Ready").1, "ReadinessGatesNotReady");
        assert_eq!(condition(&seen, "ContainersReady").2, time(at(2)));
    }

    #[test]
    fn a_container_says_how_it_ended() {
        let pod = pod();
        let mut life = spec::lifecycle(&pod, spec::Timing::default(), at(0));
        let placement = PodPlacement {
            host: Ipv4Addr::LOCALHOST,
            address: Ipv4Addr::new(127, 1, 1, 1),
            since: at(0),
            bound: None,
        };
        life.step(Event::Tick, at(0));
        life.step(Event::Started(0), at(1));
        life.step(Event::Ended { slot: 0, code: KILLED }, at(2));
        let status = status(&pod, &life, &placement, None, at(2));
        let first = &status["containerStatuses"][0];
        assert_eq!(first["state"]["terminated"]["exitCode"], 137);
        assert_eq!(first["state"]["terminated"]["reason"], "Error");
        life.step(Event::Started(0), at(3));
        let status = super::status(&pod, &life, &placement, None, at(3));
        let first = &status["containerStatuses"][0];
        assert_eq!(
            (&first["restartCount"], &first["lastState"]["terminated"]["exitCode"]),
            (&1.into(), &137.into())
        );
    }
}
