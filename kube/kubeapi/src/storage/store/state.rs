//! All objects as they are now, and the last events. Pure: decides writes and answers reads; no lock, no disk.

use super::Key;
use super::object::{Body, Event, EventKind, Object, Page, RevisionError, Write, WriteError};
use super::ring::{Limits, Past, Ring};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::ops::Bound;

#[derive(Debug, Clone)]
struct Stored {
    revision: u64,
    body: Bytes,
}

impl Stored {
    fn object(&self, key: &Key) -> Object {
        Object { key: key.clone(), revision: self.revision, body: self.body.clone() }
    }
}

/// What is known of everything up to `revision`.
#[derive(Debug)]
pub(super) struct State {
    objects: BTreeMap<Key, Stored>,
    ring: Ring,
    revision: u64,
}

/// A write that was found good, and has a revision.
#[derive(Debug, Clone)]
pub(super) struct Change {
    pub(super) kind: EventKind,
    pub(super) object: Object,
    pub(super) previous: Option<Object>,
}

impl State {
    /// An empty state at `revision`: what was before can't be asked for.
    pub(super) fn new(revision: u64, limits: Limits) -> Self {
        Self { objects: BTreeMap::new(), ring: Ring::new(revision, limits), revision }
    }

    /// A state at `revision` with these objects, in order of their keys.
    pub(super) fn with(revision: u64, objects: Vec<Object>, limits: Limits) -> Self {
        let stored = |object: Object| (object.key, Stored { revision: object.revision, body: object.body });
        Self { objects: objects.into_iter().map(stored).collect(), ..Self::new(revision, limits) }
    }

    pub(super) fn revision(&self) -> u64 {
        self.revision
    }

    pub(super) fn compacted(&self) -> u64 {
        self.ring.compacted()
    }

    pub(super) fn get(&self, key: &Key) -> Option<Object> {
        self.objects.get(key).map(|stored| stored.object(key))
    }

    /// Makes a change visible. Changes come in the order of their revisions, without a gap.
    pub(super) fn apply(&mut self, change: Change) {
        let Change { kind, object, previous } = change;
        self.revision = object.revision;
        match kind {
            EventKind::Added | EventKind::Modified => {
                let stored = Stored { revision: object.revision, body: object.body.clone() };
                self.objects.insert(object.key.clone(), stored);
            }
            EventKind::Deleted => {
                self.objects.remove(&object.key);
            }
        }
        let previous_revision = previous.as_ref().map_or(0, |object| object.revision);
        let event = Event { kind, object, previous: previous.map(|object| object.body) };
        self.ring.push(Past { event, previous_revision });
    }

    pub(super) fn list(
        &self,
        prefix: &str,
        at: Option<u64>,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Result<Page, RevisionError> {
        let at = at.unwrap_or(self.revision);
        if at > self.revision {
            return Err(RevisionError::Future { requested: at, current: self.revision });
        }
        if at < self.compacted() {
            return Err(RevisionError::Gone { requested: at, oldest: self.compacted() });
        }
        let from = match after {
            Some(key) if key.as_str() >= prefix => Bound::Excluded(key.as_str()),
            _ => Bound::Included(prefix),
        };
        let now = self
            .objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(prefix));
        if at == self.revision {
            return Ok(page(at, now, limit));
        }
        let undone = self.undone(at, prefix);
        let mut then: BTreeMap<&Key, &Stored> = now.filter(|(key, _)| !undone.contains_key(key)).collect();
        let wanted = |key: &Key| after.is_none_or(|after| key > after);
        then.extend(
            undone
                .iter()
                .filter_map(|(key, stored)| stored.as_ref().map(|stored| (*key, stored)))
                .filter(|(key, _)| wanted(key)),
        );
        Ok(page(at, then.into_iter(), limit))
    }

