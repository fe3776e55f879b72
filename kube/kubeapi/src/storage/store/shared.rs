//! The state behind a lock, and whom to wake when it changes.

use super::Key;
use super::object::{Object, Write, WriteError};
use super::ring::topic;
use super::state::{Change, State, decide};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use tokio::sync::Notify;

#[derive(Debug)]
pub(super) struct Shared {
    state: RwLock<State>,
    /// Watches of one resource wait together, so that a write wakes no others; under "" wait those of several.
    topics: Mutex<HashMap<Box<str>, Arc<Notify>>>,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self { state: RwLock::new(state), topics: Mutex::default() }
    }

    // A panic while the lock was held can't leave the state half changed in a way that reads would mind: the
    // store goes on.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides and does one write, with no disk to wait for.
    pub(super) fn write_now(&self, key: Key, write: Write) -> Result<Object, WriteError> {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        let current = state.get(&key);
        let change = decide(key, current, write, state.revision() + 1)?;
        let object = change.object.clone();
        state.apply(change);
        drop(state);
        self.wake(std::iter::once(&object.key));
        Ok(object)
    }

    /// Makes changes visible that are durable, all at once.
    pub(super) fn publish(&self, changes: Vec<Change>) {
        let keys: Vec<Key> = changes.iter().map(|change| change.object.key.clone()).collect();
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        for change in changes {
            state.apply(change);
        }
        drop(state);
        self.wake(keys.iter());
    }

    /// What a watch of `prefix` waits on.
    pub(super) fn topic(&self, prefix: &str) -> Arc<Notify> {
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        topics.retain(|_, waiting| Arc::strong_count(waiting) > 1);
        topics.entry(topic(prefix).into()).or_default().clone()
    }

    fn wake<'a>(&self, keys: impl Iterator<Item = &'a Key>) {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        let mut woken = vec![""];
        for key in keys {
            let topic = topic(key.as_str());
            if !woken.contains(&topic) {
                woken.push(topic);
            }
        }
        for waiting in woken.into_iter().filter_map(|topic| topics.get(topic)) {
            waiting.notify_waiters();
        }
    }
}
