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

mod disk;
mod fill;
mod key;
mod object;
mod ring;
mod seal;
mod shared;
mod state;
#[cfg(test)]
mod tests;
mod watch;
mod writer;

pub use disk::OpenError;
pub use fill::{FillError, fill};
pub use key::Key;
pub use object::{Body, Event, EventKind, Object, Page, RevisionError, Write, WriteError};
pub use ring::Limits;
pub use watch::Watch;

use crate::storage::encryption::Keys;
use disk::{DatabaseFile, Disk, Otherwise};
use shared::Shared;
use state::State;
use std::path::Path;
use std::sync::Arc;
use writer::Writer;

/// A store; clones are the same store.
#[derive(Clone, Debug)]
pub struct Store {
    shared: Arc<Shared>,
    /// None in memory: a write is done at once.
    writer: Option<Arc<Writer>>,
}

impl Store {
    /// An empty store that lives as long as the process. Writes are done when `write` returns its future's
    /// first poll, so it also works on a paused clock.
    pub fn memory() -> Self {
        Self::memory_with(Limits::default())
    }

    /// Like [`Store::memory`], with a history of another size.
    pub fn memory_with(limits: Limits) -> Self {
        Self { shared: Arc::new(Shared::new(State::new(0, limits))), writer: None }
    }

    /// The store in the file at `path`, which is made if there is none. Blocks while it reads.
    ///
    /// # Errors
    /// The file is in use, damaged, or can't be read or written.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        Self::open_with(path, Limits::default())
    }

    /// Like [`Store::open`], with a history of another size.
    ///
    /// # Errors
    /// As [`Store::open`].
    pub fn open_with(path: impl AsRef<Path>, limits: Limits) -> Result<Self, OpenError> {
        Self::open_at(Box::new(path.as_ref().to_path_buf()), limits, &Keys::default(), Otherwise::Rewrite)
    }

    /// Like [`Store::open`], encrypted as the keys say. A file that is not so yet is rewritten.
    ///
    /// # Errors
    /// As [`Store::open`], and if it is encrypted with another key.
    pub fn open_encrypted(path: impl AsRef<Path>, keys: &Keys) -> Result<Self, OpenError> {
        Self::open_at(Box::new(path.as_ref().to_path_buf()), Limits::default(), keys, Otherwise::Rewrite)
    }

    /// Like [`Store::open_encrypted`] for who only wants to read it: the file stays encrypted as it is.
    ///
    /// # Errors
    /// As [`Store::open_encrypted`].
    pub fn open_as_it_is(path: impl AsRef<Path>, keys: &Keys) -> Result<Self, OpenError> {
        Self::open_at(Box::new(path.as_ref().to_path_buf()), Limits::default(), keys, Otherwise::Keep)
    }

    fn open_at(
        place: Box<dyn DatabaseFile>,
        limits: Limits,
        keys: &Keys,
        otherwise: Otherwise,
    ) -> Result<Self, OpenError> {
        let path = place.path().to_path_buf();
        let (disk, objects) = Disk::open(place, keys, otherwise)?;
        let shared = Arc::new(Shared::new(State::with(disk.revision(), objects, limits)));
        let writer = Writer::start(shared.clone(), disk).map_err(|source| OpenError::Io { path, source })?;
        Ok(Self { shared, writer: Some(Arc::new(writer)) })
    }

    /// Takes no more writes, and returns when those that it took are durable and the file is closed: for the end of a
    /// process whose tasks still have the store. Reads go on. A store in memory has nothing to close.
    pub fn close(&self) {
        if let Some(writer) = &self.writer {
            writer.close();
        }
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

    /// The first objects under `prefix` later than `after`, at most `limit`, as of revision `at`. No long list has to be held for
    /// a client that reads it slowly.
    ///
    /// # Errors
    /// The store has forgotten what happened to them after `at`.
    pub fn first(
        &self,
        prefix: &str,
        at: u64,
        after: Option<&Key>,
        limit: usize,
    ) -> Result<Vec<Object>, RevisionError> {
        self.shared.read().first(prefix, at, after, limit)
    }

    /// How many bytes the objects under `prefix` have; it stops counting at `most`.
    pub fn weigh(&self, prefix: &str, most: usize) -> usize {
        self.shared.read().weigh(prefix, most)
    }

    /// Does one write, or says why not. What it returns is durable and visible to readers.
    ///
    /// # Errors
    /// The object isn't as the write expects it, or the disk failed.
    pub async fn write(&self, key: Key, write: Write) -> Result<Object, WriteError> {
        match &self.writer {
            Some(writer) => writer.write(key, write).await,
            None => self.shared.write_now(key, write),
        }
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
