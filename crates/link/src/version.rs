//! Which versions of the link a side speaks, and what to do if there is none in common.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A version of the link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Version(pub u16);

/// The versions that a side speaks, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    /// The oldest.
    pub oldest: Version,
    /// The newest.
    pub newest: Version,
}

/// What this program speaks.
pub const SPOKEN: Versions = Versions { oldest: Version(1), newest: Version(1) };

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Side {
    /// The hub.
    Hub,
    /// A member.
    Member,
}

/// The first thing that either side says. Its form never changes; fields may be added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// Who speaks.
    pub side: Side,
    /// What it speaks.
    pub speaks: Versions,
    /// Which program it is, for people: `atoll 0.1.0`.
    pub program: String,
}

impl Hello {
    /// What this program says.
    pub fn ours(side: Side) -> Self {
        Self { side, speaks: SPOKEN, program: format!("atoll {}", env!("CARGO_PKG_VERSION")) }
    }
}

/// Two sides without a version in common.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{older} speaks {} of the link, {newer} speaks {}: upgrade {older}", .older.speaks, .newer.speaks)]
pub struct CannotSpeak {
    /// The side that is too old.
    pub older: Box<Hello>,
    /// The other one.
    pub newer: Box<Hello>,
}

/// The version that both sides speak from here on: the newest that both know.
pub fn agree(ours: &Hello, theirs: &Hello) -> Result<Version, CannotSpeak> {
    let newest = ours.speaks.newest.min(theirs.speaks.newest);
    if newest >= ours.speaks.oldest && newest >= theirs.speaks.oldest {
        return Ok(newest);
    }
    let (older, newer) =
        if ours.speaks.newest < theirs.speaks.newest { (ours, theirs) } else { (theirs, ours) };
    Err(CannotSpeak { older: Box::new(older.clone()), newer: Box::new(newer.clone()) })
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.oldest.0, self.newest.0) {
            (oldest, newest) if oldest == newest => write!(f, "version {newest}"),
            (oldest, newest) => write!(f, "versions {oldest} to {newest}"),
        }
    }
}

impl fmt::Display for Hello {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Hub => "the hub",
            Side::Member => "the member",
        };
        write!(f, "{side} ({})", self.program)
    }
}
