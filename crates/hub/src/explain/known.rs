//! What answers are read off: the leader's own state.

use atoll_api::explain::Remark;
use atoll_api::names::code::Code;
use atoll_engine::engine::Engine;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{ClusterPlan, Plan};
use atoll_engine::time::Time;
use atoll_engine::world::World;

use super::steps;
use crate::mcs::balancing::LoadBalancers;
use crate::membership::roster::Roster;
use crate::services::brain::{Brain, Now};

/// Who answers.
#[derive(Debug, Clone)]
pub(crate) struct About {
    /// The clusterset's name.
    pub(crate) clusterset: String,
    /// Who leads.
    pub(crate) leader: String,
    /// Its version.
    pub(crate) version: &'static str,
}

/// The leader's state, to be read.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) brain: &'a Brain,
    pub(crate) roster: &'a Roster,
    pub(crate) balancers: &'a LoadBalancers,
    pub(crate) about: &'a About,
    pub(crate) now: Now,
}

impl<'a> Known<'a> {
    pub(super) fn engine(&self) -> &'a Engine {
        self.brain.engine()
    }

    pub(super) fn world(&self) -> &'a World {
        self.brain.engine().world()
    }

    /// The last plan of a service.
    pub(super) fn plan(&self, key: &ServiceKey) -> Option<&'a Plan> {
        self.brain.engine().last_plan(key).map(|plan| &**plan)
    }

    /// What a cluster is told of a service.
    pub(super) fn part(&self, key: &ServiceKey, id: &ClusterId) -> Option<&'a ClusterPlan> {
        self.plan(key)?.clusters.get(id).map(|part| &**part)
    }
}

/// A time as Kubernetes writes it.
pub(super) fn rfc3339(time: Time) -> String {
    jiff::Timestamp::from_millisecond(time.0).map(|time| format!("{time:.0}")).unwrap_or_default()
}

/// A remark about a service in a cluster, with a next step that names them.
pub(super) fn remark(code: Code, message: &str, key: &ServiceKey, cluster: &ClusterId) -> Remark {
    let remark = Remark::new(code, sentence(message));
    match steps::next(code, Some(key), cluster) {
        Some(next) => remark.next(next),
        None => remark,
    }
}

/// A text as a sentence.
pub(super) fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let end = if text.ends_with(['.', '!', '?']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Names, as a person lists them; no more than a few.
pub(super) fn list(ids: &[&ClusterId]) -> String {
    const MOST: usize = 8;
    let named: Vec<&str> = ids.iter().take(MOST).map(|id| id.as_str()).collect();
    let more = ids.len().saturating_sub(MOST);
    if more > 0 { format!("{} and {more} more", named.join(", ")) } else { named.join(", ") }
}
