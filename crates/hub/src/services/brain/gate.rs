//! No plan leaves before what it remembers is written down (ADR 0002). There is one exception: what the hub's API refuses to take will not
//! be taken later either, and must not stop the endpoints of a service for all clusters. Then plans go out, and the write is tried again.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::engine::Outcome;
use atoll_engine::memory::MemoryUpdate;
use atoll_engine::names::ServiceKey;
use atoll_engine::plan::{Plan, Touched};

/// How a write ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// It is written down.
    Written,
    /// The API could not be asked, or could not do it now.
    Failed,
    /// The API does not take it: too large, not allowed, not valid.
    Refused,
}

/// What is not written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unwritten {
    /// The write is under way, and plans wait for it.
    Waits,
    /// The hub's API refused it. Plans pass, and it is tried again.
    Refused,
}

/// Writes that are under way, at most one per service, and the plans that wait for them: a newer plan replaces the one that waits.
#[derive(Debug, Default)]
pub(super) struct Gate {
    held: BTreeMap<ServiceKey, Held>,
}

#[derive(Debug)]
struct Held {
    /// What waits; nothing if the write was refused and is not waited for.
    waiting: Option<(Arc<Plan>, Touched)>,
    under_way: MemoryUpdate,
    next: Option<MemoryUpdate>,
    /// The last write was refused: plans pass.
    open: bool,
}

/// What becomes of a plan.
#[derive(Debug, PartialEq)]
pub(super) enum Pass {
    /// It can be handed out.
    Release(Arc<Plan>, Touched),
    /// This has to be written first.
    Write(MemoryUpdate),
    /// It can be handed out although this could not be written, and is tried again.
    ReleaseAndWrite(Arc<Plan>, Touched, MemoryUpdate),
    /// It waits for a write that is under way.
    Wait,
}

impl Gate {
    /// Takes in a plan.
    pub(super) fn admit(&mut self, outcome: Outcome) -> Pass {
        let Outcome { plan, touched, memory } = outcome;
        if let Some(held) = self.held.get_mut(&plan.service) {
            held.next = memory.or(held.next.take());
            if held.open {
                return Pass::Release(plan, touched);
            }
            let before = held.waiting.take().map_or(Touched::Nothing, |(_, touched)| touched);
            held.waiting = Some((plan, both(before, touched)));
            return Pass::Wait;
        }
        match memory {
            None => Pass::Release(plan, touched),
            Some(update) => {
                let service = plan.service.clone();
                let waiting = Some((plan, touched));
                self.held
                    .insert(service, Held { waiting, under_way: update.clone(), next: None, open: false });
                Pass::Write(update)
            }
        }
    }

    /// A write has ended; if badly, it is to be tried again, with what is newest by then.
    pub(super) fn written(&mut self, key: &ServiceKey, ended: Ended) -> Pass {
        let Some(held) = self.held.get_mut(key) else { return Pass::Wait };
        match ended {
            Ended::Written => held.open = false,
            Ended::Failed => {}
            Ended::Refused => held.open = true,
        }
        let again = held.next.take().or_else(|| (ended != Ended::Written).then(|| held.under_way.clone()));
        match again {
            Some(again) => {
                held.under_way = again.clone();
                match held.waiting.take_if(|_| held.open) {
                    Some((plan, touched)) => Pass::ReleaseAndWrite(plan, touched, again),
                    None => Pass::Write(again),
                }
            }
            None => match self.held.remove(key).and_then(|held| held.waiting) {
                Some((plan, touched)) => Pass::Release(plan, touched),
                None => Pass::Wait,
            },
        }
    }

    /// Whether a plan of this service waits.
    pub(super) fn holds(&self, key: &ServiceKey) -> bool {
        self.held.get(key).is_some_and(|held| !held.open)
    }

    /// Whether something of this service is not written down.
    pub(super) fn unwritten(&self, key: &ServiceKey) -> Option<Unwritten> {
        self.held.get(key).map(|held| if held.open { Unwritten::Refused } else { Unwritten::Waits })
    }

    /// How many services have something that is not written down.
    pub(super) fn len(&self) -> usize {
        self.held.len()
    }
}

