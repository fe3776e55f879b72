//! `atoll completion`: prints a completion script.

use clap::Args;

use crate::{complete, output};

/// Print a shell completion script.
///
/// Names of members, services and namespaces are completed too: the script asks this program, and that asks the hub.
#[derive(Args)]
#[command(after_help = "Examples:
  # Load completions into the current shell
  source <(atoll completion bash)

  # Load them in every new shell
  echo 'source <(atoll completion bash)' >> ~/.bashrc")]
pub(crate) struct Completion {
    /// Shell.
    shell: clap_complete::Shell,
}

impl Completion {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        output::text(&complete::script(&self.shell.to_string())?)
    }
}
