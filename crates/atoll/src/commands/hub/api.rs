//! Which API `atoll hub` runs on: its own, unless another one is named.

use std::path::PathBuf;

use clap::Args;

/// Which API the hub runs on. `$KUBECONFIG` alone is not enough: whoever has a cluster at hand does not mean to make a hub of it.
#[derive(Args, Debug, Clone)]
pub(super) struct ServedApi {
    /// Kubeconfig of an existing API server to use as the hub's API; $KUBECONFIG alone is not used.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    context: Option<String>,
    /// Data directory of the hub's own API server [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR", conflicts_with_all = ["kubeconfig", "context"])]
    data_dir: Option<PathBuf>,
    /// Namespace in the hub's API for Atoll's credentials and state.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_hub::options::NAMESPACE)]
    pub(super) namespace: String,
}

impl ServedApi {
    /// The data directory of the hub's own API server; none if another API is used.
    pub(super) fn own_data_dir(&self) -> Option<PathBuf> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            return None;
        }
        // A hub in a pod has a cluster's API at hand, and often no disk to keep.
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        match &self.data_dir {
            Some(data_dir) => Some(data_dir.clone()),
            None if in_pod => None,
            None => super::default_data_dir(),
        }
    }

    /// The API that is there already.
    pub(super) async fn config(&self) -> Result<kube::Config, atoll_hub::connect::ConnectError> {
        atoll_hub::connect::config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}