    /// Unlike a list, it is cut off only by what happened under `prefix`, as a watch is.
    pub(super) fn first(
        &self,
        prefix: &str,
        at: u64,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Object>, RevisionError> {
        if at > self.revision {
            return Err(RevisionError::Future { requested: at, current: self.revision });
        }
        if at < self.ring.forgotten(prefix) {
            return Err(RevisionError::Gone { requested: at, oldest: self.compacted() });
        }
        let from = match after {
            Some(key) if key.as_str() >= prefix => Bound::Excluded(key.as_str()),
            _ => Bound::Included(prefix),
        };
        let undone = if at == self.revision { BTreeMap::new() } else { self.undone(at, prefix) };
        let mut same = self
            .objects
            .range::<str, _>((from, Bound::Unbounded))
            .take_while(|(key, _)| key.as_str().starts_with(prefix))
            .filter(|(key, _)| !undone.contains_key(key))
            .peekable();
        let mut other = undone
            .iter()
            .filter(|(key, _)| after.is_none_or(|after| **key > after))
            .filter_map(|(key, stored)| stored.as_ref().map(|stored| (*key, stored)))
            .peekable();
        let mut found = Vec::new();
        while found.len() < limit {
            let takes_other = match (same.peek(), other.peek()) {
                (Some((one, _)), Some((two, _))) => two < one,
                (None, Some(_)) => true,
                (Some(_) | None, None) => false,
            };
            let next = if takes_other { other.next() } else { same.next() };
            let Some((key, stored)) = next else { break };
            found.push(stored.object(key));
        }
        Ok(found)
    }

    pub(super) fn weigh(&self, prefix: &str, most: usize) -> usize {
        let from = (Bound::Included(prefix), Bound::Unbounded);
        let objects =
            self.objects.range::<str, _>(from).take_while(|(key, _)| key.as_str().starts_with(prefix));
        let mut bytes = 0;
        for (_, stored) in objects {
            bytes += stored.body.len();
            if bytes >= most {
                break;
            }
        }
        bytes
    }

    /// What every object under `prefix` that changed after `at` was then.
    fn undone(&self, at: u64, prefix: &str) -> BTreeMap<&Key, Option<Stored>> {
        let mut undone = BTreeMap::new();
        for (key, past) in self.ring.back_to(at, prefix) {
            let body = past.event.previous.as_ref();
            let stored = body.map(|body| Stored { revision: past.previous_revision, body: body.clone() });
            undone.insert(key, stored);
        }
        undone
    }

    /// The next event under `prefix` after `seen`, and up to where that was looked for.
    pub(super) fn next(&self, prefix: &str, seen: u64) -> Result<(u64, Option<Event>), RevisionError> {
        if seen < self.ring.forgotten(prefix) {
            return Err(RevisionError::Gone { requested: seen, oldest: self.compacted() });
        }
        let mut later = self.ring.after(seen).map(|past| &past.event);
        Ok(match later.find(|event| event.object.key.as_str().starts_with(prefix)) {
            Some(event) => (event.object.revision, Some(event.clone())),
            None => (self.revision.max(seen), None),
        })
    }
}

/// Says what a write does to `current`, or why it doesn't, and makes its body for `revision`.
pub(super) fn decide(
    key: Key,
    current: Option<Object>,
    write: Write,
    revision: u64,
) -> Result<Change, WriteError> {
    let (kind, body) = match (write, &current) {
        (Write::Create(_), Some(object)) => return Err(WriteError::Exists(object.clone())),
        (Write::Create(body), None) => (EventKind::Added, body),
        (Write::Update { .. } | Write::Delete { .. }, None) => return Err(WriteError::Missing),
        (Write::Update { expect, body }, Some(object)) => {
            (expected(expect, object, EventKind::Modified)?, body)
        }
        (Write::Delete { expect, body }, Some(object)) => {
            (expected(expect, object, EventKind::Deleted)?, body)
        }
    };
    Ok(Change { kind, object: Object { key, revision, body: made(body, revision) }, previous: current })
}

fn expected(expect: u64, found: &Object, then: EventKind) -> Result<EventKind, WriteError> {
    if found.revision == expect { Ok(then) } else { Err(WriteError::Conflict(found.clone())) }
}

/// Copied, so that an object of a kilobyte doesn't keep the buffer alive that it was made in.
fn made(body: Body, revision: u64) -> Bytes {
    Bytes::copy_from_slice(&body(revision))
}

fn page<'a>(
    revision: u64,
    mut found: impl Iterator<Item = (&'a Key, &'a Stored)>,
    limit: Option<usize>,
) -> Page {
    let objects = found.by_ref().take(limit.unwrap_or(usize::MAX)).map(|(key, stored)| stored.object(key));
    let objects = objects.collect();
    Page { revision, objects, remaining: found.count() }
}
