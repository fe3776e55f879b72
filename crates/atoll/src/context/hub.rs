//! Which API is the hub's.

use std::path::PathBuf;

use clap::Args;

/// Which API is the hub's; as in kubectl.
#[derive(Args, Debug, Clone)]
pub(crate) struct HubApi {
    /// Kubeconfig of the hub's API [default: the one in the data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Data directory of a hub with an API server of its own [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// Namespace in the hub's API for Atoll's credentials and state.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_hub::options::NAMESPACE)]
    pub(crate) namespace: String,
}

impl HubApi {
    /// The data directory of the hub's own API server; none if another API is used.
    pub(crate) fn own_data_dir(&self) -> Option<PathBuf> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            return None;
        }
        // A hub in a pod has a cluster's API at hand, and often no disk to keep.
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        match &self.data_dir {
            Some(data_dir) => Some(data_dir.clone()),
            None if in_pod => None,
            None => crate::commands::hub::default_data_dir(),
        }
    }

    pub(crate) async fn config(&self) -> Result<kube::Config, atoll_hub::connect::ConnectError> {
        let own = self.own_data_dir().map(|data_dir| data_dir.join("kubeconfig"));
        // By default, a hub's own API comes before the current context of kubectl.
        let own = own.filter(|file| self.data_dir.is_some() || file.is_file());
        // Without any of these, the sandbox of `atoll up` is meant.
        let by_default = self.kubeconfig.is_none() && self.context.is_none() && self.data_dir.is_none();
        let sandbox = super::sandbox::kubeconfig(|key| std::env::var_os(key)).filter(|file| {
            by_default && own.is_none() && std::env::var_os("KUBECONFIG").is_none() && file.is_file()
        });
        let own = own.or(sandbox);
        let file = self.kubeconfig.as_deref().or(own.as_deref());
        atoll_hub::connect::config(file, self.context.as_deref()).await
    }

    /// The kubeconfig of the sandbox whose hub is meant, if one is: it has a context for every cluster.
    pub(crate) fn sandbox(&self) -> Option<PathBuf> {
        if self.context.is_some() || self.data_dir.is_some() {
            return None;
        }
        match &self.kubeconfig {
            Some(file) => file.parent().is_some_and(super::sandbox::is_sandbox).then(|| file.clone()),
            None => super::sandbox::of_environment(
                |key| std::env::var_os(key),
                super::sandbox::is_sandbox,
                std::path::Path::is_file,
            ),
        }
    }

    pub(crate) async fn client(&self) -> Result<kube::Client, atoll_hub::connect::ConnectError> {
        atoll_hub::connect::client(self.config().await?)
    }
}
