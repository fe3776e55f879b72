//! The whole API: what it is made of, how it starts, and the way of one request through it.

pub(crate) mod bootstrap;
mod dispatch;
pub(crate) mod service;

pub use service::Service;

pub(crate) use dispatch::Admitted;
pub(crate) use service::Caller;

use crate::access::admission::Policies;
use crate::access::authn::{TokenAuthenticator, User};
use crate::access::author::Stamping;
use crate::access::filters::RbacCache;
use crate::aggregated::Group;
use crate::controllers::Tasks;
use crate::environment::{Environment, SharedEnvironment, SystemEnvironment};
use crate::flow::Flow;
use crate::http::server::Link;
use crate::pods::Pods;
use crate::resources::addresses::{Addresses, Network};
use crate::resources::registry::{Registry, Served};
use crate::storage::encryption::Keys;
use crate::storage::store::Store;
use std::path::PathBuf;
use std::sync::Arc;

/// A Kubernetes API on a store. Clones are the same API.
#[derive(Clone)]
pub struct Api {
    pub(crate) state: Arc<ApiState>,
    /// Namespaces, CRDs and garbage are looked after until the last clone is dropped.
    _tasks: Arc<Tasks>,
}

/// What every request shares.
pub(crate) struct ApiState {
    pub(crate) store: Store,
    pub(crate) served: Served,
    pub(crate) environment: SharedEnvironment,
    pub(crate) rbac: RbacCache,
    pub(crate) policies: Policies,
    pub(crate) addresses: Addresses,
    pub(crate) tokens: Option<TokenAuthenticator>,
    /// Who may run next.
    pub(crate) flow: Flow,
    /// Held while something is created in a namespace, and exclusively while an empty namespace is deleted.
    pub(crate) namespaces: tokio::sync::RwLock<()>,
    /// Where the store and its keys lie, for backups.
    pub(crate) data_dir: Option<PathBuf>,
    /// Watches show no events from before this revision: it was reached before the first request.
    pub(crate) floor: std::sync::atomic::AtomicU64,
    /// Who runs the pods; without them, pods are only kept.
    pub(crate) pods: Option<Arc<dyn Pods>>,
    /// What backups are encrypted with.
    pub(crate) keys: Keys,
    /// Where requests are noted, if anywhere.
    pub(crate) audit: Option<atoll_audit::Log>,
    /// What `/version` says.
    pub(crate) version: &'static str,
    /// Which objects say who wrote them.
    pub(crate) stamping: Stamping,
}

/// The version of Kubernetes whose behaviour is kept.
pub(crate) const KUBERNETES: &str = "1.36.4";

/// What an API is made of besides its store.
pub struct Options {
    environment: SharedEnvironment,
    tokens: Option<TokenAuthenticator>,
    data_dir: Option<PathBuf>,
    pods: Option<Arc<dyn Pods>>,
    network: Network,
    loopback_endpoints: bool,
    audit: Option<atoll_audit::Log>,
    pub(crate) keys: Keys,
    stamping: Stamping,
    aggregated: Vec<Group>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            environment: SharedEnvironment::new(SystemEnvironment),
            tokens: None,
            data_dir: None,
            pods: None,
            network: Network::default(),
            loopback_endpoints: false,
            audit: None,
            keys: Keys::default(),
            stamping: Stamping::default(),
            aggregated: Vec::new(),
        }
    }
}

impl Options {
    /// Another clock and another source of randomness.
    #[must_use]
    pub fn environment(mut self, environment: impl Environment) -> Self {
        self.environment = SharedEnvironment::new(environment);
        self
    }

    /// The tokens that are accepted; without them, every token is refused.
    #[must_use]
    pub fn tokens(mut self, tokens: TokenAuthenticator) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// The directory of the store and its keys; without it, there are no backups.
    #[must_use]
    pub fn data_dir(mut self, data_dir: impl Into<PathBuf>) -> Self {
        self.data_dir = Some(data_dir.into());
        self
    }

