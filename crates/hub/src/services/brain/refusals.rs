//! What is refused now, counted by member and reason. A refusal is part of what an export or a `MultiClusterService` is told, so it changes only
//! with plans that touch more than slices.

use std::collections::{BTreeMap, BTreeSet};

use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{Plan, Touched};
use atoll_engine::reason::{self, Refused};

/// Who is refused what.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    of: BTreeMap<ServiceKey, BTreeSet<(ClusterId, Refused)>>,
    changed: bool,
}

impl Refusals {
    /// A plan goes out.
    pub(super) fn take(&mut self, plan: &Plan, touched: &Touched) {
        match touched {
            Touched::Nothing | Touched::Slices(_) => return,
            Touched::Everything => {}
        }
        let refused: BTreeSet<_> = reason::refused(plan).collect();
        let before = match refused.is_empty() {
            true => self.of.remove(&plan.service).unwrap_or_default(),
            false => self.of.insert(plan.service.clone(), refused.clone()).unwrap_or_default(),
        };
        self.changed |= before != refused;
    }

    /// All of them, if they are not what they were at the last call.
    pub(super) fn news(&mut self) -> Option<BTreeMap<(ClusterId, &'static str), usize>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let mut counts = BTreeMap::new();
        for (id, why) in self.of.values().flatten() {
            *counts.entry((id.clone(), why.as_str())).or_default() += 1;
        }
        Some(counts)
    }
}
