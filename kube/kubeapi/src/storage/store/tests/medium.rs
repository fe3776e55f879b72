//! A disk in memory: what was synced stays; what was not may be lost, kept or torn when the power goes.

use crate::storage::store::disk::{DatabaseFile, Fill};
use redb::{Builder, Database, DatabaseError, ReadOnlyDatabase, StorageBackend};
use std::io::{Error, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

#[derive(Debug, Clone, Default)]
pub(super) struct Medium {
    plates: Arc<Mutex<Plates>>,
    /// While it is held, a sync waits.
    gate: Arc<(Mutex<bool>, Condvar)>,
}

#[derive(Debug, Default)]
struct Plates {
    synced: Vec<u8>,
    now: Vec<u8>,
    unsynced: Vec<Step>,
    /// Who opened the medium before a power cut can't reach it any more.
    boot: u32,
    /// The power goes after so many more steps.
    steps_left: Option<usize>,
    capacity: Option<usize>,
    sync_fails: bool,
    syncs: usize,
    bytes_written: usize,
}

#[derive(Debug)]
enum Step {
    Length(usize),
    Write(usize, Vec<u8>),
}

/// One opening of the medium.
#[derive(Debug)]
struct Opened {
    medium: Medium,
    boot: u32,
}

impl Medium {
    fn plates(&self) -> MutexGuard<'_, Plates> {
        self.plates.lock().unwrap()
    }

    pub(super) fn cut_power_after(&self, steps: usize) {
        self.plates().steps_left = Some(steps);
    }

    /// Power is back: of what was not synced, some is there.
    pub(super) fn boot(&self, mut random: impl FnMut(usize) -> usize) {
        let mut plates = self.plates();
        let mut found = std::mem::take(&mut plates.synced);
        for step in std::mem::take(&mut plates.unsynced) {
            match (step, random(3)) {
                (_, 0) => {}
                (Step::Length(length), _) => found.resize(length, 0),
                (Step::Write(at, bytes), 1) => put(&mut found, at, &bytes),
                (Step::Write(at, bytes), _) => put(&mut found, at, &bytes[..random(bytes.len() + 1)]),
            }
        }
        *plates = Plates { synced: found.clone(), now: found, boot: plates.boot + 1, ..Plates::default() };
    }

    /// There is room for so many bytes more than are used now.
    pub(super) fn leave_room(&self, bytes: usize) {
        let mut plates = self.plates();
        plates.capacity = Some(plates.now.len() + bytes);
    }

    pub(super) fn make_room(&self) {
        self.plates().capacity = None;
    }

    /// Syncs and bytes written since it was new.
    pub(super) fn work(&self) -> (usize, usize) {
        let plates = self.plates();
        (plates.syncs, plates.bytes_written)
    }

    pub(super) fn hold_syncs(&self, hold: bool) {
        *self.gate.0.lock().unwrap() = hold;
        self.gate.1.notify_all();
    }

    pub(super) fn fail_syncs(&self, fail: bool) {
        self.plates().sync_fails = fail;
    }
}

fn put(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    let end = at + new.len();
    if bytes.len() < end {
        bytes.resize(end, 0);
    }
    bytes[at..end].copy_from_slice(new);
}

impl Opened {
    fn plates(&self) -> Result<MutexGuard<'_, Plates>, Error> {
        let plates = self.medium.plates();
        if plates.boot != self.boot || plates.steps_left == Some(0) {
            return Err(Error::other("the power is off"));
        }
        Ok(plates)
    }

    /// Something that changes the medium.
    fn step(&self) -> Result<MutexGuard<'_, Plates>, Error> {
        let mut plates = self.plates()?;
        if let Some(left) = &mut plates.steps_left {
            *left -= 1;
        }
        Ok(plates)
    }
}

impl StorageBackend for Opened {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.plates()?.now.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), Error> {
        let plates = self.plates()?;
        let at = usize::try_from(offset).unwrap();
        let found = plates.now.get(at..at + out.len()).ok_or(ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(found);
        Ok(())
    }

    fn set_len(&self, length: u64) -> Result<(), Error> {
        let mut plates = self.step()?;
        let length = usize::try_from(length).unwrap();
        if plates.capacity.is_some_and(|capacity| length > capacity) {
            return Err(ErrorKind::StorageFull.into());
        }
        plates.now.resize(length, 0);
        plates.unsynced.push(Step::Length(length));
        Ok(())
    }

    fn sync_data(&self) -> Result<(), Error> {
        let (held, changed) = &*self.medium.gate;
        drop(changed.wait_while(held.lock().unwrap(), |held| *held).unwrap());
        let mut plates = self.step()?;
        plates.syncs += 1;
        if plates.sync_fails {
            return Err(Error::other("the medium does not answer"));
        }
        plates.synced = plates.now.clone();
        plates.unsynced.clear();
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        let mut plates = self.step()?;
        let at = usize::try_from(offset).unwrap();
        put(&mut plates.now, at, data);
        plates.bytes_written += data.len();
        plates.unsynced.push(Step::Write(at, data.to_vec()));
        Ok(())
    }
}

impl DatabaseFile for Medium {
    fn open(&self, builder: &Builder) -> Result<Database, DatabaseError> {
        let boot = self.plates().boot;
        builder.create_with_backend(Opened { medium: self.clone(), boot })
    }

    fn look(&self, _: &Builder) -> Result<Option<ReadOnlyDatabase>, DatabaseError> {
        Ok(None)
    }

    fn replace(&self, builder: &Builder, fill: &mut Fill<'_>) -> Result<(), DatabaseError> {
        let new = Self::default();
        let database = new.open(builder)?;
        fill(&database).map_err(|error| Error::other(error.to_string()))?;
        drop(database);
        let bytes = new.plates().now.clone();
        let mut plates = self.plates();
        if plates.steps_left == Some(0) {
            return Err(Error::other("the power is off").into());
        }
        plates.boot += 1;
        (plates.synced, plates.now) = (bytes.clone(), bytes);
        plates.unsynced.clear();
        Ok(())
    }

    fn path(&self) -> &Path {
        Path::new("medium")
    }
}
