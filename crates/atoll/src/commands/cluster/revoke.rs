//! `atoll cluster revoke`: takes back the tokens that the hub has for a member.

use std::path::PathBuf;

use atoll_hub::connect;
use clap::Args;
use clap_complete::ArgValueCandidates;
use serde_json::json;

use crate::complete;
use crate::context::HubApi;
use crate::failure::Failure;
use crate::logs;
use crate::output::Format;

/// Revoke all tokens that the hub has for a member.
///
/// The hub's account in the member is deleted. API servers may accept a revoked token for about 10 more seconds. The hub
/// reaches the member again after another `atoll join`; until then its objects in the member stay as they are.
#[derive(Args)]
#[command(after_help = "Examples:
  # Revoke the tokens for a member, with the hub's own rights there
  atoll cluster revoke paris

  # Revoke them with the rights of an administrator of the member
  atoll cluster revoke paris --cluster-kubeconfig paris.yaml

  # Give the hub a new token
  atoll join paris --cluster-kubeconfig paris.yaml")]
pub(crate) struct Revoke {
    /// Name of the member.
    #[arg(add = ArgValueCandidates::new(complete::clusters))]
    name: String,
    /// Kubeconfig of the cluster [default: the hub's own credentials].
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig of the cluster [default: the current context].
    #[arg(long, value_name = "CONTEXT", requires = "cluster_kubeconfig")]
    cluster_context: Option<String>,
    #[command(flatten)]
    hub: HubApi,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Revoke {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::warnings_only();
        let found = self.hub.find().await?;
        let hub = found.client()?;
        let config = match &self.cluster_kubeconfig {
            Some(file) => connect::config(Some(file), self.cluster_context.as_deref()).await?,
            None => {
                let reached = atoll_hub::reach::member(&hub, &self.name).await;
                reached.map_err(|error| Failure::reach(&self.name, &error).at(&found.place.shown()))?
            }
        };
        let member = connect::client(config)?;
        let revoked = atoll_hub::revoke::revoke(&hub, &self.hub.namespace, &member).await;
        let revoked =
            revoked.map_err(|error| Failure::revoke(&self.name, &error).at(&found.place.shown()))?;
        let result = json!({ "cluster": self.name, "revoked": revoked.account });
        let name = &self.name;
        let words = || match revoked.account {
            true => format!(
                "revoked all tokens for `{name}`\nto use it again, run `atoll join {name} --cluster-kubeconfig FILE`\n"
            ),
            false => format!("the hub has no account in `{name}`, so no token counts there\n"),
        };
        self.output.print(words, &result)
    }
}
