//! One watcher: a place in the shared history. It holds no events, so it can't grow; who falls behind the history
//! is cut off.

use super::object::{Event, RevisionError};
use super::shared::Shared;
use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Notify;

/// Yields what happens under a prefix, in order, each write once.
pub struct Watch {
    shared: Arc<Shared>,
    waiting: Arc<Notify>,
    prefix: Box<str>,
    seen: u64,
}

impl Watch {
    pub(super) fn start(
        shared: Arc<Shared>,
        prefix: &str,
        since: Option<u64>,
    ) -> Result<Self, RevisionError> {
        let waiting = shared.topic(prefix);
        let seen = {
            let state = shared.read();
            let since = since.unwrap_or(state.revision());
            if since < state.compacted() {
                return Err(RevisionError::Gone { requested: since, oldest: state.compacted() });
            }
            since
        };
        Ok(Self { shared, waiting, prefix: prefix.into(), seen })
    }

    /// The next event, when it comes. Dropping the future loses nothing.
    ///
    /// # Errors
    /// This watch fell behind the store's history: it is of no more use.
    pub async fn next(&mut self) -> Result<Event, RevisionError> {
        loop {
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            let waiting = self.waiting.clone();
            let mut woken = pin!(waiting.notified());
            // Registered before the second look: a write in between isn't missed.
            woken.as_mut().enable();
            if let Some(event) = self.try_next()? {
                return Ok(event);
            }
            woken.await;
        }
    }

    /// The next event, if there is one.
    ///
    /// # Errors
    /// As [`Watch::next`].
    pub fn try_next(&mut self) -> Result<Option<Event>, RevisionError> {
        let (seen, event) = self.shared.read().next(&self.prefix, self.seen)?;
        self.seen = seen;
        Ok(event)
    }

    /// Everything up to this revision was yielded. Right after [`Watch::try_next`] found nothing it is the store's
    /// revision: what a bookmark says.
    pub fn revision(&self) -> u64 {
        self.seen
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch")
            .field("prefix", &self.prefix)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
