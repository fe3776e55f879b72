//! What is answered over sockets, asked in the same process.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use atoll_dns::{Lookup, Name};

use crate::live::Live;
use crate::options::Options;

/// The names that a server answers. Clones are the same.
#[derive(Clone)]
pub struct Names {
    pub(crate) live: Arc<Live>,
    turn: Arc<AtomicU32>,
}

impl fmt::Debug for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Names").finish_non_exhaustive()
    }
}

impl Names {
    /// Of a server with these options, which [`serve_with`](crate::serve_with) starts.
    pub fn new(options: &Options) -> Self {
        Self { live: Arc::new(Live::new(options)), turn: Arc::default() }
    }

    /// Was everything listed at least once?
    pub fn complete(&self) -> bool {
        self.live.complete()
    }

    /// The addresses of a name in full.
    pub fn lookup(&self, name: &Name) -> Lookup {
        self.live.lookup(name, self.turn.fetch_add(1, Ordering::Relaxed))
    }
}
