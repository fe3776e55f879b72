//! A pod, as far as controllers care.

use super::{Meta, list, text, time};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::net::IpAddr;

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Pod {
    pub(crate) meta: Meta,
    pub(crate) node: String,
    pub(crate) hostname: String,
    pub(crate) subdomain: String,
    /// The ports that have names.
    pub(crate) ports: Vec<ContainerPort>,
    pub(crate) phase: Phase,
    /// Since when it is ready.
    pub(crate) ready: Option<Timestamp>,
    pub(crate) addresses: Vec<IpAddr>,
    /// How often containers were started anew.
    pub(crate) restarts: i64,
    /// When the last container ended.
    pub(crate) ended: Option<Timestamp>,
    /// The higher, the later it goes when there are too many.
    pub(crate) deletion_cost: i64,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    #[default]
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// A named port of a container.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ContainerPort {
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) port: u16,
}

impl Pod {
    pub(crate) fn read(object: &Value) -> Self {
        let (spec, status) = (&object["spec"], &object["status"]);
        let ready = list(&status["conditions"])
            .find(|one| one["type"] == "Ready" && one["status"] == "True")
            .map(|one| time(&one["lastTransitionTime"]).unwrap_or(Timestamp::UNIX_EPOCH));
        let mut addresses: Vec<IpAddr> =
            list(&status["podIPs"]).filter_map(|one| one["ip"].as_str()?.parse().ok()).collect();
        if addresses.is_empty() {
            addresses.extend(status["podIP"].as_str().and_then(|one| one.parse::<IpAddr>().ok()));
        }
        let containers = || list(&status["containerStatuses"]);
        Self {
            meta: Meta::read(object),
            node: text(&spec["nodeName"]),
            hostname: text(&spec["hostname"]),
            subdomain: text(&spec["subdomain"]),
            ports: named_ports(spec),
            phase: match status["phase"].as_str() {
                Some("Running") => Phase::Running,
                Some("Succeeded") => Phase::Succeeded,
                Some("Failed") => Phase::Failed,
                Some("Unknown") => Phase::Unknown,
                _ => Phase::Pending,
            },
            ready,
            addresses,
            restarts: containers().filter_map(|one| one["restartCount"].as_i64()).sum(),
            ended: containers().filter_map(|one| time(&one["state"]["terminated"]["finishedAt"])).max(),
            deletion_cost: crate::controllers::replicaset::deletion_cost(object),
        }
    }

    /// It has ended, well or not.
    pub(crate) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// It counts as a replica.
    pub(crate) fn is_active(&self) -> bool {
        !self.is_over() && !self.meta.going
    }

    /// When it has been ready for long enough. `None` if it is not ready.
    pub(crate) fn available_at(&self, min_ready: i64) -> Option<Timestamp> {
        let since = self.ready?;
        Some(since.checked_add(SignedDuration::from_secs(min_ready)).unwrap_or(since))
    }

    pub(crate) fn is_available(&self, min_ready: i64, now: Timestamp) -> bool {
        // Without a minimum, clocks that disagree do not matter.
        self.available_at(min_ready).is_some_and(|at| min_ready == 0 || at <= now)
    }
}

fn named_ports(spec: &Value) -> Vec<ContainerPort> {
    let sidecars = list(&spec["initContainers"]).filter(|one| one["restartPolicy"] == "Always");
    let ports = list(&spec["containers"]).chain(sidecars).flat_map(|container| list(&container["ports"]));
    ports
        .filter_map(|port| {
            let name = port["name"].as_str().filter(|name| !name.is_empty())?.to_owned();
            let protocol = port["protocol"].as_str().unwrap_or("TCP").to_owned();
            Some(ContainerPort { name, protocol, port: u16::try_from(port["containerPort"].as_u64()?).ok()? })
        })
        .collect()
}
