//! Which object is looked at next: namespaces and CRDs first, sixteen requests at a time, and one at a time to a member in trouble.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use atoll_engine::placement::object::ObjectKey;

const IN_FLIGHT: usize = 16;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(super) struct Queue {
    ready: BTreeSet<(u8, ObjectKey)>,
    asleep: BTreeSet<(Instant, ObjectKey)>,
    wakes: BTreeMap<ObjectKey, Instant>,
    failures: BTreeMap<ObjectKey, u32>,
    flying: usize,
    /// How often the member did not answer, and until when it is left in peace.
    trouble: Option<(u32, Instant)>,
}

/// What others wait for comes first.
fn rank(key: &ObjectKey) -> u8 {
    match (key.kind.group(), key.kind.kind.as_str()) {
        ("", "Namespace") => 0,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => 1,
        ("", "ServiceAccount" | "ConfigMap" | "Secret" | "PersistentVolumeClaim") => 2,
        _ => 3,
    }
}

fn delay(failures: u32) -> Duration {
    FIRST_DELAY.saturating_mul(1 << failures.min(10)).min(LONGEST_DELAY)
}

impl Queue {
    /// Asks for a look. What sleeps after a failure sleeps on.
    pub(super) fn add(&mut self, key: ObjectKey) {
        if !self.wakes.contains_key(&key) {
            self.ready.insert((rank(&key), key));
        }
    }

    /// Asks for a look now: something has changed that it waited for.
    pub(super) fn hurry(&mut self, key: ObjectKey) {
        if let Some(at) = self.wakes.remove(&key) {
            self.asleep.remove(&(at, key.clone()));
        }
        self.failures.remove(&key);
        self.ready.insert((rank(&key), key));
    }

    /// Asks for a look after a while that grows with each failure, or that is named.
    pub(super) fn later(&mut self, key: ObjectKey, named: Option<Duration>, now: Instant) {
        let failures = self.failures.entry(key.clone()).or_default();
        let at = now + named.unwrap_or_else(|| delay(*failures));
        *failures = failures.saturating_add(1);
        self.ready.remove(&(rank(&key), key.clone()));
        if let Some(before) = self.wakes.insert(key.clone(), at) {
            self.asleep.remove(&(before, key.clone()));
        }
        self.asleep.insert((at, key));
    }

    pub(super) fn wake(&mut self, now: Instant) {
        while let Some((at, key)) = self.asleep.first().cloned().filter(|(at, _)| *at <= now) {
            self.asleep.remove(&(at, key.clone()));
            self.wakes.remove(&key);
            self.add(key);
        }
    }

    pub(super) fn next(&mut self, now: Instant) -> Option<ObjectKey> {
        let most = match self.trouble {
            Some((_, until)) if now < until => return None,
            Some(_) => 1,
            None => IN_FLIGHT,
        };
        if self.flying >= most {
            return None;
        }
        self.ready.pop_first().map(|(_, key)| key)
    }

    pub(super) fn fly(&mut self) {
        self.flying += 1;
    }

    pub(super) fn land(&mut self) {
        self.flying = self.flying.saturating_sub(1);
    }

    /// The member has answered.
    pub(super) fn recover(&mut self, key: &ObjectKey) {
        self.trouble = None;
        self.failures.remove(key);
    }

    /// The member has not answered: all of it is left in peace for a while.
    pub(super) fn stumble(&mut self, now: Instant) {
        let (times, until) = self.trouble.unwrap_or((0, now));
        if until <= now {
            self.trouble = Some((times.saturating_add(1), now + delay(times)));
        }
    }

    pub(super) fn next_wake(&self) -> Option<Instant> {
        let trouble =
            self.trouble.filter(|_| !self.ready.is_empty() && self.flying == 0).map(|(_, until)| until);
        self.asleep.first().map(|(at, _)| *at).into_iter().chain(trouble).min()
    }
}
