//! `atoll unjoin`: removes a member from the clusterset.

use std::time::Duration;

use clap::Args;
use clap_complete::ArgValueCandidates;

use crate::complete;
use crate::context::HubApi;
use crate::failure::Failure;
use crate::{logs, progress};

/// Remove a member from the clusterset.
///
/// The other members lose its endpoints. Then the hub deletes what it wrote to the member, and its own account there.
#[derive(Args)]
#[command(after_help = "Examples:
  # Remove a member
  atoll unjoin paris

  # Remove a member that no longer exists
  atoll unjoin paris --force")]
pub(crate) struct Unjoin {
    /// Name of the member.
    #[arg(add = ArgValueCandidates::new(complete::clusters))]
    name: String,
    #[command(flatten)]
    hub: HubApi,
    /// Do not clean up in the member. Objects that the hub created there are left behind.
    #[arg(long)]
    force: bool,
    /// How long to wait for the hub to finish.
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = atoll_duration::parse)]
    timeout: Duration,
}

impl Unjoin {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::warnings_only();
        let found = self.hub.find().await?;
        let hub = found.client()?;
        let waiting = format!(
            "waiting for the hub to clean up `{}`, for up to {} s",
            self.name,
            self.timeout.as_secs()
        );
        let leaving =
            atoll_hub::unjoin::unjoin(&hub, &self.hub.namespace, &self.name, self.force, self.timeout);
        progress::announce_if_slow(&waiting, leaving)
            .await
            .map_err(|error| Failure::unjoin(&self.name, &error).at(&found.place.shown()))?;
        eprintln!("`{}` left the clusterset", self.name);
        Ok(())
    }
}
