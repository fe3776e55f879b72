//! A copy of a data directory, taken while it is in use, and back again.
//!
//! ```text
//!   {"backup":1,"revision":7041,"objects":2}
//!   {"file":"ca.key","text":"-----BEGIN…"}
//!   {"key":"/core/configmaps/shop/a","revision":12,"object":{…}}
//!   {"key":"/core/configmaps/shop/b","revision":7041,"object":{…}}
//!   {"end":{"objects":2,"sha256":"9f…"}}
//! ```
//!
//! One JSON text per line, so that it streams, and so that people can look into it. The last line has the digest of all
//! before it: a backup that broke off isn't one. It has secrets and keys in it; keep it like them, or encrypt it (`sealed`).

mod restore;
mod sealed;

pub use restore::{RestoreError, Restored, Summary, check, restore};

use self::sealed::Frames;
use crate::access::pki;
use crate::storage::encryption::Keys;
use crate::storage::store::{Page, Store};
use aws_lc_rs::digest::{Context, SHA256};
use bytes::{Bytes, BytesMut};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The store's file in a data directory.
pub const STORE_FILE: &str = "store.redb";
/// Where a running server hands out a backup to members of `system:masters`, and to no other user.
pub const BACKUP_PATH: &str = "/atoll/backup";
const FORMAT: u64 = 1;
/// What is handed out at once: small enough for a stream, large enough for a disk.
const CHUNK: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Head {
    backup: u64,
    revision: u64,
    objects: u64,
}

#[derive(Serialize, Deserialize)]
struct FileLine {
    file: String,
    text: String,
}

#[derive(Serialize, Deserialize)]
struct ObjectLine<'a> {
    key: &'a str,
    revision: u64,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Serialize, Deserialize)]
struct EndLine {
    end: End,
}

#[derive(Serialize, Deserialize)]
struct End {
    objects: u64,
    sha256: String,
}

/// Why there is no backup.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A key can't be read.
    #[error("cannot read {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The backup can't be written.
    #[error("cannot write the backup: {0}")]
    Write(#[from] io::Error),
}

/// A backup that is being handed out, chunk by chunk. It is of one revision, whatever is written meanwhile, and holds
/// nothing up.
pub struct Backup {
    page: Page,
    files: Vec<FileLine>,
    stage: Stage,
    digest: Context,
    seal: Option<Frames>,
}

enum Stage {
    Head,
    Object(usize),
    Done,
}

impl Backup {
    /// Of `store`, as it is now, with the keys of its data directory; encrypted if one of `keys` encrypts.
    ///
    /// # Errors
    /// A key can't be read.
    pub fn take(store: &Store, data_dir: &Path, keys: &Keys) -> Result<Self, BackupError> {
        let mut files = Vec::new();
        for name in pki::KEPT {
            let path = data_dir.join("pki").join(name);
            match std::fs::read_to_string(&path) {
                Ok(text) => files.push(FileLine { file: name.into(), text }),
                Err(source) => return Err(BackupError::File { path, source }),
            }
        }
        let seal = Frames::new(keys).map_err(|error| BackupError::Write(io::Error::other(error)))?;
        Ok(Self::of(store, files, seal))
    }

    fn of(store: &Store, files: Vec<FileLine>, seal: Option<Frames>) -> Self {
        let page = store.list("", None, None, None);
        // A list of now can't fail.
        let page = page.unwrap_or(Page { revision: 0, objects: Vec::new(), remaining: 0 });
        Self { page, files, stage: Stage::Head, digest: Context::new(&SHA256), seal }
    }

    /// The revision that it is of.
    pub fn revision(&self) -> u64 {
        self.page.revision
    }

    /// How many objects it has.
    pub fn objects(&self) -> usize {
        self.page.objects.len()
    }

    /// Writes all of it.
    ///
    /// # Errors
    /// As `to` fails.
    pub fn write_to(self, mut to: impl Write) -> Result<(), BackupError> {
        for chunk in self {
            to.write_all(&chunk)?;
        }
        Ok(to.flush()?)
    }

    fn head(&self) -> String {
        let head =
            Head { backup: FORMAT, revision: self.page.revision, objects: self.page.objects.len() as u64 };
        let mut text = line(&head);
        for file in &self.files {
            text.push_str(&line(file));
        }
        text
    }
}

/// Numbers and text always serialise.
fn line(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string(value).unwrap_or_default();
    text.push('\n');
    text
}

impl Iterator for Backup {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let chunk = self.chunk()?;
        match &mut self.seal {
            // One that can't be sealed is missed by whoever reads the backup.
            Some(frames) => frames.frame(&chunk, matches!(self.stage, Stage::Done)),
            None => Some(chunk),
        }
    }
}

impl Backup {
    /// The next lines.
    fn chunk(&mut self) -> Option<Bytes> {
        let mut chunk = BytesMut::new();
        let mut at = match self.stage {
            Stage::Done => return None,
            Stage::Object(at) => at,
            Stage::Head => {
                chunk.extend_from_slice(self.head().as_bytes());
                0
            }
        };
        while let Some(object) = self.page.objects.get(at) {
            if chunk.len() > CHUNK {
                break;
            }
            // By hand: the body is JSON already, and goes out as the bytes that it is.
            let key = serde_json::to_string(object.key.as_str()).unwrap_or_default();
            let start = format!("{{\"key\":{key},\"revision\":{},\"object\":", object.revision);
            chunk.extend_from_slice(start.as_bytes());
            chunk.extend_from_slice(&object.body);
            chunk.extend_from_slice(b"}\n");
            at += 1;
        }
        self.digest.update(&chunk);
        self.stage = Stage::Object(at);
        if at == self.page.objects.len() {
            let sha256 = hex(self.digest.clone());
            chunk.extend_from_slice(line(&EndLine { end: End { objects: at as u64, sha256 } }).as_bytes());
            self.stage = Stage::Done;
        }
        Some(chunk.freeze())
    }
}

fn hex(digest: Context) -> String {
    let mut text = String::with_capacity(64);
    for byte in digest.finish().as_ref() {
        // Writing to a String can't fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}
