//! The durable half: one redb file that has what the state has, changed by whole batches.
//!
//! Beside the objects it keeps their number and a sum over them, so that a damaged file is told from a good one
//! before anything is served from it or written to it.

use super::Key;
use super::object::{EventKind, Object};
use super::seal::{Seal, Sums, Unseal};
use super::state::Change;
use crate::storage::encryption::{KeyId, Keys, SealError, key_of};
use bytes::Bytes;
use redb::{
    Builder, Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable,
    StorageError, TableDefinition, TableError, WriteTransaction,
};
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const OBJECTS: TableDefinition<'_, &str, (u64, &[u8])> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// What a file that is encrypted keeps of its keys.
const SEAL: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("seal");
/// The key of the sums, sealed.
const SUMS: &str = "sums";
/// What this file's layout is called. A later one has another number.
const FORMAT: u64 = 1;
/// The same, with every body sealed.
const SEALED_FORMAT: u64 = 2;
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
    /// It is encrypted with a key that we do not have. It was left as it is.
    #[error("{} is encrypted with key {id}, which the key file does not have, if one is given; nothing was changed: give the key file that has it", path.display())]
    Encrypted {
        /// The file.
        path: PathBuf,
        /// The key.
        id: KeyId,
    },
    /// It was written by a later version.
    #[error("{} has format {found}, this version knows {FORMAT} and {SEALED_FORMAT}; use the version that wrote it", path.display())]
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
    fn add(&mut self, object: &Object, sums: &Sums) {
        self.count = self.count.wrapping_add(1);
        self.sum = self.sum.wrapping_add(sums.of(object));
    }

    fn subtract(&mut self, object: &Object, sums: &Sums) {
        self.count = self.count.wrapping_sub(1);
        self.sum = self.sum.wrapping_sub(sums.of(object));
    }

    fn write(&self, transaction: &WriteTransaction) -> Result<(), redb::Error> {
        let mut meta = transaction.open_table(META)?;
        for (name, value) in [("revision", self.revision), ("count", self.count), ("sum", self.sum)] {
            meta.insert(name, value)?;
        }
        Ok(())
    }
}

/// Writes all that a new file has.
pub(super) type Fill<'a> = dyn FnMut(&Database) -> Result<(), redb::Error> + 'a;

/// Where the file is: on disk, or in a test's hands.
pub(super) trait DatabaseFile: Send {
    /// Opens it for writing; makes it if there is none. Repairs what a crash left.
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError>;
    /// Opens it without changing it; none if it is new, or was not closed.
    fn look(&self, builder: &Builder) -> Result<Option<ReadOnlyDatabase>, DatabaseError>;
    /// Puts a new file in its place, whole or not at all. Who has the old one open has to open it anew.
    fn replace(&self, builder: &Builder, fill: &mut Fill<'_>) -> Result<(), DatabaseError>;
    /// What to call it.
    fn path(&self) -> &Path;
}

impl DatabaseFile for PathBuf {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        if !self.exists() {
            make_whole(self, builder, &mut prepare)?;
        }
        let database = builder.create_file(private().open(self)?)?;
        sync_name(self)?;
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

    fn replace(&self, builder: &Builder, fill: &mut Fill<'_>) -> Result<(), DatabaseError> {
        make_whole(self, builder, fill)?;
        sync_name(self)
    }

    fn path(&self) -> &Path {
        self
    }
}

/// It has secrets in it.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options
}

