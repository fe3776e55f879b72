//! The member's service proxy, in user space: what kube-proxy is on a real node.
//!
//! ```text
//!   Services ───────┐                  ┌──▶ Dialer: pods, exec, `atoll request`
//!   EndpointSlices ─┴─▶ table ─▶ route ┤
//!                                      └──▶ listeners at ClusterIP:port, for tools on the host
//! ```
//!
//! What works is decided by the same objects that kube-proxy reads. [`table`] decides and does no I/O.

mod choice;
mod facts;
mod listen;
mod relay;
pub mod table;
mod watch;

pub use choice::{Choose, RoundRobin};
pub use listen::Listening;

use crate::network::{Gone, Network, Protocol, alive};
use choice::Affinity;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use table::{Found, NoRoute, NodeTopology, Table};
use tokio::sync::watch as signal;
use tokio::task::JoinSet;

/// The proxy of one member. Clones are the same proxy; it follows its member as long as its [`Running`] lives.
#[derive(Clone)]
pub struct Proxy {
    shared: Arc<Shared>,
}

struct Shared {
    table: Mutex<Table>,
    affinity: Mutex<Affinity>,
    choose: Box<dyn Choose>,
    /// Counts changes of the table.
    changes: signal::Sender<u64>,
    listening: Mutex<Vec<Listening>>,
}

/// Where something that was dialled goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// It is no Service.
    Direct,
    /// To this endpoint.
    To(SocketAddr),
    /// Nowhere.
    Refused {
        /// `namespace/name`.
        service: String,
        /// Why not.
        why: NoRoute,
    },
}

/// What keeps a proxy up to date and its sockets open; they end when it is dropped.
#[derive(Debug)]
pub struct Running {
    tasks: JoinSet<()>,
    gone: Gone,
}

impl Running {
    /// Ends it and waits until its sockets are free.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.gone.wait().await;
    }
}

impl Proxy {
    /// A proxy that knows no Service yet, on the node `node` in `zone`.
    pub fn new(node: impl Into<String>, zone: impl Into<String>) -> Self {
        Self::choosing(node, zone, RoundRobin::default())
    }

    /// A proxy that chooses among endpoints in its own way.
    pub fn choosing(node: impl Into<String>, zone: impl Into<String>, choose: impl Choose) -> Self {
        let table = Table::new(NodeTopology { node: node.into(), zone: zone.into() });
        Self {
            shared: Arc::new(Shared {
                table: Mutex::new(table),
                affinity: Mutex::default(),
                choose: Box::new(choose),
                changes: signal::Sender::new(0),
                listening: Mutex::default(),
            }),
        }
    }

    /// Follows the Services and EndpointSlices of an API, and listens for them on `network`.
    pub fn start(&self, client: &kube::Client, network: &Network) -> Running {
        let mut tasks = JoinSet::new();
        tasks.spawn(watch::services(self.clone(), client.clone()));
        tasks.spawn(watch::slices(self.clone(), client.clone()));
        let (alive, gone) = alive();
        tasks.spawn(listen::run(self.clone(), network.clone(), alive));
        Running { tasks, gone }
    }

    /// Where a connection from `client` goes.
    pub fn route(&self, dialled: SocketAddr, protocol: Protocol, client: Option<IpAddr>) -> Route {
        let table = self.table();
        let backend = match table.find(dialled, protocol) {
            Found::NoService => return Route::Direct,
            Found::Refused(service, why) => return Route::Refused { service: service.to_string(), why },
            Found::Backend(backend) => backend,
        };
        let choose = |count| self.shared.choose.choose(dialled, protocol, count);
        let chosen = match (client, backend.affinity) {
            (Some(client), Some(timeout)) => {
                let mut affinity = self.shared.affinity.lock().unwrap_or_else(PoisonError::into_inner);
                affinity.pick(backend, client, timeout, Instant::now(), choose)
            }
            _ => choice::pick(&backend.endpoints, choose),
        };
        match chosen {
            Some(endpoint) => Route::To(endpoint),
            None => Route::Refused { service: backend.service.to_string(), why: NoRoute::NoEndpoints },
        }
    }

    /// Which sockets are open for which Services, and which could not be opened.
    pub fn listening(&self) -> Vec<Listening> {
        self.shared.listening.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the table; listeners are told if anything is new.
    fn change(&self, change: impl FnOnce(&mut Table) -> bool) {
        let changed = change(&mut self.table());
        if changed {
            self.shared.changes.send_modify(|count| *count += 1);
        }
    }
}
