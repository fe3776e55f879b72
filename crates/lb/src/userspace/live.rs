//! What threads need to know for the next connection: replaced whole when something changes, read without a lock.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use atoll_balance::{Affinity, Algorithm, Picture, Standing, client, flow};
use tokio::sync::{Notify, mpsc};

use crate::desired::{Limits, Listener};

/// What a thread has to tell of a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Report {
    /// A connection came about, after some that did not.
    Passed,
    /// A connection did not come about.
    Failed,
}

/// Reports, with the listener's number and the backend.
pub(crate) type Reports = mpsc::UnboundedSender<(u64, SocketAddr, Report)>;

/// One backend of one listener, for as long as a client is connected to it.
#[derive(Debug)]
pub(crate) struct BackendState {
    pub(crate) address: SocketAddr,
    pub(crate) cluster: Arc<str>,
    /// Connections or flows that are open.
    pub(crate) open: AtomicUsize,
    pub(crate) opened: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) to_backend: AtomicU64,
    pub(crate) to_client: AtomicU64,
    /// Whether a connection that comes about is news.
    pub(crate) doubted: AtomicBool,
    /// Whether flows of datagrams should look for another one.
    pub(crate) lost: AtomicBool,
    standing: AtomicU8,
    /// Told when what is open has to end.
    pub(crate) cut: Notify,
    /// Whether that was told already: a connection that came about just then was not there to hear it.
    pub(crate) over: AtomicBool,
}

impl BackendState {
    pub(crate) fn new(address: SocketAddr, cluster: Arc<str>) -> Self {
        Self {
            address,
            cluster,
            open: AtomicUsize::new(0),
            opened: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            to_backend: AtomicU64::new(0),
            to_client: AtomicU64::new(0),
            doubted: AtomicBool::new(false),
            lost: AtomicBool::new(false),
            standing: AtomicU8::new(0),
            cut: Notify::new(),
            over: AtomicBool::new(false),
        }
    }

    /// Whether it is lost since now. Where no backend is better off, whoever is picked is not: its flows would only come back to it.
    pub(crate) fn stand(&self, standing: Standing, picked: bool) -> bool {
        let (code, bad) = match standing {
            Standing::Usable => (0, false),
            Standing::WithoutShare => (1, false),
            Standing::Draining => (2, false),
            Standing::Ejected { .. } => (3, true),
            Standing::Unhealthy => (4, true),
            Standing::Leaving { .. } => (5, false),
        };
        self.standing.store(code, Relaxed);
        let lost = bad && !picked;
        !self.lost.swap(lost, Relaxed) && lost
    }

    pub(crate) fn standing(&self) -> &'static str {
        ["usable", "without-share", "draining", "ejected", "unhealthy", "leaving"]
            [usize::from(self.standing.load(Relaxed))]
    }

    /// Ends what is open.
    pub(crate) fn cut(&self) {
        self.lost.store(true, Relaxed);
        self.over.store(true, SeqCst);
        self.cut.notify_waiters();
    }
}

/// Counts a connection as open while it lives.
#[derive(Debug)]
pub(crate) struct Open(pub(crate) Arc<BackendState>);

impl Open {
    pub(crate) fn new(backend: &Arc<BackendState>) -> Self {
        backend.open.fetch_add(1, Relaxed);
        Self(Arc::clone(backend))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Relaxed);
    }
}

/// What the next connection is decided from.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) listener: Arc<Listener>,
    pub(crate) picture: Arc<Picture>,
    /// In the order of the picture's candidates.
    pub(crate) states: Vec<Arc<BackendState>>,
    pub(crate) affinity: Option<Arc<Mutex<Affinity>>>,
}

impl View {
    /// The backend for `from`, other than those tried; `now` since the balancer's start.
    pub(crate) fn pick(&self, from: SocketAddr, tried: &[usize], now: Duration) -> Option<usize> {
        let settings = &self.listener.settings;
        let hash = match &self.affinity {
            Some(affinity) => {
                let last = lock(affinity).recall(from.ip(), now);
                let number = last.and_then(|address| self.picture.number_of(address));
                if let Some(number) = number.filter(|number| !tried.contains(number)) {
                    return Some(number);
                }
                client(settings.seed, from.ip())
            }
            None => flow(settings.seed, from),
        };
        match self.picture.algorithm() {
            Algorithm::Maglev => self.picture.pick(hash, tried),
            Algorithm::LeastConnections => {
                self.picture.least(|number| self.states[number].open.load(Relaxed), hash, tried)
            }
        }
    }

    /// `from` goes to this one.
    pub(crate) fn went(&self, from: IpAddr, number: usize, now: Duration) {
        if let Some(affinity) = &self.affinity {
            lock(affinity).remember(from, self.states[number].address, now);
        }
    }
}

/// One listener, as all threads see it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) number: u64,
    pub(crate) started: Instant,
    pub(crate) view: ArcSwap<View>,
    pub(crate) reports: Reports,
    pub(crate) open: AtomicUsize,
    /// Clients that were sent away, because of a limit or because no backend was there.
    pub(crate) over_limit: AtomicU64,
    pub(crate) nobody: AtomicU64,
    by_client: Mutex<HashMap<IpAddr, usize>>,
}

impl Live {
    pub(crate) fn new(number: u64, started: Instant, view: View, reports: Reports) -> Self {
        Self {
            number,
            started,
            view: ArcSwap::from_pointee(view),
            reports,
            open: AtomicUsize::new(0),
            over_limit: AtomicU64::new(0),
            nobody: AtomicU64::new(0),
            by_client: Mutex::default(),
        }
    }

    /// A place for one more connection from `client`; none if there are too many.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr, limits: Limits) -> Option<OpenConnection> {
        if self.open.fetch_add(1, Relaxed) >= limits.connections {
            self.open.fetch_sub(1, Relaxed);
            self.over_limit.fetch_add(1, Relaxed);
            return None;
        }
        let mut place = OpenConnection { live: Arc::clone(self), client: None };
        if let Some(most) = limits.per_client {
            let mut by_client = lock(&self.by_client);
            let its = by_client.entry(client).or_default();
            if *its >= most {
                self.over_limit.fetch_add(1, Relaxed);
                return None;
            }
            *its += 1;
            place.client = Some(client);
        }
        Some(place)
    }

    pub(crate) fn passed(&self, backend: &BackendState) {
        backend.opened.fetch_add(1, Relaxed);
        self.answered(backend);
    }

    /// The backend has shown that it is there.
    pub(crate) fn answered(&self, backend: &BackendState) {
        if backend.doubted.load(Relaxed) {
            let _ = self.reports.send((self.number, backend.address, Report::Passed));
        }
    }

    pub(crate) fn failed(&self, backend: &BackendState) {
        backend.failed.fetch_add(1, Relaxed);
        backend.doubted.store(true, Relaxed);
        let _ = self.reports.send((self.number, backend.address, Report::Failed));
    }
}

/// A connection's place at a listener.
#[derive(Debug)]
pub(crate) struct OpenConnection {
    pub(crate) live: Arc<Live>,
    client: Option<IpAddr>,
}

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.live.open.fetch_sub(1, Relaxed);
        if let Some(client) = self.client {
            let mut by_client = lock(&self.live.by_client);
            if let Some(its) = by_client.get_mut(&client) {
                *its -= 1;
                if *its == 0 {
                    by_client.remove(&client);
                }
            }
        }
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
