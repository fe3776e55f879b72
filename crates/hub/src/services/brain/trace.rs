//! How long a slice took from its source to each target. It measures, and decides nothing.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use atoll_engine::names::{ClusterId, ServiceKey, SliceName};
use atoll_engine::plan::{DispatchPlan, ImportPlan, Plan, Touched};

/// A write is not awaited for longer than that; a target that had nothing to write is forgotten then.
const PATIENCE: Duration = Duration::from_secs(60);

/// A slice has arrived in another cluster.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Propagation {
    pub(crate) source: ClusterId,
    pub(crate) target: ClusterId,
    pub(crate) took: Duration,
}

type Slice = (ServiceKey, ClusterId, SliceName);

/// Changed slices on their way.
#[derive(Debug, Default)]
pub(super) struct Trace {
    arrived: HashMap<ServiceKey, Vec<(ClusterId, SliceName, Instant)>>,
    awaited: HashMap<Slice, HashMap<ClusterId, Instant>>,
    purged: Option<Instant>,
}

impl Trace {
    /// A source has changed a slice.
    pub(super) fn arrived(&mut self, key: ServiceKey, source: ClusterId, slice: SliceName, at: Instant) {
        let arrived = self.arrived.entry(key).or_default();
        if !arrived.iter().any(|(s, n, _)| *s == source && *n == slice) {
            arrived.push((source, slice, at)); // of a burst the first counts
        }
    }

    /// Its plan has been handed out.
    pub(super) fn handed_out(&mut self, plan: &Plan, touched: &Touched) {
        let arrived = self.arrived.remove(&plan.service).unwrap_or_default();
        for (source, slice, at) in arrived {
            let written = match touched {
                Touched::Nothing => false,
                Touched::Slices(slices) => slices.contains(&(source.clone(), slice.clone())),
                Touched::Everything => true,
            };
            if !written {
                continue;
            }
            let of = (plan.service.clone(), source.clone(), slice);
            let awaited = self.awaited.entry(of).or_default();
            for (target, own) in &plan.clusters {
                let dispatched =
                    matches!(&own.dispatch, DispatchPlan::Present(from) if from.get(&source).is_some());
                if dispatched || matches!(own.import, ImportPlan::Present { .. }) {
                    awaited.entry(target.clone()).or_insert(at);
                }
            }
        }
    }

    /// A target has written it.
    pub(super) fn wrote(
        &mut self,
        key: &ServiceKey,
        source: &ClusterId,
        slice: &SliceName,
        target: &ClusterId,
        at: Instant,
    ) -> Option<Propagation> {
        let key = (key.clone(), source.clone(), slice.clone());
        let awaited = self.awaited.get_mut(&key)?;
        let since = awaited.remove(target)?;
        if awaited.is_empty() {
            self.awaited.remove(&key);
        }
        let took = at.saturating_duration_since(since);
        Some(Propagation { source: key.1, target: target.clone(), took })
    }

    /// Whether a target has not confirmed a slice that it was told of.
    pub(super) fn awaits(
        &self,
        key: &ServiceKey,
        source: &ClusterId,
        slice: &SliceName,
        target: &ClusterId,
    ) -> bool {
        let of = (key.clone(), source.clone(), slice.clone());
        self.awaited.get(&of).is_some_and(|awaited| awaited.contains_key(target))
    }

    /// Forgets those that had nothing to write.
    pub(super) fn purge(&mut self, now: Instant) {
        if self.purged.is_some_and(|last| now < last + PATIENCE / 6) {
            return;
        }
        self.purged = Some(now);
        self.awaited.retain(|_, targets| {
            targets.retain(|_, since| now < *since + PATIENCE);
            !targets.is_empty()
        });
        self.arrived.retain(|_, slices| {
            slices.retain(|(_, _, at)| now < *at + PATIENCE);
            !slices.is_empty()
        });
    }
}
