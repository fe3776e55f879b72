//! Objects by key, each write with a revision of its own; one history that lists and watches read.
//!
//! ```text
//!   write ──▶ decide (exists? expected revision?) ──▶ commit (one fsync for all that wait) ──▶ apply ──▶ watchers
//!                                                                                               │
//!   get, list ◀──────────────────────── state: objects now, and a ring of the last events ◀─────┘
//! ```
//!
//! The state is in memory, whole; a durable store also keeps it in one redb file and shows nothing that isn't
//! in that file yet. The memory twin differs in nothing but that. Start at [`Store`].

mod key;
mod object;
mod ring;
mod shared;
mod state;
mod watch;

pub use key::Key;
pub use object::{Body, Event, EventKind, Object, Page, RevisionError, Write, WriteError};
pub use ring::Limits;
pub use watch::Watch;

use shared::Shared;
use std::path::Path;
use std::sync::Arc;

/// A store; clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
}

impl Store {
    /// An empty store that lives as long as the process. Writes are done when `write` returns its future's
    /// first poll, so it also works on a paused clock.
    pub fn memory() -> Self {
        Self::memory_with(Limits::default())
    }

    /// Like [`Store::memory`], with a history of another size.
    pub fn memory_with(limits: Limits) -> Self {
        Self { shared: Arc::new(Shared::new(state::State::new(0, limits))) }
    }

    /// The object at `key`.
    pub fn get(&self, key: &Key) -> Option<Object> {
        self.shared.read().get(key)
    }

    /// Objects whose key starts with `prefix`, in order of their keys: those after `after`, at most `limit`, as
    /// they are now or as they were at revision `at`.
    ///
    /// # Errors
    /// The store has forgotten revision `at`, or hasn't reached it.
    pub fn list(
        &self,
        prefix: &str,
        at: Option<u64>,
        after: Option<&Key>,
        limit: Option<usize>,
    ) -> Result<Page, RevisionError> {
        self.shared.read().list(prefix, at, after, limit)
    }

    /// Does one write, or says why not. What it returns is durable and visible to readers.
    ///
    /// # Errors
    /// The object isn't as the write expects it, or the disk failed.
    #[expect(clippy::unused_async, reason = "the durable store waits for its disk")]
    pub async fn write(&self, key: Key, write: Write) -> Result<Object, WriteError> {
        self.shared.write_now(key, write)
    }

    /// What happens under `prefix` after revision `since`, or from now on. With the revision of a list, nothing is
    /// lost or doubled between the two.
    ///
    /// # Errors
    /// The store has forgotten what happened after `since`.
    pub fn watch(&self, prefix: &str, since: Option<u64>) -> Result<Watch, RevisionError> {
        Watch::start(self.shared.clone(), prefix, since)
    }

    /// The revision of the latest write.
    pub fn revision(&self) -> u64 {
        self.shared.read().revision()
    }

    /// The oldest revision that can still be listed and watched from.
    pub fn compacted(&self) -> u64 {
        self.shared.read().compacted()
    }
}
