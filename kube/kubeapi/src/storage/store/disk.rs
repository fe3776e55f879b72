//! The durable half: one redb file that has what the state has, changed by whole batches.
//!
//! Beside the objects it keeps their number and a sum over them, so that a damaged file is told from a good one
//! before anything is served from it or written to it.

use super::Key;
use super::object::{EventKind, Object};
use super::state::Change;
use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageError, TableDefinition, WriteTransaction,
};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// What this file's layout is called. A later one has another number.
const FORMAT: u64 = 1;
/// The state is in memory whole: redb's cache only has to hold the pages that a batch touches.
const CACHE_BYTES: usize = 512 << 10;

/// Why a store's file can't be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process, or another part of this one, has it.
    #[error("{} is in use by another process; stop it, or choose another data directory", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is no store, or a part of it is damaged or missing. It was left as it is.
    #[error("{} is damaged: {why}; it was left as it is: restore a backup into another data directory", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How that shows.
        why: String,
    },
    /// It was written by a later version.
    #[error("{} has format {found}, this version knows {FORMAT}; use the version that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The format it says it has.
        found: u64,
    },
    /// The system refuses.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Why a batch was not committed, or may not have been.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub(super) struct CommitError(#[from] redb::Error);

impl CommitError {
    /// Did the disk run out of room?
    pub(super) fn is_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded, io::ErrorKind::FileTooLarge];
        matches!(&self.0, redb::Error::Io(error) if full.contains(&error.kind()))
    }
}

/// What the meta table says of the objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Totals {
    pub(super) revision: u64,
    count: u64,
    sum: u64,
}

impl Totals {
    pub(super) fn add(&mut self, object: &Object) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(fingerprint(object));
    }

    fn subtract(&mut self, object: &Object) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(fingerprint(object));
    }

    fn write(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        let mut meta = transaction.open_table(META)?;
        for (name, value) in [("revision", self.revision), ("count", self.count), ("sum", self.sum)] {
            meta.insert(name, value)?;
        }
        Ok(())
    }
}

/// Where the file is: on disk, or in a test's hands.
pub(super) trait DatabaseFile: Send {
    /// Opens it for writing; makes it if there is none. Repairs what a crash left.
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError>;
    /// Opens it without changing it; none if it is new, or was not closed.
    fn look(&self, builder: &Builder) -> Result<Option<ReadOnlyDatabase>, DatabaseError>;
    /// What to call it.
    fn path(&self) -> &Path;
}

