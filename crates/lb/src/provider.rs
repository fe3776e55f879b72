//! The contract with whoever makes load balancers: four calls about one service at a time, each of which may come again.
//!
//! ```text
//!   controller ─▶ dyn Provider ─┬▶ one that is linked in (Registry)
//!                               └▶ Remote ─gRPC─▶ serve ─▶ dyn Provider, or any other language
//! ```
//! gRPC goes over a Unix socket or over TLS with certificates on both sides (`place`, `connect`, `tls`).
//!
//! A cloud's team implements [`Provider`] and either links it into a binary of its own or runs it as a process with [`serve_unix`] or [`serve_tls`].
//! [`conformance::run`] says whether it keeps to the contract.

pub mod conformance;
mod connect;
mod place;
mod registry;
mod remote;
mod serve;
mod tls;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

pub use place::{Access, RemoteError};
pub use registry::{Registry, RegistryError};
pub use remote::Remote;
pub use serve::{listen_unix, serve, serve_tls, serve_unix};
pub use tls::{TlsError, TlsFiles};
/// Makes `async fn` of a trait usable through a pointer; put it above an `impl Provider`.
pub use tonic::async_trait;
pub use wire::readable;

use crate::desired::Protocol;

/// Which service: stable from the first call to the last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The clusterset that it belongs to.
    pub clusterset: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Of the object: one that was deleted and made anew has another.
    pub uid: String,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// Where clients come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Empty if the service has one only.
    pub name: String,
    /// Streams or datagrams.
    pub protocol: Protocol,
    /// The port.
    pub port: u16,
}

/// One that answers clients.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backend {
    /// Where it listens.
    pub address: SocketAddr,
    /// The name of the port that it answers.
    pub port_name: String,
    /// The member that it is in.
    pub cluster: String,
    /// Empty if not known.
    pub zone: String,
    /// False: it exists, and should get nothing new.
    pub ready: bool,
}

/// The share of one cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Beside other clusters.
    pub weight: u32,
    /// A higher one is used only when no lower one has a ready backend.
    pub tier: u32,
}

/// All that is wanted of the balancer of one service. Always whole.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Spec {
    /// Where clients come in.
    pub ports: Vec<Port>,
    /// Who answers them.
    pub backends: Vec<Backend>,
    /// What each cluster gets, by name.
    pub shares: BTreeMap<String, Share>,
    /// Of the service: where settings of the provider's own are put.
    pub annotations: BTreeMap<String, String>,
    /// How long a client comes back to the same backend.
    pub affinity: Option<Duration>,
    /// Members that can't be reached and have not been heard since the hub started: `backends` has none of theirs, and what the
    /// balancer has of them stays.
    pub unheard: BTreeSet<String>,
}

impl Spec {
    /// No backend answers clients.
    pub fn leads_nowhere(&self) -> bool {
        self.backends.is_empty() && self.unheard.is_empty()
    }
}

/// Where clients reach a balancer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ingress {
    /// An address.
    Ip(IpAddr),
    /// A name.
    Hostname(String),
}

/// How a balancer is. No ingress means: not yet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Status {
    /// Where clients reach it.
    pub ingress: Vec<Ingress>,
}

/// Why a call failed: what kind decides when it is tried again, the text is for users.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct ProviderError {
    /// What kind.
    pub kind: Failure,
    /// What happened and what to do.
    pub text: String,
}

/// What kind of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// It will not get better by itself.
    Lasting,
    /// The same, and the service has no balancer any more: what it had is another's.
    Withdrawn,
    /// It may work the next time.
    Passing,
    /// There was no answer in time.
    NoAnswer,
    /// The provider can't be reached.
    Unreachable,
    /// The answer makes no sense.
    Nonsense,
}

impl ProviderError {
    /// It will not get better by itself: the user has to do something.
    pub fn lasting(text: impl Into<String>) -> Self {
        Self { kind: Failure::Lasting, text: text.into() }
    }

    /// It may work the next time.
    pub fn passing(text: impl Into<String>) -> Self {
        Self { kind: Failure::Passing, text: text.into() }
    }
}

/// Makes load balancers. Every call may come again, and must then have the same outcome as if it had come once.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// What there is for this service.
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError>;
    /// Makes it, or makes it right.
    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError>;
    /// Makes right what is there.
    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError>;
    /// Takes it away; done also if there is nothing.
    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError>;
}
