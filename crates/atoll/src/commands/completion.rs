//! `atoll completion`: prints a completion script.

use clap::{Args, CommandFactory};

use crate::cli::Arguments;
use crate::output;

/// Print a shell completion script.
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
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "atoll", &mut script);
        output::text(&String::from_utf8(script)?)
    }
}
