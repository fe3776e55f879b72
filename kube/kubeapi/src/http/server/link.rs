//! The connections of a server: the shell around [`Places`], and what one connection tells it.

use super::places::{Id, Limits, Places, Room};
use crate::flow::Busy;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// All connections.
pub(super) struct Connections {
    table: Mutex<Table>,
    left: Notify,
    beginning: Instant,
}

struct Table {
    places: Places,
    /// How an unknown connection is ended.
    ends: HashMap<Id, AbortHandle>,
}

impl Connections {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        let table = Table { places: Places::new(limits), ends: HashMap::new() };
        Arc::new(Self { table: Mutex::new(table), left: Notify::new(), beginning: Instant::now() })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until there is room for one more; one that stalls may have to go for it.
    pub(super) async fn room(&self) {
        loop {
            let left = self.left.notified();
            let later = {
                let mut table = self.table();
                match table.places.room(self.beginning.elapsed()) {
                    Room::Free => return,
                    Room::Instead(id) => {
                        if let Some(end) = table.ends.remove(&id) {
                            end.abort();
                        }
                        table.places.leave(id);
                        return;
                    }
                    Room::Later(later) => later,
                }
            };
            let wait =
                later.map_or(Duration::from_secs(60), |later| later.saturating_sub(self.beginning.elapsed()));
            let _ = tokio::time::timeout(wait + Duration::from_millis(1), left).await;
        }
    }

    /// A connection came. It is here until its link is dropped.
    pub(super) fn arrive(self: &Arc<Self>, from: IpAddr) -> Arc<Link> {
        let id = self.table().places.arrive(from, self.beginning.elapsed());
        let state = || AtomicBool::new(false);
        Arc::new(Link {
            connections: Arc::clone(self),
            id,
            peer: from,
            asked: state(),
            known: state(),
            streams: state(),
        })
    }

    /// How a connection is ended while it is not known whose it is.
    pub(super) fn ended_by(&self, link: &Link, end: AbortHandle) {
        if !link.known.load(Ordering::Acquire) {
            self.table().ends.insert(link.id, end);
        }
    }
}

/// One connection, as requests on it see it.
pub(crate) struct Link {
    connections: Arc<Connections>,
    id: Id,
    peer: IpAddr,
    asked: AtomicBool,
    known: AtomicBool,
    streams: AtomicBool,
}

impl Link {
    /// Where it comes from.
    pub(crate) fn peer(&self) -> IpAddr {
        self.peer
    }

    /// A request came.
    pub(crate) fn asked(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Did one ever come?
    pub(super) fn was_asked(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }

    /// Its answer goes on until client or server ends it, or it does not.
    pub(crate) fn stream(&self, streams: bool) {
        self.streams.store(streams, Ordering::Release);
    }

    /// Does the answer go on?
    pub(super) fn streams(&self) -> bool {
        self.streams.load(Ordering::Acquire)
    }

    /// The request is of a user whose connections are counted (`Some`), or of an administrator. Whoever is anonymous stays
    /// unknown.
    pub(crate) fn belongs_to(&self, user: Option<&str>) -> Result<(), Busy> {
        if self.known.load(Ordering::Acquire) || user == Some(crate::access::authn::ANONYMOUS) {
            return Ok(());
        }
        let mut table = self.connections.table();
        if !table.places.belongs_to(self.id, user) {
            return Err(Busy);
        }
        table.ends.remove(&self.id);
        drop(table);
        self.known.store(true, Ordering::Release);
        self.connections.left.notify_one();
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let mut table = self.connections.table();
        table.places.leave(self.id);
        table.ends.remove(&self.id);
        drop(table);
        self.connections.left.notify_one();
    }
}
