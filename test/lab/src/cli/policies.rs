//! `lab bench policies`: how fast templates in the hub become copies, on two members and a hub that are only an API each.

use super::measured::{Apart, progress};
use super::output::Format;
use atoll_bench::Environment;
use atoll_bench::policies::{Flags, policies};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args)]
pub(super) struct Policies {
    #[command(flatten)]
    flags: Flags,
    /// The product; by default the `atoll` beside this program.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and take down; one of this name that is up goes first.
    #[arg(long, default_value = "bench")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Policies {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let apart = Apart::start(&self.name, self.binary).await?;
        let environment = Environment {
            source: apart.hub_api(),
            importers: apart.members(),
            hub_api: None,
            hub: Some(Arc::clone(&apart.hub)),
            audits: apart.audits(),
            progress: progress(),
        };
        let report = Box::pin(policies(self.flags.options(), environment)).await?;
        self.output.print_policies(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}
