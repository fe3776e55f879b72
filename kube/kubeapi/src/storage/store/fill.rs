//! A new file from objects that another store had.

use super::disk::{CommitError, Disk, OpenError, Otherwise};
use super::object::{EventKind, Object};
use super::state::Change;
use crate::storage::encryption::Keys;
use std::path::Path;

const BATCH: usize = 1000;

/// Why a new file was not filled.
#[derive(Debug, thiserror::Error)]
pub enum FillError<E> {
    /// It can't be made.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// It can't be written.
    #[error("cannot write the new store: {0}")]
    Write(String),
    /// The objects ended in an error.
    #[error(transparent)]
    Objects(E),
}

/// Makes a store at `path`, where none may be, that is at `revision` and has `objects`, encrypted as `keys` say.
///
/// # Errors
/// It can't be written, or the objects end in an error. What was written until then stays.
pub fn fill<E>(
    path: &Path,
    revision: u64,
    objects: impl Iterator<Item = Result<Object, E>>,
    keys: &Keys,
) -> Result<u64, FillError<E>> {
    let (mut disk, there) = Disk::open(Box::new(path.to_path_buf()), keys, Otherwise::Rewrite)?;
    if !there.is_empty() {
        return Err(FillError::Write(format!("{} has objects already", path.display())));
    }
    let written = |failed: CommitError| FillError::Write(failed.to_string());
    let mut batch = Vec::with_capacity(BATCH);
    let mut count = 0;
    for object in objects {
        let object = object.map_err(FillError::Objects)?;
        batch.push(Change { kind: EventKind::Added, object, previous: None });
        count += 1;
        if batch.len() == BATCH {
            disk.commit(&batch).map_err(written)?;
            batch.clear();
        }
    }
    disk.commit(&batch).map_err(written)?;
    disk.advance(revision).map_err(written)?;
    Ok(count)
}