/// The file's name has to survive a power cut, too.
fn sync_name(path: &Path) -> Result<(), DatabaseError> {
    if let Some(parent) = path.parent() {
        let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

/// Makes the file under another name and moves it into its place when it is whole: a crash in between leaves none, and not
/// one that can't be read.
fn make_whole(path: &Path, builder: &Builder, fill: &mut Fill<'_>) -> Result<(), DatabaseError> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let file = private().open(&beside)?;
    // Another process may have it open; what a crash left is held by none.
    match file.try_lock() {
        Ok(()) => file.set_len(0)?,
        Err(TryLockError::WouldBlock) => return Err(DatabaseError::DatabaseAlreadyOpen),
        Err(TryLockError::Error(error)) => return Err(error.into()),
    }
    let database = builder.create_file(file)?;
    fill(&database).map_err(|error| io::Error::other(error.to_string()))?;
    drop(database);
    Ok(std::fs::rename(&beside, path)?)
}

/// What becomes of a file that is not encrypted as the first key says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Otherwise {
    Rewrite,
    Keep,
}

/// An open file.
pub(super) struct Disk {
    place: Box<dyn DatabaseFile>,
    database: Option<Database>,
    totals: Totals,
    seal: Seal,
}

impl Disk {
    /// Opens the file, and reads what is in it. One that is not encrypted as the first key says is rewritten, or left as it is.
    pub(super) fn open(
        place: Box<dyn DatabaseFile>,
        keys: &Keys,
        otherwise: Otherwise,
    ) -> Result<(Self, Vec<Object>), OpenError> {
        let path = place.path().to_owned();
        // A file that was closed is looked at before it is opened for writing: if it is damaged, it stays as it is.
        let seen = match guarded(&path, || place.look(&builder()))? {
            Some(database) => Some(guarded(&path, || load(&database))?.read(&path, keys)?),
            None => None,
        };
        let (mut database, totals) = guarded(&path, || {
            let database = place.open(&builder())?;
            if seen.is_none() {
                prepare(&database)?;
            }
            let totals = totals(&database.begin_read()?)?;
            Ok::<_, redb::Error>((database, totals))
        })?;
        let loaded = match seen {
            Some(seen) if seen.totals == totals => seen,
            _ => guarded(&path, || load(&database))?.read(&path, keys)?,
        };
        let Loaded { mut totals, objects, sums, form } = loaded;
        let seal = if form == Form::wanted(keys) || otherwise == Otherwise::Keep {
            let key = match form {
                Form::Plain => None,
                Form::Sealed(id) => keys.find(id),
            };
            Seal::new(key, sums).map_err(|error| refused(&path, error))?
        } else {
            tracing::info!(path = %path.display(), objects = objects.len(), "rewriting the store, because its encryption changes");
            let seal = guarded(&path, || rewrite(&*place, keys, &objects, &mut totals))?;
            // Held until here, so that no other process could open what is being replaced.
            drop(database);
            database = guarded(&path, || place.open(&builder()))?;
            seal
        };
        Ok((Self { place, database: Some(database), totals, seal }, objects))
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
        write(&transaction, changes, &mut totals, &mut self.seal)?;
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

/// Puts a new file in the place of one that is not encrypted as it should be: nothing of the old one is left in it.
fn rewrite(
    place: &dyn DatabaseFile,
    keys: &Keys,
    objects: &[Object],
    totals: &mut Totals,
) -> Result<Seal, redb::Error> {
    let (mut seal, kept) = Seal::fresh(keys).map_err(failed)?;
    let mut fill = |database: &Database| {
        *totals = Totals { revision: totals.revision, ..Totals::default() };
        let transaction = database.begin_write()?;
        {
            let mut table = transaction.open_table(OBJECTS)?;
            for object in objects {
                let body = seal.body(object).map_err(failed)?;
                table.insert(object.key.as_str(), (object.revision, &*body))?;
                totals.add(object, &seal.sums);
            }
            let format = if kept.is_some() { SEALED_FORMAT } else { FORMAT };
            transaction.open_table(META)?.insert("format", format)?;
            if let Some(kept) = &kept {
                transaction.open_table(SEAL)?.insert(SUMS, &**kept)?;
            }
        }
        totals.write(&transaction)?;
        transaction.commit()?;
        Ok(())
    };
    place.replace(&builder(), &mut fill)?;
    Ok(seal)
}

fn failed(error: SealError) -> redb::Error {
    redb::Error::Io(io::Error::other(error))
}

fn write(
    transaction: &WriteTransaction,
    changes: &[Change],
    totals: &mut Totals,
    seal: &mut Seal,
) -> Result<(), redb::Error> {
    let mut objects = transaction.open_table(OBJECTS)?;
    for Change { kind, object, previous } in changes {
        if let Some(previous) = previous {
            totals.subtract(previous, &seal.sums);
        }
        match kind {
            EventKind::Added | EventKind::Modified => {
                let body = seal.body(object).map_err(failed)?;
                objects.insert(object.key.as_str(), (object.revision, &*body))?;
                totals.add(object, &seal.sums);
            }
            EventKind::Deleted => {
                objects.remove(object.key.as_str())?;
            }
        }
        totals.revision = object.revision;
    }
    totals.write(transaction)
}

/// How the bodies of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Plain,
    /// All are sealed with this key: a file is rewritten before another one is used.
    Sealed(KeyId),
}

impl Form {
    fn wanted(keys: &Keys) -> Self {
        keys.first().map_or(Self::Plain, |key| Self::Sealed(key.id()))
    }
}

/// What a file has, as it is there.
struct Found {
    format: u64,
    totals: Totals,
    kept: Option<Vec<u8>>,
    objects: Vec<Object>,
}

/// What a file has, checked.
struct Loaded {
    totals: Totals,
    objects: Vec<Object>,
    sums: Sums,
    form: Form,
}

impl Found {
    /// The objects, if they are those that were written.
    fn read(self, path: &Path, keys: &Keys) -> Result<Loaded, OpenError> {
        let Self { format, totals, kept, objects } = self;
        let (objects, sums, form) = match (format, kept) {
            (FORMAT, _) => (objects, Sums::default(), Form::Plain),
            (SEALED_FORMAT, Some(kept)) => {
                // Where only a part is under a key that we do not have, it is that part which was changed.
                let known =
                    objects.iter().any(|object| key_of(&object.body).is_ok_and(|id| keys.find(id).is_some()));
                let refused = |error| match error {
                    SealError::NoKey(_) if known => refused(path, SealError::Changed),
                    error => refused(path, error),
                };
                let mut unseal = Unseal::new(keys, &kept).map_err(refused)?;
                let form = Form::Sealed(key_of(&kept).map_err(refused)?);
                let opened: Result<_, _> =
                    objects.into_iter().map(|object| unseal.object(object).map_err(refused)).collect();
                (opened?, unseal.sums, form)
            }
            (SEALED_FORMAT, None) => {
                let why = "it does not say how it is encrypted".to_owned();
                return Err(OpenError::Damaged { path: path.to_owned(), why });
            }
            (found, _) => return Err(OpenError::Format { path: path.to_owned(), found }),
        };
        let mut counted = Totals { revision: totals.revision, ..Totals::default() };
        objects.iter().for_each(|object| counted.add(object, &sums));
        if counted != totals {
            let (found, said) = (counted.count, totals.count);
            let why = if found == said {
                format!("its {found} objects are not those that were written")
            } else {
                format!("it should have {said} objects and has {found}")
            };
            return Err(OpenError::Damaged { path: path.to_owned(), why });
        }
        Ok(Loaded { totals, objects, sums, form })
    }
}

fn refused(path: &Path, error: SealError) -> OpenError {
    let path = path.to_owned();
    match error {
        SealError::NoKey(id) => OpenError::Encrypted { path, id },
        SealError::Changed => OpenError::Damaged { path, why: "what is encrypted in it was changed".into() },
        SealError::Refused => OpenError::Io { path, source: io::Error::other(error) },
    }
}

fn load(database: &impl ReadableDatabase) -> Result<Found, redb::Error> {
    let transaction = database.begin_read()?;
    let totals = totals(&transaction)?;
    let format = transaction.open_table(META)?.get("format")?.map_or(0, |found| found.value());
    let kept = match transaction.open_table(SEAL) {
        Ok(table) => table.get(SUMS)?.map(|kept| kept.value().to_vec()),
        Err(TableError::TableDoesNotExist(_)) => None,
        Err(error) => return Err(error.into()),
    };
    let mut objects = Vec::new();
    for entry in transaction.open_table(OBJECTS)?.iter()? {
        let (key, value) = entry?;
        let (revision, body) = value.value();
        let body = Bytes::copy_from_slice(body);
        objects.push(Object { key: Key::from_text(key.value()), revision, body });
    }
    Ok(Found { format, totals, kept, objects })
}

fn totals(transaction: &ReadTransaction) -> Result<Totals, redb::Error> {
    let meta = transaction.open_table(META)?;
    let number = |name: &str| match meta.get(name)? {
        Some(found) => Ok(found.value()),
        None => Err(StorageError::Corrupted(format!("it doesn't say its {name}"))),
    };
    Ok(Totals { revision: number("revision")?, count: number("count")?, sum: number("sum")? })
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
