//! `bench policies`: how fast templates in the hub become copies, on two members and a hub that are only an API each.

use super::environment::{SeparateHub, progress};
use atoll_bench::Environment;
use atoll_bench::policies::{Flags, policies};
use atoll_lab::cli::Format;
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args)]
pub(super) struct Policies {
    #[command(flatten)]
    flags: Flags,
    /// The `atoll` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and to remove; one of this name that is up is removed first.
    #[arg(long, default_value = "bench")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Policies {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let separate = SeparateHub::start(&self.name, self.binary).await?;
        let environment = Environment {
            source: separate.hub_api(),
            importers: separate.members(),
            hub_api: None,
            questions: None,
            hub: Some(Arc::clone(&separate.hub)),
            audits: separate.audits(),
            progress: progress(),
        };
        let report = Box::pin(policies(self.flags.options(), environment)).await?;
        self.output.print(&report, ToString::to_string)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}
