//! What waits to be written: each target once, Services before slices before status, at most so many at a time.
//!
//! The queue holds no contents. They are decided when a target's turn has come, so that the latest plan wins.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::{Duration, Instant};

use super::object::Target;

/// Writes in flight per member. Twice as many gain nothing and cost memory.
pub const IN_FLIGHT: usize = 16;
const FIRST_DELAY: Duration = Duration::from_millis(50);
const LONGEST_DELAY: Duration = Duration::from_secs(2);

/// How many targets there is always room for.
const ROOM: usize = 64;

/// Targets that wait, sleep, or are in flight.
#[derive(Debug, Default)]
pub struct Queue {
    ready: BTreeSet<(u8, u64, Target)>,
    place: HashMap<Target, u64>,
    asleep: BTreeSet<(Instant, Target)>,
    wakes: HashMap<Target, Instant>,
    flying: BTreeMap<Target, Flight>,
    failures: HashMap<Target, u32>,
    tickets: u64,
}

/// A request that has not been answered.
#[derive(Debug, Default)]
pub struct Flight {
    /// The object was seen to be gone at this revision, meanwhile: an older answer is no news.
    pub gone_at: Option<u64>,
}

impl Queue {
    /// Asks for a look at the target. One that sleeps after a failure sleeps on: the look will see the latest plan.
    pub fn add(&mut self, target: Target) {
        if self.place.contains_key(&target) || self.wakes.contains_key(&target) {
            return;
        }
        self.tickets += 1;
        self.place.insert(target.clone(), self.tickets);
        self.ready.insert((target.priority(), self.tickets, target));
    }

    /// The next target to look at that is not in flight, if there is room for another request.
    pub fn next(&mut self, busy: impl Fn(&Target, &BTreeMap<Target, Flight>) -> bool) -> Option<Target> {
        if self.flying.len() >= IN_FLIGHT {
            return None;
        }
        let entry = self.ready.iter().find(|(_, _, target)| !busy(target, &self.flying)).cloned()?;
        self.ready.remove(&entry);
        self.place.remove(&entry.2);
        if self.place.is_empty() {
            self.place.shrink_to(ROOM); // a table keeps the size of the largest burst
        }
        Some(entry.2)
    }

    /// A request was sent.
    pub fn fly(&mut self, target: Target) {
        self.flying.insert(target, Flight::default());
    }

    /// A request was answered.
    pub fn land(&mut self, target: &Target) -> Option<Flight> {
        self.flying.remove(target)
    }

    /// Whether a request for it is under way.
    pub fn is_flying(&self, target: &Target) -> bool {
        self.flying.contains_key(target)
    }

    /// The flight of a target.
    pub fn flight_mut(&mut self, target: &Target) -> Option<&mut Flight> {
        self.flying.get_mut(target)
    }

    /// Whether the target waits, sleeps or is in flight.
    pub fn awaits(&self, target: &Target) -> bool {
        self.place.contains_key(target) || self.wakes.contains_key(target) || self.flying.contains_key(target)
    }

    /// The target is as it should be.
    pub fn settled(&mut self, target: &Target) {
        self.failures.remove(target);
    }

    /// Looks at the target again after a while that grows with each failure, or that the server has named.
    pub fn later(&mut self, target: Target, named: Option<Duration>, now: Instant) {
        let failures = self.failures.entry(target.clone()).or_default();
        *failures = failures.saturating_add(1);
        let grown = FIRST_DELAY.saturating_mul(1 << (*failures - 1).min(10)).min(LONGEST_DELAY);
        let at = now + named.unwrap_or(grown);
        if let Some(ticket) = self.place.remove(&target) {
            self.ready.remove(&(target.priority(), ticket, target.clone()));
        }
        if let Some(before) = self.wakes.insert(target.clone(), at) {
            self.asleep.remove(&(before, target.clone()));
        }
        self.asleep.insert((at, target));
    }

    /// Looks at the target after `delay`, unless it is to be looked at sooner anyway.
    pub fn soon(&mut self, target: Target, delay: Duration, now: Instant) {
        if self.place.contains_key(&target) || self.wakes.contains_key(&target) {
            return;
        }
        self.wakes.insert(target.clone(), now + delay);
        self.asleep.insert((now + delay, target));
    }

    /// Wakes those whose time has come.
    pub fn wake(&mut self, now: Instant) {
        while let Some((at, target)) = self.asleep.first().cloned() {
            if at > now {
                break;
            }
            self.asleep.remove(&(at, target.clone()));
            self.wakes.remove(&target);
            self.add(target);
        }
    }

    /// When the next target wakes.
    pub fn next_wake(&self) -> Option<Instant> {
        self.asleep.first().map(|(at, _)| *at)
    }

    /// Whether nothing waits, sleeps or flies.
    pub fn is_idle(&self) -> bool {
        self.ready.is_empty() && self.asleep.is_empty() && self.flying.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_engine::names::{ServiceKey, ServiceName, SliceName};

    fn targets() -> [Target; 4] {
        let key = ServiceKey::parse("shop", "web").unwrap();
        [
            Target::ImportStatus(key.clone()),
            Target::Slice(key.clone(), SliceName::parse("imported-a-web").unwrap()),
            Target::Import(key.clone()),
            Target::Service(key, ServiceName::parse("derived-web").unwrap()),
        ]
    }

    #[test]
    fn each_target_waits_once_and_services_come_first() {
        let mut queue = Queue::default();
        for target in targets().into_iter().chain(targets()) {
            queue.add(target);
        }
        let order: Vec<u8> =
            std::iter::from_fn(|| queue.next(|_, _| false)).map(|target| target.priority()).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }

    #[test]
    fn delays_grow_to_two_seconds_and_end_with_success() {
        let mut queue = Queue::default();
        let [target, ..] = targets();
        let mut now = Instant::now();
        let mut delays = Vec::new();
        for _ in 0..8 {
            queue.later(target.clone(), None, now);
            queue.add(target.clone()); // A new plan does not wake it.
            assert_eq!(queue.next(|_, _| false), None);
            let at = queue.next_wake().unwrap();
            delays.push((at - now).as_millis());
            now = at;
            queue.wake(now);
            assert_eq!(queue.next(|_, _| false), Some(target.clone()));
        }
        assert_eq!(delays, [50, 100, 200, 400, 800, 1600, 2000, 2000]);
        queue.settled(&target);
        queue.later(target, Some(Duration::from_secs(7)), now);
        assert_eq!(queue.next_wake(), Some(now + Duration::from_secs(7)));
    }

    #[test]
    fn what_may_wait_is_not_put_off_by_more_of_the_same() {
        let mut queue = Queue::default();
        let [target, ..] = targets();
        let start = Instant::now();
        let delay = Duration::from_millis(5);
        queue.soon(target.clone(), delay, start);
        queue.soon(target.clone(), delay, start + Duration::from_millis(4));
        assert_eq!(queue.next_wake(), Some(start + delay));
        queue.wake(start + delay);
        assert_eq!(queue.next(|_, _| false), Some(target));
    }

    #[test]
    fn no_more_than_sixteen_fly() {
        let mut queue = Queue::default();
        for n in 0..40 {
            let key = ServiceKey::parse("shop", &format!("s{n}")).unwrap();
            queue.add(Target::Import(key));
        }
        let mut flying = Vec::new();
        while let Some(target) = queue.next(|_, _| false) {
            queue.fly(target.clone());
            flying.push(target);
        }
        assert_eq!(flying.len(), IN_FLIGHT);
        queue.land(&flying[0]);
        assert!(queue.next(|_, _| false).is_some());
    }
}
