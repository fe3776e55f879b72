//! Reads what a pod wants off its object. Pure.

use super::lifecycle::{Backoff, Before, Ended, Lifecycle, Plan, Restart, Thresholds};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, Pod, PodSpec, Probe};

/// How long a pod may take to end by default.
const GRACE: i64 = 30;

/// How fast things go; other than the usual in tests alone.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Timing {
    pub(super) backoff: Backoff,
}

/// The containers of a pod, those that run first at the front.
pub(super) fn containers(spec: &PodSpec) -> impl Iterator<Item = (&Container, bool)> {
    let init = spec.init_containers.iter().flatten().map(|container| (container, true));
    init.chain(spec.containers.iter().map(|container| (container, false)))
}

/// The container at a place of the [`Lifecycle`].
pub(super) fn container(pod: &Pod, slot: usize) -> Option<&Container> {
    containers(pod.spec.as_ref()?).nth(slot).map(|(container, _)| container)
}

/// The life of a pod that is about to begin, or that goes on after a restart of this process.
pub(super) fn lifecycle(pod: &Pod, timing: Timing, now: Timestamp) -> Lifecycle {
    let spec = pod.spec.clone().unwrap_or_default();
    let restart = match spec.restart_policy.as_deref() {
        Some("Never") => Restart::Never,
        Some("OnFailure") => Restart::OnFailure,
        _ => Restart::Always,
    };
    let status = pod.status.clone().unwrap_or_default();
    let statuses = || status.init_container_statuses.iter().chain(&status.container_statuses).flatten();
    let plans = containers(&spec).map(|(container, init)| {
        let before = statuses().find(|status| status.name == container.name).map(before);
        (plan(container, init), before.unwrap_or_default())
    });
    let grace = SignedDuration::from_secs(spec.termination_grace_period_seconds.unwrap_or(GRACE));
    Lifecycle::new(restart, timing.backoff, grace, plans.collect(), now)
}

fn plan(container: &Container, init: bool) -> Plan {
    let thresholds = |probe: &Probe| {
        let count = |number: Option<i32>, usual| {
            number.and_then(|number| u32::try_from(number).ok()).unwrap_or(usual)
        };
        Thresholds { success: count(probe.success_threshold, 1), failure: count(probe.failure_threshold, 3) }
    };
    Plan {
        name: container.name.clone(),
        image: container.image.clone().unwrap_or_default(),
        init,
        sidecar: init && container.restart_policy.as_deref() == Some("Always"),
        startup: container.startup_probe.as_ref().map(thresholds),
        readiness: container.readiness_probe.as_ref().map(thresholds),
        liveness: container.liveness_probe.as_ref().map(thresholds),
    }
}

fn before(status: &ContainerStatus) -> Before {
    let ended = |state: Option<&ContainerState>| {
        let ended = state?.terminated.as_ref()?;
        Some(Ended {
            code: ended.exit_code,
            reason: match (ended.reason.as_deref(), ended.exit_code) {
                (Some("Unknown"), _) => "Unknown",
                (_, 0) => "Completed",
                _ => "Error",
            },
            since: ended.started_at.as_ref().map(|time| time.0),
            at: ended.finished_at.as_ref().map(|time| time.0)?,
        })
    };
    let running = status.state.as_ref().and_then(|state| state.running.as_ref());
    Before {
        restarts: status.restart_count,
        running: running.and_then(|running| running.started_at.as_ref()).map(|time| time.0),
        ended: ended(status.state.as_ref()),
        last: ended(status.last_state.as_ref()),
    }
}

/// The port that a probe or hook names: a number, or the name of one of the container's ports.
pub(super) fn port(
    container: &Container,
    port: &k8s_openapi::apimachinery::pkg::util::intstr::IntOrString,
) -> Option<u16> {
    use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
    match port {
        IntOrString::Int(number) => u16::try_from(*number).ok(),
        IntOrString::String(name) => {
            let mut ports = container.ports.iter().flatten();
            let named = ports.find(|port| port.name.as_deref() == Some(name));
            named.map_or_else(|| name.parse().ok(), |port| u16::try_from(port.container_port).ok())
        }
    }
}

/// Whether a node that bears `name` is to run the pod.
pub(super) fn is_for(pod: &Pod, name: &str) -> bool {
    let Some(spec) = &pod.spec else { return false };
    let placed = spec.node_name.as_deref().unwrap_or_default();
    let gated = spec.scheduling_gates.as_ref().is_some_and(|gates| !gates.is_empty());
    (placed.is_empty() && !gated) || placed == name
}

/// Whether the pod has ended for good.
pub(super) fn is_over(pod: &Pod) -> bool {
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    matches!(phase, Some("Succeeded" | "Failed"))
}

/// The addresses of pods that were given before.
pub(super) fn address(pod: &Pod) -> Option<std::net::Ipv4Addr> {
    pod.status.as_ref()?.pod_ip.as_ref()?.parse().ok()
}