/// What two steps touch together.
fn both(first: Touched, second: Touched) -> Touched {
    match (first, second) {
        (Touched::Everything, _) | (_, Touched::Everything) => Touched::Everything,
        (Touched::Nothing, other) | (other, Touched::Nothing) => other,
        (Touched::Slices(mut first), Touched::Slices(second)) => {
            first.extend(second);
            Touched::Slices(first)
        }
    }
}

#[cfg(test)]
mod tests {

    use atoll_engine::memory::ServiceMemory;
    use atoll_engine::names::{ClusterId, SliceName};

    use super::*;

    fn key() -> ServiceKey {
        ServiceKey::parse("shop", "web").unwrap()
    }
    fn put() -> Option<MemoryUpdate> {
        Some(MemoryUpdate::Put(key(), ServiceMemory::default()))
    }
    fn forget() -> Option<MemoryUpdate> {
        Some(MemoryUpdate::Forget(key()))
    }
    fn slices(name: &str) -> Touched {
        Touched::Slices([(ClusterId::parse("a").unwrap(), SliceName::parse(name).unwrap())].into())
    }
    fn outcome(touched: Touched, memory: Option<MemoryUpdate>) -> Outcome {
        let plan = Plan { service: key(), crossing: None, balanced: None, clusters: Default::default() };
        Outcome { plan: Arc::new(plan), touched, memory }
    }
    fn released(pass: Pass) -> Touched {
        match pass {
            Pass::Release(_, touched) => touched,
            Pass::Write(_) | Pass::ReleaseAndWrite(..) | Pass::Wait => panic!("{pass:?}"),
        }
    }

    #[test]
    fn a_plan_with_nothing_to_remember_passes_at_once() {
        assert_eq!(released(Gate::default().admit(outcome(slices("x"), None))), slices("x"));
    }

    #[test]
    fn a_plan_waits_until_its_memory_is_written() {
        let mut gate = Gate::default();
        assert_eq!(gate.admit(outcome(Touched::Everything, put())), Pass::Write(put().unwrap()));
        assert!(gate.holds(&key()));
        assert_eq!(released(gate.written(&key(), Ended::Written)), Touched::Everything);
        assert!(!gate.holds(&key()));
    }

    #[test]
    fn a_failed_write_lets_nothing_pass_and_is_tried_again() {
        let mut gate = Gate::default();
        gate.admit(outcome(Touched::Everything, put()));
        assert_eq!(gate.written(&key(), Ended::Failed), Pass::Write(put().unwrap()));
        assert_eq!(gate.admit(outcome(slices("x"), None)), Pass::Wait);
        assert_eq!(gate.written(&key(), Ended::Failed), Pass::Write(put().unwrap()));
    }

    #[test]
    fn what_waits_together_goes_together_after_the_newest_memory() {
        let mut gate = Gate::default();
        gate.admit(outcome(slices("x"), put()));
        assert_eq!(gate.admit(outcome(slices("y"), forget())), Pass::Wait);
        assert_eq!(gate.admit(outcome(Touched::Nothing, None)), Pass::Wait);
        assert_eq!(gate.written(&key(), Ended::Written), Pass::Write(forget().unwrap()));
        assert_eq!(released(gate.written(&key(), Ended::Written)), both(slices("x"), slices("y")));
    }

    #[test]
    fn what_the_api_refuses_does_not_freeze_the_service() {
        let mut gate = Gate::default();
        gate.admit(outcome(Touched::Everything, put()));
        let Pass::ReleaseAndWrite(_, touched, again) = gate.written(&key(), Ended::Refused) else { panic!() };
        assert_eq!((touched, again), (Touched::Everything, put().unwrap()), "handed out, and tried again");
        assert_eq!(released(gate.admit(outcome(slices("x"), None))), slices("x"), "endpoints move on");
        assert!(!gate.holds(&key()) && gate.len() == 1);
        assert_eq!(gate.written(&key(), Ended::Refused), Pass::Write(put().unwrap()));
        assert_eq!(released(gate.admit(outcome(slices("y"), forget()))), slices("y"));
        assert_eq!(gate.written(&key(), Ended::Failed), Pass::Write(forget().unwrap()), "the newest");
        assert_eq!(gate.written(&key(), Ended::Written), Pass::Wait);
        assert_eq!(gate.len(), 0);
    }
}
