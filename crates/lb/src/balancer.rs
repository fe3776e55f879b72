//! The handle of a running balancer: it is told what is desired, and answers what could not be done.

mod active;
mod reconcile;

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use self::reconcile::Reconciler;
use crate::desired::Desired;
use crate::error::LbError;
use crate::metrics::Monitor;
use crate::path::DataPath;
use crate::vips;

/// How often it is looked whether those that leave have finished.
const LOOK: Duration = Duration::from_millis(100);

/// An address that can't be listened on; it is tried again by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unbound {
    /// The listener.
    pub name: Arc<str>,
    /// Where.
    pub address: SocketAddr,
    /// Why not.
    pub why: String,
    /// What to do.
    pub hint: &'static str,
}

/// A load balancer that carries connections until it is dropped.
#[derive(Debug)]
pub struct Balancer {
    requests: mpsc::UnboundedSender<Request>,
    monitor: Arc<Monitor>,
}

/// What the task is asked.
enum Request {
    Apply(Desired, oneshot::Sender<Vec<Unbound>>),
    /// Addresses on interfaces that a former process put there.
    Adopt(BTreeSet<(Arc<str>, IpAddr)>, oneshot::Sender<()>),
    Where(oneshot::Sender<Vec<(Arc<str>, SocketAddr)>>),
    /// Take no more clients; whether some are left.
    Finish(oneshot::Sender<bool>),
}

impl Balancer {
    /// Starts with nothing to do. In user space so many threads carry connections. Needs a tokio runtime to decide in.
    pub fn start(path: DataPath, threads: usize) -> Result<Self, LbError> {
        let (requests, inbox) = mpsc::unbounded_channel();
        let monitor = Arc::new(Monitor::default());
        let (reports, reported) = mpsc::unbounded_channel();
        let reconciler = Reconciler::new(path, threads, Arc::clone(&monitor), reports)?;
        tokio::spawn(reconciler.run(inbox, reported));
        Ok(Self { requests, monitor })
    }

    /// Makes it so. What stays the same is not touched; connections that are open go on. Gives back the addresses that can't be listened on.
    pub async fn apply(&self, desired: Desired) -> Vec<Unbound> {
        self.ask(|answer| Request::Apply(desired, answer)).await
    }

    /// What a former process of ours was last told: it may have put addresses on interfaces, which are removed when they are no longer
    /// desired.
    pub async fn adopt(&self, former: &Desired) {
        let addresses = vips::named(former);
        self.ask(|answer| Request::Adopt(addresses, answer)).await;
    }

    /// Where it listens, by the listener's name: port 0 has become a real one.
    pub async fn addresses(&self) -> Vec<(Arc<str>, SocketAddr)> {
        self.ask(Request::Where).await
    }

    /// Takes no more clients, and waits until the last has left or their time is over. What the kernel carries goes on.
    pub async fn finish(&self) {
        while self.ask(Request::Finish).await {
            sleep(LOOK).await;
        }
    }

    pub(crate) fn monitor(&self) -> &Arc<Monitor> {
        &self.monitor
    }

    async fn ask<T: Default>(&self, request: impl FnOnce(oneshot::Sender<T>) -> Request) -> T {
        let (answer, answered) = oneshot::channel();
        // The task ends only with its runtime, and then there is no caller left.
        let _ = self.requests.send(request(answer));
        answered.await.unwrap_or_default()
    }
}
