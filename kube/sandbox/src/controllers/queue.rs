//! What is to be looked at, in which order: one at a time per key, again after a failure, later where time matters.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use tokio::time::Instant;

const FIRST_DELAY: Duration = Duration::from_millis(10);
const LONGEST_DELAY: Duration = Duration::from_secs(10);

/// Who looks at a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    Account,
    Slices,
    Deployment,
    ReplicaSet,
    StatefulSet,
    Job,
}

/// An object, and who looks at it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) controller: Controller,
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(controller: Controller, namespace: &str, name: &str) -> Self {
        Self { controller, namespace: namespace.to_owned(), name: name.to_owned() }
    }
}

/// Keys that wait.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    ready: VecDeque<Key>,
    /// Those in `ready`, and those that are to be looked at again after what goes on now.
    waiting: BTreeSet<Key>,
    busy: BTreeSet<Key>,
    later: BTreeMap<Key, Instant>,
    failures: BTreeMap<Key, u32>,
}

impl Queue {
    pub(crate) fn add(&mut self, key: Key) {
        if !self.waiting.contains(&key) {
            self.waiting.insert(key.clone());
            if !self.busy.contains(&key) {
                self.ready.push_back(key);
            }
        }
    }

    /// Looks at a key at some time, unless that happens sooner.
    pub(crate) fn add_at(&mut self, key: Key, at: Instant) {
        let when = self.later.entry(key).or_insert(at);
        *when = at.min(*when);
    }

    /// The next key; it is busy until it is [`done`](Self::done) or [`failed`](Self::failed).
    pub(crate) fn next(&mut self) -> Option<Key> {
        let key = self.ready.pop_front()?;
        self.waiting.remove(&key);
        self.busy.insert(key.clone());
        Some(key)
    }

    /// What was to be done is done.
    pub(crate) fn done(&mut self, key: &Key) {
        self.failures.remove(key);
        self.release(key);
    }

    /// Something could not be done: it is tried again a while later.
    pub(crate) fn failed(&mut self, key: &Key, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let delay = FIRST_DELAY.saturating_mul(1 << (*failures).min(10)).min(LONGEST_DELAY);
        *failures += 1;
        self.release(key);
        self.add_at(key.clone(), now + delay);
    }

    fn release(&mut self, key: &Key) {
        self.busy.remove(key);
        if self.waiting.contains(key) {
            self.ready.push_back(key.clone());
        }
    }

    /// When something is due although nothing happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.later.values().min().copied()
    }

    /// Makes ready what is due.
    pub(crate) fn wake(&mut self, now: Instant) {
        let due: Vec<Key> = self.later.extract_if(.., |_, at| *at <= now).map(|(key, _)| key).collect();
        due.into_iter().for_each(|key| self.add(key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn web() -> Key {
        Key::new(Controller::Deployment, "shop", "web")
    }

    #[test]
    fn a_key_is_looked_at_by_one_and_not_forgotten() {
        let mut queue = Queue::default();
        queue.add(web());
        queue.add(web());
        assert_eq!(queue.next(), Some(web()));
        assert_eq!(queue.next(), None);
        queue.add(web());
        assert_eq!(queue.next(), None, "it is busy");
        queue.done(&web());
        assert_eq!(queue.next(), Some(web()));
        queue.done(&web());
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn each_failure_waits_longer_and_success_forgets_them() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        let mut fail = |queue: &mut Queue| {
            queue.add(web());
            queue.next();
            queue.failed(&web(), now);
            let delay = queue.due().unwrap() - now;
            now += delay;
            queue.wake(now);
            delay
        };
        assert_eq!((fail(&mut queue), fail(&mut queue)), (FIRST_DELAY, FIRST_DELAY * 2));
        let longest = (0..40).map(|_| fail(&mut queue)).max();
        assert_eq!(longest, Some(LONGEST_DELAY));
        queue.next();
        queue.done(&web());
        assert_eq!(fail(&mut queue), FIRST_DELAY);
    }
}
