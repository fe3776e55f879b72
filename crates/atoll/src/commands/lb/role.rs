//! `atoll lb role`: prints the account of a balancer and its rights.

use clap::Args;

use crate::output;

/// Print the manifests of a balancer's account and rights.
///
/// These are a ServiceAccount, a Role that may list and watch the `ConfigMaps` of the hub's namespace, and their binding.
#[derive(Args)]
#[command(after_help = "Examples:
  # Create them in the hub's API; then create a token as you do for others
  atoll lb role | kubectl apply --server-side -f -
  kubectl create token -n atoll-system atoll-lb --duration 8760h")]
pub(super) struct Role {
    /// Name of the ServiceAccount.
    #[arg(long, value_name = "NAME", default_value = atoll_lb_kube::role::ROLE)]
    name: String,
    /// Namespace in the hub's API for Atoll's credentials and state.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_lb_kube::NAMESPACE)]
    namespace: String,
}

impl Role {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        for object in atoll_lb_kube::role::objects(&self.namespace, &self.name) {
            output::text("---\n")?;
            output::yaml(&object)?;
        }
        Ok(())
    }
}
