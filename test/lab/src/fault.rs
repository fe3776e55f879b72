//! Things broken on purpose. Each heals when dropped, or when told to.
//!
//! A test first proves that the fault bites, and only then looks at what it is about.

mod component;
pub mod cut;
pub mod gate;
pub mod link;

use crate::error::Result;
use crate::progress::say;
use std::sync::atomic::{AtomicU32, Ordering};

static NOT_HEALED: AtomicU32 = AtomicU32::new(0);

/// How many faults of this process could not be healed when they were dropped. What runs afterwards runs on
/// broken clusters.
pub fn not_healed() -> u32 {
    NOT_HEALED.load(Ordering::Relaxed)
}

type Undo = Box<dyn FnOnce() -> Result<()> + Send + Sync>;

/// Something broken; healed when dropped.
#[must_use = "a fault heals as soon as it is dropped"]
pub struct Fault {
    what: String,
    undo: Option<Undo>,
}

impl Fault {
    pub(crate) fn new(what: String, undo: impl FnOnce() -> Result<()> + Send + Sync + 'static) -> Self {
        Self { what, undo: Some(Box::new(undo)) }
    }

    /// Heals now, and says if that failed. A component may need a moment more until it is ready.
    pub fn heal(mut self) -> Result<()> {
        self.undo.take().map_or(Ok(()), |undo| undo())
    }
}

impl std::fmt::Debug for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Fault").field(&self.what).finish()
    }
}

impl Drop for Fault {
    fn drop(&mut self) {
        if let Some(undo) = self.undo.take()
            && let Err(error) = undo()
        {
            NOT_HEALED.fetch_add(1, Ordering::Relaxed);
            say(&format!("could not heal: {}: {error}", self.what));
        }
    }
}
