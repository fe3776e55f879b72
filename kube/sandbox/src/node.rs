//! The one node of a member: takes its pods, runs them, says how they are.
//!
//! ```text
//!   Pods ──watch──▶ keeper ──▶ worker, one per pod ──▶ lifecycle (decides) ──▶ programs
//!                                  │                                              │
//!                      status ◀────┘              Runtime: logs, exec, attach ◀───┘
//! ```
//!
//! The API is given a [`Runtime`] before there is a node ([`atoll_kubeapi::Options::pods`]); the node is then started on the
//! API with that runtime. Everything ends when the [`Node`] is dropped, processes too.

mod addresses;
mod environment;
mod events;
mod keeper;
mod lifecycle;
mod probe;
mod register;
mod runtime;
mod spec;
mod status;
mod worker;

pub use runtime::Runtime;

use crate::block::Block;
use crate::network::{Dialer, Gone, Network, Resolve, alive};
use crate::programs::Confinement;
use crate::proxy::{self, Listening, Proxy};
use addresses::Addresses;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::Client;
use lifecycle::Backoff;
use runtime::PodKey;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// What a node is made of.
pub struct NodeOptions {
    /// The member's name; its node is `<member>-node`.
    pub member: String,
    /// Its addresses.
    pub block: Block,
    /// Its API, as an administrator.
    pub client: Client,
    /// The node's zone; the member's name if there is none.
    pub zone: Option<String>,
    /// The cluster's DNS.
    pub resolver: Arc<dyn Resolve>,
    /// The sockets of all members of this process.
    pub network: Network,
    /// What the API was given.
    pub runtime: Arc<Runtime>,
    /// How long a container that ended twice waits; doubled each time. Ten seconds by default.
    pub backoff: Option<Duration>,
    /// What keeps `process:` pods from what is not theirs.
    pub confinement: Confinement,
}

impl NodeOptions {
    /// A node without DNS, on a network of its own.
    pub fn new(member: impl Into<String>, block: Block, client: Client, runtime: Arc<Runtime>) -> Self {
        Self {
            member: member.into(),
            block,
            client,
            zone: None,
            resolver: Arc::new(crate::network::NoNames),
            network: Network::new(),
            runtime,
            backoff: None,
            confinement: Confinement::default(),
        }
    }
}

/// A node that runs.
pub struct Node {
    shared: Arc<Shared>,
    proxy: Proxy,
    tasks: JoinSet<()>,
    gone: Gone,
    proxy_runs: proxy::Running,
}

/// Why a node does not start.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// The API does not take it.
    #[error("cannot register node {name}: {source}")]
    Register {
        /// The node's name.
        name: String,
        /// What the API says.
        source: Box<kube::Error>,
    },
}

/// What all pods of a node share.
struct Shared {
    name: String,
    block: Block,
    client: Client,
    network: Network,
    dialer: Dialer,
    runtime: Arc<Runtime>,
    addresses: Mutex<Addresses>,
    timing: spec::Timing,
    confinement: Confinement,
}

impl Node {
    /// Registers the node and begins to run what is there, and what comes.
    ///
    /// # Errors
    /// The API does not answer.
    pub async fn start(options: NodeOptions) -> Result<Self, NodeError> {
        let name = format!("{}-node", options.member);
        let zone = options.zone.unwrap_or(options.member);
        register::register(&options.client, &name, &zone, options.block)
            .await
            .map_err(|source| NodeError::Register { name: name.clone(), source: Box::new(source) })?;
        let proxy = Proxy::new(name.as_str(), zone);
        let proxy_runs = proxy.start(&options.client, &options.network);
        let dialer = Dialer::new(options.network.clone(), proxy.clone(), options.resolver);
        let mut backoff = Backoff::default();
        if let Some(first) = options.backoff.and_then(|first| SignedDuration::try_from(first).ok()) {
            backoff.first = first;
        }
        let shared = Arc::new(Shared {
            name,
            block: options.block,
            client: options.client,
            network: options.network,
            dialer,
            runtime: options.runtime,
            addresses: Mutex::new(Addresses::new(&options.block.pods())),
            timing: spec::Timing { backoff },
            confinement: options.confinement,
        });
        let mut tasks = JoinSet::new();
        let (alive, gone) = alive();
        tasks.spawn(keeper::run(Arc::clone(&shared), alive));
        Ok(Self { shared, proxy, tasks, gone, proxy_runs })
    }

    /// The node's name.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// What answers for its pods.
    pub fn pods(&self) -> Arc<dyn atoll_kubeapi::pods::Pods> {
        Arc::clone(&self.shared.runtime) as Arc<dyn atoll_kubeapi::pods::Pods>
    }

    /// Reaches others as a pod in `namespace` on the node's own network would.
    pub fn dialer(&self, namespace: &str) -> Dialer {
        self.shared.dialer.from_pod(namespace, Some(*self.shared.block.api().ip()))
    }

    /// Where tools of this machine reach the member's Services.
    pub fn listening(&self) -> Vec<Listening> {
        self.proxy.listening()
    }

    /// Ends everything and waits until it has ended: sockets are free and processes are gone.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        self.gone.wait().await;
        self.proxy_runs.stop().await;
    }
}

impl Shared {
    /// The pod's address: the one that it had, or a new one. Nothing if all are taken.
    fn address(&self, pod: &Pod) -> Option<Ipv4Addr> {
        let uid = pod.metadata.uid.as_deref().unwrap_or_default();
        let mut addresses = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let known = spec::address(pod).filter(|known| addresses.claim(*known, uid));
        known.or_else(|| addresses.give(uid))
    }
}

fn key(pod: &Pod) -> PodKey {
    let metadata = &pod.metadata;
    PodKey {
        namespace: metadata.namespace.clone().unwrap_or_default(),
        name: metadata.name.clone().unwrap_or_default(),
        uid: metadata.uid.clone().unwrap_or_default(),
    }
}
