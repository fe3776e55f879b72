//! The clusters to measure on, and what the caller can do that kubeconfigs can't: restart the hub, read audit logs.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, LocalBoxFuture};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::error::{Doing, Error};

/// A cluster by its kubeconfig.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// How the report calls it.
    pub name: String,
    /// The text of a kubeconfig.
    pub kubeconfig: String,
    /// The context in it; its current one if absent.
    pub context: Option<String>,
}

/// Where to measure.
pub struct Environment {
    /// The cluster that exports and changes.
    pub source: Cluster,
    /// Other clusters that import, at least one; the first is the one that is watched.
    pub importers: Vec<Cluster>,
    /// The hub's API, where the intent lies there.
    pub hub_api: Option<Cluster>,
    /// The API that explains services, where questions are to be asked.
    pub questions: Option<Cluster>,
    /// The hub's process. Without it there are no restarts, and no memory or CPU in the report.
    pub hub: Option<Arc<dyn Hub>>,
    /// The clusters' audit logs. Without them, no requests per change in the report.
    pub audits: Vec<Arc<dyn Audit>>,
    /// Hears what is being done.
    pub progress: Arc<dyn Fn(&str) + Send + Sync>,
}

/// The hub, where the caller can restart it.
pub trait Hub: Send + Sync {
    /// Its process on this host; `None` while it does not run.
    fn pid(&self) -> Option<u32>;
    /// Ends it politely, and returns when it is gone.
    fn stop(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Ends it by SIGKILL, and returns when it is gone.
    fn kill(&self) -> BoxFuture<'_, Result<(), String>>;
    /// Starts it, and need not wait for anything.
    fn start(&self) -> BoxFuture<'_, Result<(), String>>;
}

/// An API server's audit log.
pub trait Audit: Send + Sync {
    /// The cluster's name.
    fn cluster(&self) -> &str;
    /// Records what the API server gets from now on.
    fn record(&self) -> Result<Box<dyn Recording>, String>;
}

/// A part of an audit log, from some moment on.
pub trait Recording: Send + Sync {
    /// Every request that was answered before this call.
    fn requests(&self) -> LocalBoxFuture<'_, Result<Vec<Request>, String>>;
}

/// A request that an API server got.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Request {
    /// `update`, …
    pub verb: String,
    /// `endpointslices`, …
    pub resource: String,
    /// `status`, or empty.
    pub subresource: String,
    /// Empty outside namespaces.
    pub namespace: String,
    /// Empty for lists, watches and creations under a generated name.
    pub name: String,
    /// Who asked.
    pub user: String,
}

impl Cluster {
    /// A client that retries nothing by itself: what takes long shall be seen to.
    pub(crate) async fn client(&self) -> Result<kube::Client, Error> {
        let unusable = |why: String| Error::Kubeconfig { cluster: self.name.clone(), why };
        let parsed = Kubeconfig::from_yaml(&self.kubeconfig).map_err(|error| unusable(error.to_string()))?;
        let chosen = KubeConfigOptions { context: self.context.clone(), ..KubeConfigOptions::default() };
        let mut config = kube::Config::from_custom_kubeconfig(parsed, &chosen)
            .await
            .map_err(|error| unusable(error.to_string()))?;
        config.connect_timeout = Some(Duration::from_secs(5));
        config.default_retry = false;
        kube::Client::try_from(config).doing(|| format!("make a client for {}", self.name))
    }
}
