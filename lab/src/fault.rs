//! Things broken on purpose. Each heals when dropped, or when told to.
//!
//! A test first proves that the fault bites, and only then looks at what it is about.

mod component;
pub mod cut;
pub mod gate;
pub mod link;

use crate::error::Result;

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
            eprintln!("lab: could not heal: {}: {error}", self.what);
        }
    }
}
