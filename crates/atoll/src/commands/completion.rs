//! `atoll completion`: prints a completion script.

use clap::{Args, CommandFactory};

use crate::cli::Arguments;
use crate::output;

/// Print a shell completion script.
#[derive(Args)]
#[command(after_help = "Example:\n  source <(atoll completion bash)")]
pub(crate) struct Completion {
    /// The shell.
    shell: clap_complete::Shell,
}

impl Completion {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "atoll", &mut script);
        output::text(&String::from_utf8(script)?)
    }
}