impl DatabaseFile for PathBuf {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        // It has secrets in it.
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        if !self.exists() {
            make_whole(self, &options, builder)?;
        }
        let database = builder.create_file(options.open(self)?)?;
        // The file's name has to survive a power cut, too.
        if let Some(parent) = self.parent() {
            let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            File::open(parent)?.sync_all()?;
        }
        Ok(database)
    }

    fn look(&self, builder: &Builder) -> Result<Option<ReadOnlyDatabase>, DatabaseError> {
        match std::fs::metadata(self) {
            Ok(found) if found.len() > 0 => {}
            Ok(_) => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        }
        match builder.open_read_only(self) {
            Ok(database) => Ok(Some(database)),
            Err(DatabaseError::RepairAborted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn path(&self) -> &Path {
        self
    }
}

/// Makes the file under another name and moves it into its place when it is whole: a crash in between leaves none, and not
/// one that can't be read.
fn make_whole(path: &Path, options: &OpenOptions, builder: &Builder) -> Result<(), DatabaseError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let file = options.open(&beside)?;
    // Another process may have it open; what a crash left is held by none.
    match file.try_lock() {
        Ok(()) => file.set_len(0)?,
        Err(TryLockError::WouldBlock) => return Err(DatabaseError::DatabaseAlreadyOpen),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let database = builder.create_file(file)?;
    prepare(&database).map_err(|error| io::Error::other(error.to_string()))?;
    drop(database);
    Ok(std::fs::rename(&beside, path)?)
}

/// An open file.
pub(super) struct Disk {
    place: Box<dyn DatabaseFile>,
    database: Option<Database>,
    totals: Totals,
}

impl Disk {
    /// Opens the file, and reads what is in it.
    pub(super) fn open(place: Box<dyn DatabaseFile>) -> Result<(Self, Vec<Object>), OpenError> {
        let path = place.path().to_owned();
        // A file that was closed is looked at before it is opened for writing: if it is damaged, it stays as it is.
        let seen = match guarded(&path, || place.look(&builder()))? {
            Some(database) => Some(guarded(&path, || load(&database))?.checked(&path)?),
            None => None,
        };
        let (database, totals) = guarded(&path, || {
            let database = place.open(&builder())?;
            if seen.is_none() {
                prepare(&database)?;
            }
            let totals = totals(&database.begin_read()?)?;
            Ok::<_, redb::Error>((database, totals))
        })?;
        let loaded = match seen {
            Some(seen) if seen.totals == totals => seen,
            _ => guarded(&path, || load(&database))?.checked(&path)?,
        };
        Ok((Self { place, database: Some(database), totals: loaded.totals }, loaded.objects))
    }

    /// The revision of the latest write in the file.
    pub(super) fn revision(&self) -> u64 {
        self.totals.revision
    }

    /// Makes a batch durable: all of it, or nothing if it fails before the end. After an error [`Disk::reopen`] says which.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), CommitError> {
        let mut totals = self.totals;
        let database = self.database.as_ref().ok_or(CommitError(redb::Error::DatabaseClosed))?;
        let transaction = database.begin_write().map_err(redb::Error::from)?;
        write(&transaction, changes, &mut totals)?;
        transaction.commit().map_err(redb::Error::from)?;
        self.totals = totals;
        Ok(())
    }

    /// Makes `revision` the latest, so that the next write gets a later one.
    pub(super) fn advance(&mut self, revision: u64) -> Result<(), CommitError> {
        let database = self.database.as_ref().ok_or(CommitError(redb::Error::DatabaseClosed))?;
        let transaction = database.begin_write().map_err(redb::Error::from)?;
        let totals = Totals { revision, ..self.totals };
        totals.write(&transaction)?;
        transaction.commit().map_err(redb::Error::from)?;
        self.totals = totals;
        Ok(())
    }

    /// After a failed commit: opens the file anew, and says up to which revision it goes.
    pub(super) fn reopen(&mut self) -> Result<u64, OpenError> {
        self.database = None;
        let path = self.place.path().to_owned();
        let (database, totals) = guarded(&path, || {
            let database = self.place.open(&builder())?;
            prepare(&database)?;
            let totals = totals(&database.begin_read()?)?;
            Ok::<_, redb::Error>((database, totals))
        })?;
        self.database = Some(database);
        self.totals = totals;
        Ok(totals.revision)
    }
}

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// A new file gets its tables, so that a reader finds them.
fn prepare(database: &Database) -> Result<(), redb::Error> {
    let transaction = database.begin_write()?;
    {
        transaction.open_table(OBJECTS)?;
        let mut meta = transaction.open_table(META)?;
        if meta.get("format")?.is_some() {
            return Ok(());
        }
        for (name, value) in [("format", FORMAT), ("revision", 0), ("count", 0), ("sum", 0)] {
            meta.insert(name, value)?;
        }
    }
    transaction.commit()?;
    Ok(())
}

fn write(transaction: &WriteTransaction, changes: &[Change], totals: &mut Totals) -> Result<(), redb::Error> {
    let mut objects = transaction.open_table(OBJECTS)?;
    for Change { kind, object, previous } in changes {
        if let Some(previous) = previous {
            totals.subtract(previous);
        }
        match kind {
            EventKind::Added | EventKind::Modified => {
                objects.insert(object.key.as_str(), (object.revision, &*object.body))?;
                totals.add(object);
            }
            EventKind::Deleted => {
                objects.remove(object.key.as_str())?;
            }
        }
        totals.revision = object.revision;
    }
    totals.write(transaction)
}

struct Loaded {
    format: u64,
    totals: Totals,
    counted: Totals,
    objects: Vec<Object>,
}

impl Loaded {
    fn checked(self, path: &Path) -> Result<Self, OpenError> {
        let path = path.to_owned();
        if self.format != FORMAT {
            return Err(OpenError::Format { path, found: self.format });
        }
        if self.counted != self.totals {
            let (found, said) = (self.counted.count, self.totals.count);
            let why = if found == said {
                format!("its {found} objects are not those that were written")
            } else {
                format!("it should have {said} objects and has {found}")
            };
            return Err(OpenError::Damaged { path, why });
        }
        Ok(self)
    }
}

fn load(database: &impl ReadableDatabase) -> Result<Loaded, redb::Error> {
    let transaction = database.begin_read()?;
    let totals = totals(&transaction)?;
    let format = transaction.open_table(META)?.get("format")?.map_or(0, |found| found.value());
    let mut counted = Totals { revision: totals.revision, ..Totals::default() };
    let mut objects = Vec::new();
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = entry?;
        let (revision, body) = value.value();
        let object =
            Object { key: Key::from_text(key.value()), revision, body: Bytes::copy_from_slice(body) };
        counted.add(&object);
        objects.push(object);
    }
    Ok(Loaded { format, totals, counted, objects })
}

fn totals(transaction: &ReadTransaction) -> Result<Totals, redb::Error> {
    let meta = transaction.open_table(META)?;
    let number = |name: &str| match meta.get(name)? {
        Some(found) => Ok(found.value()),
        None => Err(StorageError::Corrupted(format!("it doesn't say its {name}"))),
    };
    Ok(Totals { revision: number("revision")?, count: number("count")?, sum: number("sum")? })
}

/// A number that is another one if anything of the object is.
fn fingerprint(object: &Object) -> u64 {
    let mut text = Vec::with_capacity(object.key.as_str().len() + object.body.len() + 16);
    text.extend_from_slice(&object.revision.to_le_bytes());
    text.extend_from_slice(&(object.key.as_str().len() as u64).to_le_bytes());
    text.extend_from_slice(object.key.as_str().as_bytes());
    text.extend_from_slice(&object.body);
    let digest = digest(&SHA256, &text);
    digest.as_ref().iter().take(8).fold(0, |sum, &byte| (sum << 8) | u64::from(byte))
}

/// Runs what reads a file that may be damaged: redb answers some damage with a panic.
fn guarded<T, E: Into<redb::Error>>(
    path: &Path,
    read: impl FnOnce() -> Result<T, E>,
) -> Result<T, OpenError> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(error)) => Err(explained(path, error.into())),
        Err(_) => {
            Err(OpenError::Damaged { path: path.to_owned(), why: "its pages contradict each other".into() })
        }
    }
}

fn explained(path: &Path, error: redb::Error) -> OpenError {
    let path = path.to_owned();
    match error {
        redb::Error::DatabaseAlreadyOpen => OpenError::InUse { path },
        // redb says so of a file that isn't one, or that ends too early.
        redb::Error::Io(source)
            if matches!(source.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            OpenError::Damaged { path, why: source.to_string() }
        }
        redb::Error::Io(source) => OpenError::Io { path, source },
        error => OpenError::Damaged { path, why: error.to_string() },
    }
}
