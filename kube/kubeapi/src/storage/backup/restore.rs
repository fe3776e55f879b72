//! A data directory from a backup: complete, or as it was before.

use super::sealed::Reader;
use super::{End, EndLine, FORMAT, FileLine, Head, ObjectLine, STORE_FILE, hex};
use crate::access::pki::{self, PkiError};
use crate::storage::encryption::Keys;
use crate::storage::store::{FillError, Key, Object, OpenError, Store, fill};
use aws_lc_rs::digest::{Context, SHA256};
use bytes::Bytes;
use std::fs::{self, DirBuilder, File};
use std::io::{self, BufRead};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// How far a restored store's revision is ahead of the backup's. Clients may have seen revisions that came after the
/// backup: those must lie in the past, so that they list anew and believe nothing old.
const LEAP: u64 = 1_000_000_000;
/// Where the new directory is made.
const NEW: &str = "restore.new";
/// Where what was replaced is kept, until the next time.
const OLD: &str = "restore.old";
/// Everything of a data directory that a backup brings.
const PARTS: [&str; 2] = [STORE_FILE, "pki"];

/// What was restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restored {
    /// How many objects.
    pub objects: u64,
    /// The revision that the backup was taken at.
    pub taken_at: u64,
    /// The revision that the store goes on from.
    pub revision: u64,
}

/// What a backup has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// How many objects.
    pub objects: u64,
    /// The revision that it was taken at.
    pub revision: u64,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is something already.
    #[error("{} is not empty", path.display())]
    NotEmpty {
        /// The data directory.
        path: PathBuf,
    },
    /// A hub is running on it.
    #[error("{} is in use by a running hub", path.display())]
    InUse {
        /// The data directory.
        path: PathBuf,
    },
    /// This is no backup, or not all of it.
    #[error("line {line} of the backup: {why}")]
    Backup {
        /// Where.
        line: u64,
        /// What is wrong.
        why: String,
    },
    /// The backup is of a later version.
    #[error("the backup has format {found}, this version knows {FORMAT}")]
    Format {
        /// The format it says it has.
        found: u64,
    },
    /// The backup can't be read.
    #[error("cannot read the backup: {0}")]
    Read(io::Error),
    /// The directory can't be written.
    #[error("cannot use {}: {source}", path.display())]
    Write {
        /// What exactly.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The new store can't be written.
    #[error("cannot write the new store: {0}")]
    Store(String),
}

/// Makes `data_dir` what it was when the backup was taken. If there is something already, `force` moves it to
/// `<data-dir>/restore.old`. `keys` decrypt the backup, if it is encrypted, and encrypt the new store as they say.
///
/// # Errors
/// The directory isn't empty (without `force`) or in use, or the backup is incomplete; then nothing was changed.
pub fn restore(
    from: impl BufRead,
    data_dir: &Path,
    force: bool,
    keys: &Keys,
) -> Result<Restored, RestoreError> {
    private(data_dir)?;
    if !force && !is_empty(data_dir)? {
        return Err(RestoreError::NotEmpty { path: data_dir.to_owned() });
    }
    // Held until the end: no hub may start on what is being replaced.
    let _lock = lock(data_dir, keys)?;
    let new = data_dir.join(NEW);
    remove(&new)?;
    private(&new.join("pki"))?;
    let restored = unpack(from, &new, keys)?;
    replace(data_dir, &new)?;
    Ok(restored)
}

/// Reads a backup to its end, and says what is in it.
///
/// # Errors
/// It is incomplete, or changed.
pub fn check(from: impl BufRead, keys: &Keys) -> Result<Summary, RestoreError> {
    let mut lines = Lines::of(Reader::new(from, keys).map_err(RestoreError::Read)?);
    let head = lines.head()?;
    for name in pki::KEPT {
        lines.file(name)?;
    }
    let mut objects = 0;
    for object in lines.by_ref() {
        object?;
        objects += 1;
    }
    lines.check(head.objects, objects)?;
    Ok(Summary { objects, revision: head.revision })
}

/// The store that is there, opened; a damaged one, or one that we have no key for, needs no lock: a running hub would have it in use.
fn lock(data_dir: &Path, keys: &Keys) -> Result<Option<Store>, RestoreError> {
    let path = data_dir.join(STORE_FILE);
    if !path.exists() {
        return Ok(None);
    }
    match Store::open_as_it_is(&path, keys) {
        Ok(store) => Ok(Some(store)),
        Err(OpenError::InUse { .. }) => Err(RestoreError::InUse { path: data_dir.to_owned() }),
        Err(OpenError::Damaged { .. } | OpenError::Encrypted { .. } | OpenError::Format { .. }) => Ok(None),
        Err(OpenError::Io { path, source }) => Err(RestoreError::Write { path, source }),
    }
}

