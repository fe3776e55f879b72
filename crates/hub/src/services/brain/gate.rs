//! No plan leaves before what it remembers is written down (ADR 0002).

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::engine::Outcome;
use atoll_engine::memory::MemoryUpdate;
use atoll_engine::names::ServiceKey;
use atoll_engine::plan::{Plan, Touched};

/// Plans that wait for the hub's API, at most one per service: a newer plan replaces the one that waits.
#[derive(Debug, Default)]
pub(super) struct Gate {
    held: BTreeMap<ServiceKey, Held>,
}

#[derive(Debug)]
struct Held {
    plan: Arc<Plan>,
    touched: Touched,
    under_way: MemoryUpdate,
    next: Option<MemoryUpdate>,
}

/// What becomes of a plan.
#[derive(Debug, PartialEq)]
pub(super) enum Pass {
    /// It can be handed out.
    Release(Arc<Plan>, Touched),
    /// This has to be written first.
    Write(MemoryUpdate),
    /// It waits for a write that is under way.
    Wait,
}

impl Gate {
    /// Takes in a plan.
    pub(super) fn admit(&mut self, outcome: Outcome) -> Pass {
        let Outcome { plan, touched, memory } = outcome;
        if let Some(held) = self.held.get_mut(&plan.service) {
            held.touched = both(std::mem::replace(&mut held.touched, Touched::Nothing), touched);
            held.plan = plan;
            held.next = memory.or(held.next.take());
            return Pass::Wait;
        }
        match memory {
            None => Pass::Release(plan, touched),
            Some(update) => {
                let held = Held { plan, touched, under_way: update.clone(), next: None };
                self.held.insert(held.plan.service.clone(), held);
                Pass::Write(update)
            }
        }
    }

    /// A write has ended; if badly, it is to be tried again, with what is newest by then.
    pub(super) fn written(&mut self, key: &ServiceKey, done: bool) -> Pass {
        let Some(held) = self.held.get_mut(key) else { return Pass::Wait };
        match held.next.take() {
            Some(next) => {
                held.under_way = next.clone();
                Pass::Write(next)
            }
            None if !done => Pass::Write(held.under_way.clone()),
            None => match self.held.remove(key) {
                Some(held) => Pass::Release(held.plan, held.touched),
                None => Pass::Wait,
            },
        }
    }

    /// Whether a plan of this service waits.
    pub(super) fn holds(&self, key: &ServiceKey) -> bool {
        self.held.contains_key(key)
    }

    /// How many wait.
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
            Pass::Write(_) | Pass::Wait => panic!("{pass:?}"),
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
        assert_eq!(released(gate.written(&key(), true)), Touched::Everything);
        assert!(!gate.holds(&key()));
    }

    #[test]
    fn a_failed_write_lets_nothing_pass_and_is_tried_again() {
        let mut gate = Gate::default();
        gate.admit(outcome(Touched::Everything, put()));
        assert_eq!(gate.written(&key(), false), Pass::Write(put().unwrap()));
        assert_eq!(gate.admit(outcome(slices("x"), None)), Pass::Wait);
        assert_eq!(gate.written(&key(), false), Pass::Write(put().unwrap()));
    }

    #[test]
    fn what_waits_together_goes_together_after_the_newest_memory() {
        let mut gate = Gate::default();
        gate.admit(outcome(slices("x"), put()));
        assert_eq!(gate.admit(outcome(slices("y"), forget())), Pass::Wait);
        assert_eq!(gate.admit(outcome(Touched::Nothing, None)), Pass::Wait);
        assert_eq!(gate.written(&key(), true), Pass::Write(forget().unwrap()));
        assert_eq!(released(gate.written(&key(), true)), both(slices("x"), slices("y")));
    }
}
