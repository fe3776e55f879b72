//! The shell: watches, hands keys to planners, carries out what they want. It does not choose.

mod requests;
mod watch;

use super::action::Kind;
use super::cache::{Cache, News};
use super::queue::{Key, Queue};
use jiff::Timestamp;
use kube::Client;
use requests::Outcome;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::{debug, warn};

/// How many keys are worked on at once.
const AT_ONCE: usize = 16;
/// How many events wait between the watches and the cache.
const EVENTS: usize = 64;

/// Runs the controllers of a cluster until `shutdown` is done. Dropping the future ends them too, at once.
pub async fn run(client: Client, shutdown: impl Future<Output = ()>) {
    run_with_clock(client, Timestamp::now, shutdown).await;
}

/// The same, by another clock: conditions carry its time.
pub async fn run_with_clock(
    client: Client,
    clock: impl Fn() -> Timestamp,
    shutdown: impl Future<Output = ()>,
) {
    let (sender, events) = mpsc::channel(EVENTS);
    let _watches = watch::all(&client, &sender);
    let work = Work {
        client,
        clock,
        events,
        cache: Cache::default(),
        queue: Queue::default(),
        running: JoinSet::new(),
    };
    tokio::select! {
        () = work.go() => {}
        () = shutdown => {}
    }
}

/// What the one task has that owns the cache.
struct Work<C> {
    client: Client,
    clock: C,
    events: mpsc::Receiver<(Kind, News)>,
    cache: Cache,
    queue: Queue,
    running: JoinSet<(Key, Outcome)>,
}

impl<C: Fn() -> Timestamp> Work<C> {
    async fn go(mut self) {
        let mut batch = Vec::new();
        loop {
            let due = self.queue.due();
            let timer = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                heard = self.events.recv_many(&mut batch, EVENTS) => {
                    if heard == 0 {
                        return;
                    }
                    for (kind, news) in batch.drain(..) {
                        self.hear(kind, &news);
                    }
                }
                Some(ended) = self.running.join_next() => match ended {
                    Ok((key, outcome)) => self.settle(&key, outcome),
                    Err(error) => warn!(%error, "a controller's request was aborted"),
                },
                () = timer => self.queue.wake(Instant::now()),
            }
            if self.running.is_empty() {
                self.cache.calm();
            }
            if self.cache.is_whole() {
                self.start();
            }
        }
    }

    fn hear(&mut self, kind: Kind, news: &News) {
        for key in self.cache.hear(kind, news) {
            self.queue.add(key);
        }
    }

    /// The answers are facts as good as those of a watch, and sooner.
    fn settle(&mut self, key: &Key, outcome: Outcome) {
        for (kind, news) in &outcome.news {
            self.hear(*kind, news);
        }
        match outcome.failure {
            None => self.queue.done(key),
            Some(failure) => {
                if failure.is_race() {
                    debug!(?key, %failure, "a controller failed and tries again");
                } else {
                    warn!(?key, %failure, "a controller failed and tries again");
                }
                self.queue.failed(key, Instant::now());
            }
        }
    }

    fn start(&mut self) {
        while self.running.len() < AT_ONCE
            && let Some(key) = self.queue.next()
        {
            let now = (self.clock)();
            let plan = self.cache.plan(&key, now);
            if let Some(at) = plan.again {
                let wait = Duration::try_from(at.duration_since(now)).unwrap_or_default();
                self.queue.add_at(key.clone(), Instant::now() + wait);
            }
            if plan.actions.is_empty() {
                self.queue.done(&key);
                continue;
            }
            let client = self.client.clone();
            self.running.spawn(async move {
                let outcome = requests::carry_out(&client, plan.actions).await;
                (key, outcome)
            });
        }
    }
}