fn unpack(from: impl BufRead, new: &Path, keys: &Keys) -> Result<Restored, RestoreError> {
    let mut lines = Lines::of(Reader::new(from, keys).map_err(RestoreError::Read)?);
    let head = lines.head()?;
    for name in pki::KEPT {
        let text = lines.file(name)?;
        pki::write_private(&new.join("pki").join(name), &text).map_err(|error| match error {
            PkiError::File { path, source } => RestoreError::Write { path, source },
            other => RestoreError::Store(other.to_string()),
        })?;
    }
    let revision =
        head.revision.checked_add(LEAP).ok_or_else(|| lines.bad("its revision is too large".into()))?;
    let filled = fill(&new.join(STORE_FILE), revision, lines.by_ref(), keys);
    let objects = filled.map_err(|error| match error {
        FillError::Objects(error) => error,
        FillError::Open(error) => RestoreError::Store(error.to_string()),
        FillError::Write(why) => RestoreError::Store(why),
    })?;
    lines.check(head.objects, objects)?;
    Ok(Restored { objects, taken_at: head.revision, revision })
}

/// What is there moves aside, what is new takes its place. After a crash in between, the same command with `force`
/// starts over.
fn replace(data_dir: &Path, new: &Path) -> Result<(), RestoreError> {
    let old = data_dir.join(OLD);
    if PARTS.iter().any(|part| data_dir.join(part).exists()) {
        remove(&old)?;
        private(&old)?;
    }
    for part in PARTS {
        let place = data_dir.join(part);
        if place.exists() {
            rename(&place, &old.join(part))?;
        }
        rename(&new.join(part), &place)?;
    }
    remove(new)?;
    let synced = File::open(data_dir).and_then(|dir| dir.sync_all());
    synced.map_err(|source| RestoreError::Write { path: data_dir.to_owned(), source })
}

/// The lines of objects, up to the last line, which isn't one.
struct Lines<R> {
    from: R,
    number: u64,
    digest: Context,
    end: Option<End>,
}

impl<R: BufRead> Lines<R> {
    fn of(from: R) -> Self {
        Self { from, number: 0, digest: Context::new(&SHA256), end: None }
    }

    fn head(&mut self) -> Result<Head, RestoreError> {
        let head: Head = self.one()?;
        if head.backup != FORMAT {
            return Err(RestoreError::Format { found: head.backup });
        }
        Ok(head)
    }

    /// The text of the file that must come next.
    fn file(&mut self, name: &str) -> Result<String, RestoreError> {
        let FileLine { file, text } = self.one()?;
        if file != name {
            return Err(self.bad(format!("it has the file `{file}` where `{name}` should be")));
        }
        Ok(text)
    }

    /// The next line, with its end; empty at the end of the file.
    fn line(&mut self) -> Result<Vec<u8>, RestoreError> {
        let mut line = Vec::new();
        self.number += 1;
        self.from.read_until(b'\n', &mut line).map_err(RestoreError::Read)?;
        Ok(line)
    }

    fn one<T: for<'de> serde::Deserialize<'de>>(&mut self) -> Result<T, RestoreError> {
        let line = self.line()?;
        self.digest.update(&line);
        serde_json::from_slice(&line).map_err(|_| self.bad("not an Atoll backup".into()))
    }

    fn bad(&self, why: String) -> RestoreError {
        RestoreError::Backup { line: self.number, why }
    }

    fn object(&mut self) -> Result<Option<Object>, RestoreError> {
        let line = self.line()?;
        if line.is_empty() {
            return Err(self.bad("it ends too early".into()));
        }
        if let Ok(EndLine { end }) = serde_json::from_slice(&line) {
            self.end = Some(end);
            return Ok(None);
        }
        let read: ObjectLine<'_> =
            serde_json::from_slice(&line).map_err(|_| self.bad("it is damaged, or ends too early".into()))?;
        let body = Bytes::copy_from_slice(read.object.get().as_bytes());
        let object = Object { key: Key::from_text(read.key), revision: read.revision, body };
        self.digest.update(&line);
        Ok(Some(object))
    }

    fn check(&self, promised: u64, found: u64) -> Result<(), RestoreError> {
        let digest = hex(self.digest.clone());
        match &self.end {
            Some(end) if end.objects == found && promised == found && end.sha256 == digest => Ok(()),
            Some(_) => Err(self.bad("what is before it is not what was backed up".into())),
            None => Err(self.bad("it ends too early".into())),
        }
    }
}

impl<R: BufRead> Iterator for Lines<R> {
    type Item = Result<Object, RestoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.end.is_some() {
            return None;
        }
        self.object().transpose()
    }
}

fn private(path: &Path) -> Result<(), RestoreError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.map_err(|source| RestoreError::Write { path: path.to_owned(), source })
}

fn is_empty(path: &Path) -> Result<bool, RestoreError> {
    let unreadable = |source| RestoreError::Write { path: path.to_owned(), source };
    for entry in fs::read_dir(path).map_err(unreadable)? {
        // What an earlier restore left behind is in use by nothing.
        if entry.map_err(unreadable)?.file_name() != NEW {
            return Ok(false);
        }
    }
    Ok(true)
}

fn remove(path: &Path) -> Result<(), RestoreError> {
    match fs::remove_dir_all(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(RestoreError::Write { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

fn rename(from: &Path, to: &Path) -> Result<(), RestoreError> {
    fs::rename(from, to).map_err(|source| RestoreError::Write { path: to.to_owned(), source })
}
