//! Whether the hub may write now: the leader's lease ends at a local deadline.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::watch;

/// Whether writes are allowed, for all members of one hub. Clones share it.
#[derive(Debug, Clone)]
pub struct Permit(Arc<watch::Sender<Until>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    Never,
    Deadline(Instant),
    Forever,
}

impl Default for Permit {
    fn default() -> Self {
        Self::new()
    }
}

impl Permit {
    /// No writes until it is extended.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(Until::Never)))
    }

    /// For a hub that nobody can take over.
    pub fn forever() -> Self {
        Self(Arc::new(watch::Sender::new(Until::Forever)))
    }

    /// Writes are allowed until then.
    pub fn extend_to(&self, deadline: Instant) {
        self.0.send_replace(Until::Deadline(deadline));
    }

    /// No writes from now on.
    pub fn revoke(&self) {
        self.0.send_replace(Until::Never);
    }

    /// Whether a write may be sent now.
    pub fn holds(&self) -> bool {
        match *self.0.borrow() {
            Until::Never => false,
            Until::Deadline(at) => Instant::now() < at,
            Until::Forever => true,
        }
    }

    /// Tells of every change.
    pub(crate) fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

/// Waits for a permit to change.
#[derive(Debug)]
pub(crate) struct Changes(watch::Receiver<Until>);

impl Changes {
    /// Returns when the permit was extended or revoked; never if nobody can do so any more.
    pub(crate) async fn next(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_permit_holds_until_its_deadline_and_not_after_it_is_revoked() {
        let permit = Permit::new();
        assert!(!permit.holds(), "nobody has granted it");
        permit.extend_to(Instant::now() + Duration::from_secs(3600));
        assert!(permit.clone().holds());
        permit.revoke();
        assert!(!permit.clone().holds());
        permit.extend_to(Instant::now());
        assert!(!permit.holds(), "the deadline has come");
        assert!(Permit::forever().holds());
    }
}
