//! No user may take more than a share: how many requests run at once, what they hold in memory, which of them may use an
//! I/O thread.
//!
//! ```text
//!   authorised request ─┬─ health ─────────────────────────────────────────────▶ at once
//!                       ├─ watch, log, exec ──▶ seat in `long` ────────────────▶ streams; a large event needs a seat in `bulky`
//!                       └─ others ─┬─ light ──▶ seat in `light` ───────────────▶ on the I/O thread
//!                                  └─ heavy ──▶ seats in `memory`, `heavy` ────▶ on a thread of its own
//! ```
//!
//! [`seats`] decides who is next: per user a queue, and the queues take turns. [`weigh`] says what is heavy. Both are pure.
//! The administrator's group and callers in this process need no seat.

pub(crate) mod lane;
pub(crate) mod seats;
pub(crate) mod weigh;

use lane::{Lane, Seat};
use seats::Limits;
use std::sync::Arc;
use std::time::Duration;

/// How long a request waits for a seat before it is told to come back.
const WAIT: Duration = Duration::from_secs(15);

/// The seats of one API.
pub(crate) struct Flow {
    light: Arc<Lane>,
    heavy: Arc<Lane>,
    memory: Arc<Lane>,
    long: Arc<Lane>,
    bulky: Arc<Lane>,
}

impl Flow {
    /// For a machine with so many processors.
    pub(crate) fn new(processors: usize) -> Self {
        // One processor is left to the I/O threads.
        let threads = processors.saturating_sub(1).max(1);
        let lane = |seats, per_user, queued_per_user, queued| {
            Arc::new(Lane::new(Limits { seats, per_user, queued_per_user, queued }, WAIT))
        };
        Self {
            light: lane(512, 64, 512, 4096),
            heavy: lane(threads, threads, 64, 512),
            memory: lane(16, 4, 512, 2048),
            long: lane(4096, 1024, 0, 0),
            bulky: lane(32, 8, 1024, 4096),
        }
    }

    /// For requests that are short.
    pub(crate) async fn light(&self, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        self.enter(&self.light, payer).await
    }

    /// For requests that take a processor for a while.
    pub(crate) async fn heavy(&self, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        self.enter(&self.heavy, payer).await
    }

    /// For large bodies and large answers: until they are gone.
    pub(crate) async fn memory(&self, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        self.enter(&self.memory, payer).await
    }

    /// For what goes on until client or server ends it.
    pub(crate) async fn long(&self, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        self.enter(&self.long, payer).await
    }

    /// For one large event of a watch: until it is sent.
    pub(crate) async fn bulky(&self, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        self.enter(&self.bulky, payer).await
    }

    async fn enter(&self, lane: &Arc<Lane>, payer: Option<&str>) -> Result<Option<Seat>, Busy> {
        match payer {
            None => Ok(None),
            Some(user) => lane.enter(user).await.map(Some),
        }
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new(std::thread::available_parallelism().map_or(1, std::num::NonZero::get))
    }
}

/// There is no seat now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Busy;

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_user_does_not_take_all_watches() {
        let flow = Flow::new(2);
        let mut held = Vec::new();
        while let Ok(seat) = flow.long(Some("greedy")).await {
            held.push(seat);
        }
        assert_eq!(held.len(), 1024);
        assert!(flow.long(Some("honest")).await.is_ok());
        assert!(flow.long(None).await.is_ok(), "the administrator");
    }

    #[tokio::test(start_paused = true)]
    async fn one_user_does_not_take_all_that_is_held_in_memory() {
        let flow = Flow::new(2);
        let mut held = Vec::new();
        while let Ok(seat) = flow.memory(Some("greedy")).await {
            held.push(seat);
        }
        assert_eq!(held.len(), 4, "and the fifth waited in vain");
        assert!(flow.memory(Some("honest")).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_heavy_request_waits_for_one_of_another_user_and_not_for_all() {
        let flow = Arc::new(Flow::new(2));
        let running = flow.heavy(Some("greedy")).await.ok();
        let order = Arc::new(std::sync::Mutex::new(Vec::new()));
        let mut waiting = tokio::task::JoinSet::new();
        for user in ["greedy", "greedy", "greedy", "honest"] {
            let (flow, order) = (Arc::clone(&flow), Arc::clone(&order));
            waiting.spawn(async move {
                let _seat = flow.heavy(Some(user)).await.ok().unwrap();
                order.lock().unwrap().push(user);
            });
            tokio::task::yield_now().await;
        }
        drop(running);
        waiting.join_all().await;
        assert_eq!(*order.lock().unwrap(), ["greedy", "honest", "greedy", "greedy"]);
    }
}
