//! Seats that can be waited for: the shell around [`Seats`].

use super::Busy;
use super::seats::{Arrival, Limits, Seats, Ticket};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::oneshot;

/// Seats of one kind.
pub(crate) struct Lane {
    seats: Mutex<Seats<oneshot::Sender<()>>>,
    wait: Duration,
}

/// A seat; it is free again when this is dropped.
pub(crate) struct Seat {
    lane: Arc<Lane>,
    user: String,
}

impl Lane {
    pub(crate) fn new(limits: Limits, wait: Duration) -> Self {
        Self { seats: Mutex::new(Seats::new(limits)), wait }
    }

    // Held for some hundred nanoseconds, and never while anything is waited for.
    fn seats(&self) -> MutexGuard<'_, Seats<oneshot::Sender<()>>> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a seat, but not for long.
    pub(crate) async fn enter(self: &Arc<Self>, user: &str) -> Result<Seat, Busy> {
        let mut called = None;
        let arrival = self.seats().arrive(user, || {
            let (caller, call) = oneshot::channel();
            called = Some(call);
            caller
        });
        match (arrival, called) {
            (Arrival::Seated, _) => Ok(Seat { lane: Arc::clone(self), user: user.to_owned() }),
            (Arrival::Waits(ticket), Some(call)) => {
                let mut place = Place { lane: self, user, ticket, seated: false };
                let seated = tokio::time::timeout(self.wait, call).await;
                if !matches!(seated, Ok(Ok(()))) {
                    return Err(Busy);
                }
                place.seated = true;
                Ok(Seat { lane: Arc::clone(self), user: user.to_owned() })
            }
            (Arrival::Refused | Arrival::Waits(_), _) => Err(Busy),
        }
    }

    fn leave(&self, user: &str) {
        // Who can't be called any more gives their seat back themselves: see `Place`.
        let next = self.seats().leave(user);
        if let Some(next) = next {
            let _ = next.send(());
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.lane.leave(&self.user);
    }
}

/// A place in a queue.
struct Place<'a> {
    lane: &'a Arc<Lane>,
    user: &'a str,
    ticket: Ticket,
    seated: bool,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if !self.seated && !self.lane.seats().give_up(self.user, self.ticket) {
            // It was called in the moment that it went.
            self.lane.leave(self.user);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lane(seats: usize) -> Arc<Lane> {
        let limits = Limits { seats, per_user: seats, queued_per_user: 100, queued: 100 };
        Arc::new(Lane::new(limits, Duration::from_secs(5)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_seat_goes_to_who_waits_and_a_wait_has_an_end() {
        let lane = lane(1);
        let seat = lane.enter("a").await.ok().unwrap();
        assert_eq!(lane.enter("b").await.err(), Some(Busy), "five seconds later");
        let waits = tokio::spawn({
            let lane = Arc::clone(&lane);
            async move { lane.enter("b").await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(seat);
        assert!(waits.await.unwrap());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_gone_when_called_takes_no_seat_away() {
        let lane = lane(1);
        let seat = lane.enter("a").await.ok().unwrap();
        let mut waits = Box::pin(lane.enter("b"));
        assert!(tokio::time::timeout(Duration::from_secs(1), waits.as_mut()).await.is_err());
        drop(seat);
        drop(waits);
        assert!(lane.enter("c").await.is_ok());
    }
}
