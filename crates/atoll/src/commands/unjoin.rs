//! `atoll unjoin`: makes a member leave.

use std::time::Duration;

use clap::Args;

use crate::cli::{HubApi, duration};
use crate::failure::Failure;
use crate::{logs, patience};

/// Make a member leave: the others lose its endpoints, then the hub takes away what it wrote there, and its rights.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll unjoin paris
  atoll unjoin paris --force       it is gone for good: forget it")]
pub(crate) struct Unjoin {
    /// The member's name.
    name: String,
    #[command(flatten)]
    hub: HubApi,
    /// Do not clean the member. What it holds of ours stays there.
    #[arg(long)]
    force: bool,
    /// How long all of it may take.
    #[arg(long, default_value = "60s", value_parser = duration)]
    timeout: Duration,
}

impl Unjoin {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::talk();
        let hub = self.hub.client().await?;
        let waiting = format!(
            "waiting until the hub has cleaned `{}`, at most {} s",
            self.name,
            self.timeout.as_secs()
        );
        let leaving = atoll_hub::unjoin::unjoin(&hub, &self.name, self.force, self.timeout);
        patience::saying(&waiting, leaving).await.map_err(|error| Failure::unjoin(&self.name, &error))?;
        eprintln!("`{}` has left", self.name);
        Ok(())
    }
}
