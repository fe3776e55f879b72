//! `MultiClusterServices` of type `LoadBalancer`: one address outside all clusters for the endpoints of the providers.
//!
//! ```text
//!   engine: Plan.balanced ─┐
//!   hub's API: MCS ────────┴▶ desk ──▶ atoll_lb::controller ──▶ a provider: built in, or over gRPC
//!                                          │ write: finalizer, status, condition, events
//!   built in: addresses from the pool, a ConfigMap per service ──▶ carry: a balancer, here or on another machine
//! ```
//! `desk`, `spec` and `addresses` decide and know no socket.

mod addresses;
mod builtin;
mod carry;
mod desk;
mod ledger;
mod spec;
mod write;

use std::fmt;
use std::sync::Arc;

use atoll_lb::provider::Provider;
use atoll_member::Permit;
use kube::Client;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::membership::networks::Ranges;
use builtin::BuiltIn;
use write::Writer;

pub use carry::{Carrying, carry};
pub(crate) use desk::Desk;
pub(crate) use spec::remarks;

/// Who makes load balancers.
#[derive(Clone)]
pub enum Balancing {
    /// Nobody: services of type `LoadBalancer` are another controller's.
    Nobody,
    /// Atoll's own balancer, with addresses of these ranges.
    BuiltIn(Ranges),
    /// Somebody else.
    By(Arc<dyn Provider>),
}

impl fmt::Debug for Balancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nobody => f.write_str("Nobody"),
            Self::BuiltIn(ranges) => write!(f, "BuiltIn({ranges})"),
            Self::By(_) => f.write_str("By(…)"),
        }
    }
}

impl Balancing {
    /// Whether there is somebody.
    pub(crate) fn is_somebodys(&self) -> bool {
        match self {
            Self::Nobody => false,
            Self::BuiltIn(_) | Self::By(_) => true,
        }
    }
}

/// Carries out what services of type `LoadBalancer` want, for one time of leadership.
pub(crate) fn spawn(
    balancing: &Balancing,
    client: &Client,
    namespace: &str,
    permit: &Permit,
    tasks: &mut JoinSet<()>,
) -> Option<UnboundedSender<atoll_lb::controller::Event>> {
    let provider: Arc<dyn Provider> = match balancing {
        Balancing::Nobody => return None,
        Balancing::BuiltIn(pool) => {
            Arc::new(BuiltIn::new(client.clone(), namespace, pool.clone(), permit.clone()))
        }
        Balancing::By(provider) => Arc::clone(provider),
    };
    let (events, inbox) = unbounded_channel();
    let writer = Arc::new(Writer::new(client.clone(), permit.clone()));
    tasks.spawn(atoll_lb::controller::run(provider, writer, inbox));
    Some(events)
}
