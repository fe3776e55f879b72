//! `MultiClusterServices` of type `LoadBalancer`: one address outside all clusters for the endpoints of the providers.
//!
//! ```text
//!   engine: Plan.balanced ─┐
//!   hub's API: MCS ────────┴▶ core ─▶ spec ──▶ atoll_lb::controller ─▶ a provider: atoll_lb_kube::BuiltIn, or one over gRPC
//!   hub's API: MCS ◀── write: finalizer, status, condition, events ◀──┘
//! ```
//! This is the only way from here to the balancer, and `write` the only way back. `core` and `spec` decide and know no socket. Which
//! services have a load balancer is decided by `mcs::edge`.

mod core;
mod host;
mod spec;
mod write;

use std::fmt;
use std::sync::Arc;

use atoll_lb::provider::Provider;
use atoll_lb_kube::{BuiltIn, Pool};
use atoll_member::Permit;
use atoll_member::events::Events;
use kube::Client;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use self::host::LeadingHub;
use self::write::Writer;

pub(crate) use self::core::LoadBalancers;
pub(crate) use spec::remarks;

/// What makes load balancers.
#[derive(Clone)]
pub enum Balancing {
    /// Nothing: services of type `LoadBalancer` are another controller's.
    Off,
    /// Atoll's own balancer, with addresses of this pool.
    BuiltIn(Pool),
    /// The same, with at most so many addresses for the services of one namespace.
    Limited(Pool, usize),
    /// Another provider.
    Provider(Arc<dyn Provider>),
}

impl fmt::Debug for Balancing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("Off"),
            Self::BuiltIn(pool) => write!(f, "BuiltIn({pool})"),
            Self::Limited(pool, most) => write!(f, "Limited({pool}, {most})"),
            Self::Provider(_) => f.write_str("Provider(…)"),
        }
    }
}

impl Balancing {
    /// Whether services of type `LoadBalancer` are this hub's to serve.
    pub(crate) fn is_on(&self) -> bool {
        match self {
            Self::Off => false,
            Self::BuiltIn(_) | Self::Limited(..) | Self::Provider(_) => true,
        }
    }
}

/// Carries out what services of type `LoadBalancer` want, for one time of leadership.
pub(crate) fn spawn(
    balancing: &Balancing,
    client: &Client,
    namespace: &str,
    (permit, told): (&Permit, &Events),
    tasks: &mut JoinSet<()>,
) -> Option<UnboundedSender<atoll_lb::controller::Event>> {
    let (events, inbox) = unbounded_channel();
    let builtin = |pool: &Pool| {
        let host = Arc::new(LeadingHub::new(client.clone(), namespace, permit.clone(), events.downgrade()));
        BuiltIn::new(client.clone(), namespace, pool.clone(), host)
    };
    let provider: Arc<dyn Provider> = match balancing {
        Balancing::Off => return None,
        Balancing::BuiltIn(pool) => Arc::new(builtin(pool)),
        Balancing::Limited(pool, most) => Arc::new(builtin(pool).per_namespace(Some(*most))),
        Balancing::Provider(provider) => Arc::clone(provider),
    };
    let writer = Arc::new(Writer::new(client.clone(), permit.clone(), told.clone()));
    tasks.spawn(atoll_lb::controller::run(provider, writer, inbox));
    Some(events)
}
