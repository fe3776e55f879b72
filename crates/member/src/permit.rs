//! Whether the hub may write now: the leader's lease ends at a local deadline. A hub has one; each member has its own, which is never
//! longer than the hub's.

use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_link::Lease;
use tokio::sync::watch;

/// What counts as for ever in a lease: it is not renewed.
const AGES: Duration = Duration::from_secs(100 * 365 * 24 * 3600);

/// Whether writes are allowed. Clones share it.
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

    /// For a hub that no other hub can take over from.
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

    /// What is left of it at this moment.
    pub fn lease(&self, at: Instant) -> Lease {
        match *self.0.borrow() {
            Until::Never => Lease::Revoked,
            Until::Deadline(deadline) if deadline <= at => Lease::Revoked,
            Until::Deadline(deadline) => Lease::Held(deadline - at),
            Until::Forever => Lease::Held(AGES),
        }
    }

    /// Lasts as long as the hub has said, from the moment at which it said so: whatever time the word took to come is not granted.
    pub fn follow(&self, lease: Lease, sent: Instant) {
        match lease {
            Lease::Held(left) => match sent.checked_add(left) {
                Some(deadline) => self.extend_to(deadline),
                None => self.revoke(), // no hub holds a lease for so long
            },
            Lease::Revoked => self.revoke(),
        }
    }

    /// Tells of every change.
    pub fn changes(&self) -> Changes {
        Changes(self.0.subscribe())
    }
}

/// Waits for a permit to change.
#[derive(Debug)]
pub struct Changes(watch::Receiver<Until>);

impl Changes {
    /// Returns when the permit was extended or revoked; never if no holder can do so any more.
    pub async fn next(&mut self) {
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
        assert!(!permit.holds(), "it was not granted");
        permit.extend_to(Instant::now() + Duration::from_secs(3600));
        assert!(permit.clone().holds());
        permit.revoke();
        assert!(!permit.clone().holds());
        permit.extend_to(Instant::now());
        assert!(!permit.holds(), "the deadline has come");
        assert!(Permit::forever().holds());
    }

    #[test]
    fn a_lease_that_waited_on_its_way_ends_no_later_than_the_hubs() {
        let hub = Permit::new();
        let sent = Instant::now();
        let deadline = sent + Duration::from_secs(10);
        hub.extend_to(deadline);
        let lease = hub.lease(sent);
        assert_eq!(lease, Lease::Held(Duration::from_secs(10)));
        // However late it is taken in, it counts from when it was sent.
        let member = Permit::new();
        member.follow(lease, sent);
        assert_eq!(*member.0.borrow(), Until::Deadline(deadline));
        // Sent so long ago that it is over: it allows nothing.
        let long_ago = sent - Duration::from_secs(11);
        member.follow(lease, long_ago);
        assert!(!member.holds());
        assert_eq!(hub.lease(deadline), Lease::Revoked, "nothing is left of it");
    }

    #[test]
    fn a_member_follows_what_its_hub_says() {
        let (hub, member) = (Permit::forever(), Permit::new());
        let now = Instant::now();
        member.follow(hub.lease(now), now);
        assert!(member.holds());
        hub.revoke();
        member.follow(hub.lease(now), now);
        assert!(!member.holds());
        member.follow(Lease::Held(Duration::MAX), now);
        assert!(!member.holds(), "nonsense grants nothing");
    }
}
