//! One listener: its pool of backends, what is counted of each, and what the threads see.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use atoll_balance::{Affinity, Gone, Pool};

use super::Unbound;
use crate::desired::Listener;
use crate::error::hint;
use crate::userspace::live::{BackendState, Live, View, lock};
use crate::userspace::threads::Threads;

/// Clients that are remembered per listener, where a client comes back to the same backend.
const REMEMBERED: usize = 100_000;

pub(super) struct Active {
    pub(super) listener: Arc<Listener>,
    pub(super) live: Arc<Live>,
    pub(super) pool: Pool,
    pub(super) states: BTreeMap<SocketAddr, Arc<BackendState>>,
    pub(super) affinity: Option<Arc<Mutex<Affinity>>>,
    /// Those that have failed their checks since the last tick.
    pub(super) lost: Vec<SocketAddr>,
    pub(super) by_kernel: bool,
    pub(super) bound: Result<SocketAddr, Unbound>,
    /// Until when a client may come in that was at the door when it was closed.
    pub(super) door: Duration,
}

impl Active {
    pub(super) fn configure(&mut self, listener: Listener, now: Duration) {
        let span = listener.settings.affinity;
        if span != self.listener.settings.affinity || self.affinity.is_some() != span.is_some() {
            self.affinity = span.map(|span| Arc::new(Mutex::new(Affinity::new(span, REMEMBERED))));
        }
        for backend in &listener.backends {
            self.states.entry(backend.address).or_insert_with(|| {
                Arc::new(BackendState::new(backend.address, Arc::clone(&backend.cluster)))
            });
        }
        self.pool.configure(listener.settings.clone(), listener.backends.clone(), now);
        self.listener = Arc::new(listener);
        self.publish();
    }

    pub(super) fn bind(&mut self, threads: &Threads) {
        let Listener { protocol, address, name, .. } = &*self.listener;
        self.bound = threads
            .listen(*protocol, *address, &self.live)
            .map_err(|error| self.unbound(error.to_string(), hint(&error)));
        if let Ok(address) = self.bound {
            tracing::info!(listener = %name, %address, protocol = protocol.name(), "listening");
        }
    }

    /// Says of each backend how it stands.
    pub(super) fn stand(&mut self) {
        let picture = self.pool.picture();
        for (backend, standing) in self.pool.standings() {
            if let Some(state) = self.states.get(&backend.address)
                && state.stand(standing, picture.number_of(backend.address).is_some())
                && self.by_kernel
            {
                self.lost.push(backend.address);
            }
        }
    }

    /// Gives the threads the picture of now.
    pub(super) fn publish(&mut self) {
        self.stand();
        let picture = self.pool.picture();
        let of = |address: SocketAddr, cluster: &Arc<str>| {
            let known = self.states.get(&address).cloned();
            known.unwrap_or_else(|| Arc::new(BackendState::new(address, Arc::clone(cluster))))
        };
        let states = picture.candidates().iter().map(|one| of(one.address, &one.cluster)).collect();
        self.live.view.store(Arc::new(View {
            listener: Arc::clone(&self.listener),
            picture: Arc::clone(picture),
            states,
            affinity: self.affinity.clone(),
        }));
    }

    /// The backends that have gone. What the kernel carries is not counted: it has all of its time.
    pub(super) fn tick(&mut self, now: Duration) -> Vec<SocketAddr> {
        let (states, in_kernel) = (&self.states, self.by_kernel);
        let counted = |address| states.get(&address).map_or(0, |state| state.open.load(Relaxed));
        let open = |address| if in_kernel || now < self.door { 1 } else { counted(address) };
        let (changed, gone) = self.pool.tick(open, now);
        let mut addresses = Vec::new();
        for one in gone {
            let (address, overdue) = match one {
                Gone::Finished(address) => (address, false),
                Gone::Overdue(address) => (address, true),
            };
            addresses.push(address);
            if let Some(state) = self.states.remove(&address).filter(|_| overdue) {
                let open = state.open.load(Relaxed);
                tracing::warn!(listener = %self.listener.name, backend = %address, open, "drain time is over; closing connections");
                state.cut();
            }
        }
        if changed {
            self.publish();
        }
        if let Some(affinity) = &self.affinity {
            lock(affinity).forget(now);
        }
        addresses
    }

    pub(super) fn unbound(&self, why: String, hint: &'static str) -> Unbound {
        Unbound { name: Arc::clone(&self.listener.name), address: self.listener.address, why, hint }
    }
}
