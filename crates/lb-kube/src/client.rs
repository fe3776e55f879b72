//! A client of the hub's API for a balancer that runs elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
#[error("cannot use the kubeconfig `{}`", path.display())]
pub struct ClientError {
    path: PathBuf,
    source: Box<dyn std::error::Error + Send + Sync>,
}

/// A client for watches of the API that a kubeconfig leads to; by its current context if none is named.
pub async fn client(kubeconfig: &Path, context: Option<&str>) -> Result<Client, ClientError> {
    let bad = |source| ClientError { path: kubeconfig.to_owned(), source };
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let read = Kubeconfig::read_from(kubeconfig).map_err(|error| bad(error.into()))?;
    let config = kube::Config::from_custom_kubeconfig(read, &options).await;
    let mut config = config.map_err(|error| bad(error.into()))?;
    config.connect_timeout = Some(Duration::from_secs(3));
    config.read_timeout = Some(atoll_watch::READ_TIMEOUT);
    config.write_timeout = Some(Duration::from_secs(10));
    config.reset_reader_on_write = true; // from the question on, not from the last answer
    config.default_retry = false; // a watch that fails is started again by its reader
    Client::try_from(config).map_err(|error| bad(error.into()))
}
