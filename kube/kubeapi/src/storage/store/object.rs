//! What goes into the store and what comes out of it.

use super::Key;
use bytes::Bytes;
use std::fmt;

/// One object as it was written at `revision`.
#[derive(Clone, PartialEq, Eq)]
pub struct Object {
    /// Where it is.
    pub key: Key,
    /// The write that made it so.
    pub revision: u64,
    /// JSON, with the resourceVersion in it.
    pub body: Bytes,
}

/// Makes the body once the revision is known that it is written at.
pub type Body = Box<dyn FnOnce(u64) -> Bytes + Send>;

/// What is to be done to one key.
pub enum Write {
    /// Nothing may be there.
    Create(Body),
    /// The object must be at revision `expect`.
    Update {
        /// The revision that the writer has seen.
        expect: u64,
        /// What it becomes.
        body: Body,
    },
    /// The object must be at revision `expect`.
    Delete {
        /// The revision that the writer has seen.
        expect: u64,
        /// What watchers are shown of it: its last state with the revision of the deletion.
        body: Body,
    },
}

impl Write {
    /// A create.
    pub fn create(body: impl FnOnce(u64) -> Bytes + Send + 'static) -> Self {
        Self::Create(Box::new(body))
    }

    /// An update of what is at revision `expect`.
    pub fn update(expect: u64, body: impl FnOnce(u64) -> Bytes + Send + 'static) -> Self {
        Self::Update { expect, body: Box::new(body) }
    }

    /// A deletion of what is at revision `expect`.
    pub fn delete(expect: u64, body: impl FnOnce(u64) -> Bytes + Send + 'static) -> Self {
        Self::Delete { expect, body: Box::new(body) }
    }
}

/// Why a write was not done. Nothing of it will be seen later, except after `Full` and `Io`: there the store can't
/// know whether the disk took it, as with any request whose answer is lost.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError {
    /// A create found this.
    #[error("{} already exists, written at revision {}", .0.key, .0.revision)]
    Exists(Object),
    /// An update or deletion found nothing.
    #[error("the object does not exist")]
    Missing,
    /// An update or deletion found a later revision than it expected.
    #[error("{} has changed: it is at revision {} now", .0.key, .0.revision)]
    Conflict(Object),
    /// The disk has no room. Reads go on; a write after room was made succeeds.
    #[error("the disk of the data directory is full: {0}; make room, then try again")]
    Full(String),
    /// The disk failed.
    #[error("the store's file could not be written: {0}")]
    Io(String),
    /// The store is shutting down, or its writer is gone.
    #[error("the store is closed")]
    Closed,
}

/// Why a revision can't be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RevisionError {
    /// It is older than what the store remembers. For a watch: it was too slow, or began too late.
    #[error("revision {requested} is too old: the history begins at {oldest}")]
    Gone {
        /// The revision asked for.
        requested: u64,
        /// The oldest that could be had.
        oldest: u64,
    },
    /// It has not been reached yet.
    #[error("revision {requested} has not been reached: the store is at {current}")]
    Future {
        /// The revision asked for.
        requested: u64,
        /// The latest there is.
        current: u64,
    },
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The revision that the list is of: watch from here.
    pub revision: u64,
    /// In order of their keys.
    pub objects: Vec<Object>,
    /// How many there are after these.
    pub remaining: usize,
}

/// What happened to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// It was created.
    Added,
    /// It was updated.
    Modified,
    /// It was deleted.
    Deleted,
}

/// One write as watchers see it. `object.revision` is the write's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// What it is now, or was at last when it is deleted.
    pub object: Object,
    /// What it was before, for selectors that it no longer matches.
    pub previous: Option<Bytes>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{} {}", self.key, self.revision, String::from_utf8_lossy(&self.body))
    }
}

impl fmt::Debug for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Create(_) => f.write_str("Create"),
            Self::Update { expect, .. } => write!(f, "Update@{expect}"),
            Self::Delete { expect, .. } => write!(f, "Delete@{expect}"),
        }
    }
}