    /// Who runs the pods, and so answers for logs, commands and attaching; without them, those are refused.
    #[must_use]
    pub fn pods(mut self, pods: Arc<dyn Pods>) -> Self {
        self.pods = Some(pods);
        self
    }

    /// The network that Services get their addresses from (10.96.0.0/16 by default), with a prefix of at most
    /// 30 bits.
    #[must_use]
    pub fn service_network(mut self, range: ipnet::Ipv4Net) -> Self {
        self.network = Network::new(range);
        self
    }

    /// What the store of a data directory and its backups are encrypted with; nothing by default.
    #[must_use]
    pub fn encryption(mut self, keys: Keys) -> Self {
        self.keys = keys;
        self
    }

    /// Where requests are noted; nowhere by default.
    #[must_use]
    pub fn audit(mut self, log: Option<atoll_audit::Log>) -> Self {
        self.audit = log;
        self
    }

    /// Which objects say who wrote them; none by default.
    #[must_use]
    pub fn stamping(mut self, stamping: Stamping) -> Self {
        self.stamping = stamping;
        self
    }

    /// Serves a group that other code answers for; none by default.
    #[must_use]
    pub fn aggregated(mut self, group: Group) -> Self {
        self.aggregated.push(group);
        self
    }

    /// Whether endpoints may be loopback addresses (127.0.0.0/8), as they are where clusters live in one process. A real
    /// API server refuses them.
    #[must_use]
    pub fn loopback_endpoints(mut self, allowed: bool) -> Self {
        self.loopback_endpoints = allowed;
        self
    }
}

/// Why an API does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// What every API has (namespaces, default roles) can't be written.
    #[error("cannot prepare the store: {0}")]
    Bootstrap(String),
}

impl Api {
    /// Starts an API on a store: makes what every API has, serves the CRDs that are there, and begins to look after
    /// namespaces, CRDs and garbage. Needs a tokio runtime.
    ///
    /// # Errors
    /// The store can't be written.
    pub async fn start(store: Store, options: Options) -> Result<Self, StartError> {
        let mut registry = Registry::builtin(options.loopback_endpoints);
        options.aggregated.iter().for_each(|group| registry.aggregate(group));
        let state = Arc::new(ApiState {
            addresses: Addresses::of(&store, options.network),
            served: Served::new(registry),
            environment: options.environment,
            rbac: RbacCache::default(),
            policies: Policies::default(),
            tokens: options.tokens,
            flow: Flow::default(),
            data_dir: options.data_dir,
            pods: options.pods,
            audit: options.audit,
            keys: options.keys,
            namespaces: tokio::sync::RwLock::new(()),
            floor: std::sync::atomic::AtomicU64::new(0),
            version: KUBERNETES,
            stamping: options.stamping,
            store,
        });
        state.bootstrap().await.map_err(|error| StartError::Bootstrap(error.to_string()))?;
        state.floor.store(state.store.revision(), std::sync::atomic::Ordering::Relaxed);
        let tasks = Arc::new(Tasks::start(&state));
        Ok(Self { state, _tasks: tasks })
    }

    /// The API for a user that is authenticated already: what `kube::Client::new` takes. No socket is involved.
    pub fn service(&self, user: User) -> Service {
        Service::trusted(self.clone(), user)
    }

    /// The API for its administrator, who may do everything.
    pub fn admin(&self) -> Service {
        self.service(User::authenticated(
            crate::access::pki::ADMIN,
            [crate::access::authn::MASTERS.to_owned()],
        ))
    }

    /// The API for a connection: `certified` is whom a verified client certificate names.
    pub(crate) fn connection(&self, certified: Option<User>, link: Arc<Link>) -> Service {
        Service::remote(self.clone(), certified, link)
    }

    /// The store below.
    pub fn store(&self) -> &Store {
        &self.state.store
    }
}
