//! The last events, one per revision without a gap, as many as the limits allow.

use super::Key;
use super::object::{Event, EventKind};
use std::collections::{HashMap, VecDeque};

/// How much history a store keeps for watches and lists at old revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// At most so many events.
    pub events: usize,
    /// At most so many bytes of bodies that are no longer current.
    pub bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { events: 8192, bytes: 8 << 20 }
    }
}

/// One event, and at which revision its predecessor was written.
#[derive(Debug)]
pub(super) struct Past {
    pub(super) event: Event,
    pub(super) previous_revision: u64,
}

impl Past {
    /// Bytes that only the history holds: what the object was before, and the last words of a deleted one.
    fn weight(&self) -> usize {
        let before = self.event.previous.as_ref().map_or(0, bytes::Bytes::len);
        before + if self.event.kind == EventKind::Deleted { self.event.object.body.len() } else { 0 }
    }
}

#[derive(Debug)]
pub(super) struct Ring {
    limits: Limits,
    events: VecDeque<Past>,
    bytes: usize,
    /// Events up to this revision are gone.
    compacted: u64,
    /// Per resource, the latest event that is gone: a quiet watch isn't cut off for what it didn't ask for.
    forgotten: HashMap<Box<str>, u64>,
}

impl Ring {
    pub(super) fn new(compacted: u64, limits: Limits) -> Self {
        Self { limits, events: VecDeque::new(), bytes: 0, compacted, forgotten: HashMap::new() }
    }

    pub(super) fn push(&mut self, past: Past) {
        debug_assert_eq!(past.event.object.revision, self.compacted + self.events.len() as u64 + 1);
        // Room is made first: one more than there may be would double what the queue takes.
        if self.events.len() >= self.limits.events {
            self.forget_oldest();
        }
        self.bytes += past.weight();
        self.events.push_back(past);
        while self.events.len() > self.limits.events || self.bytes > self.limits.bytes {
            self.forget_oldest();
        }
    }

    fn forget_oldest(&mut self) {
        let Some(old) = self.events.pop_front() else { return };
        self.bytes -= old.weight();
        self.compacted = old.event.object.revision;
        let topic = topic(old.event.object.key.as_str());
        if let Some(latest) = self.forgotten.get_mut(topic) {
            *latest = self.compacted;
        } else {
            self.forgotten.insert(topic.into(), self.compacted);
        }
    }

    pub(super) fn compacted(&self) -> u64 {
        self.compacted
    }

    /// The latest event under `prefix` that is gone, or a later one of the same resource.
    pub(super) fn forgotten(&self, prefix: &str) -> u64 {
        let topic = topic(prefix);
        if topic.is_empty() { self.compacted } else { self.forgotten.get(topic).copied().unwrap_or(0) }
    }

    /// Events later than `revision`, the oldest first.
    pub(super) fn after(&self, revision: u64) -> impl DoubleEndedIterator<Item = &Past> {
        let skip = usize::try_from(revision.saturating_sub(self.compacted)).unwrap_or(usize::MAX);
        self.events.range(skip.min(self.events.len())..)
    }

    /// Events under `prefix` later than `revision`, the newest first.
    pub(super) fn back_to(&self, revision: u64, prefix: &str) -> impl Iterator<Item = (&Key, &Past)> {
        self.after(revision)
            .rev()
            .map(|past| (&past.event.object.key, past))
            .filter(move |(key, _)| key.as_str().starts_with(prefix))
    }
}

/// The part of a key or prefix that names its resource, `/<group>/<resource>/`; empty if it is of several.
pub(super) fn topic(text: &str) -> &str {
    match text.match_indices('/').nth(2) {
        Some((at, _)) => &text[..=at],
        None => "",
    }
}
