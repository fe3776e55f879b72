//! `atoll member`: stops and starts single members of a sandbox.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use tokio::io::AsyncBufReadExt;

use crate::commands::up::control::{self, Ask, Said};
use crate::commands::up::state::Dir;
use crate::failure::Failure;
use crate::patience;

/// Stop or start a single member of `atoll up`, to see what the others make of it.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll member stop member1      its API, its pods and its DNS are gone, as if it were switched off
  atoll member start member1     it comes back with everything it remembers")]
pub(crate) struct Member {
    #[command(subcommand)]
    what: What,
    /// The directory of the sandbox [default: that of $KUBECONFIG, or ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR", global = true)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// Stop it.
    Stop {
        /// Its name.
        name: String,
    },
    /// Start it again.
    Start {
        /// Its name.
        name: String,
    },
}

impl Member {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let dir = Dir::meant(self.dir)?;
        let (name, ask, done) = match self.what {
            What::Stop { name } => (name.clone(), Ask::Stop(name), "stopped"),
            What::Start { name } => (name.clone(), Ask::Start(name), "started"),
        };
        let mut stream = control::ask(&dir, &ask).await?;
        let mut line = String::new();
        let read = patience::saying("waiting for the sandbox", stream.read_line(&mut line)).await?;
        if read == 0 {
            anyhow::bail!("the sandbox has ended");
        }
        match serde_json::from_str(&line).context("the sandbox is of another version of atoll")? {
            Said::Done => eprintln!("`{name}` is {done}"),
            Said::Refused(why) => {
                return Err(Failure::usage(&why, "`atoll clusters` shows the members").into());
            }
            Said::Answer { .. } | Said::Failed { .. } => {
                anyhow::bail!("the sandbox said something else: {line}")
            }
        }
        Ok(())
    }
}
