//! `atoll member`: stops and starts members of a sandbox.

use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Subcommand};
use tokio::io::AsyncBufReadExt;

use crate::commands::up::control::{self, Command, Reply};
use crate::commands::up::state::Dir;
use crate::failure::Failure;
use crate::progress;

/// Stop or start one member of `atoll up`, to try out an outage.
#[derive(Args)]
#[command(after_help = "Examples:
  # Stop a member: its API, pods and DNS are gone
  atoll member stop member1

  # Start it again with its state
  atoll member start member1")]
pub(crate) struct Member {
    #[command(subcommand)]
    what: What,
    /// Directory of the sandbox [default: that of $KUBECONFIG, or ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR", global = true)]
    dir: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// Stop a member, as if its machines were switched off.
    #[command(after_help = "Examples:
  # Stop a member: its API, pods and DNS are gone
  atoll member stop member1")]
    Stop {
        /// Name of the member.
        name: String,
    },
    /// Start a member again, with its state.
    #[command(after_help = "Examples:
  # Start a stopped member
  atoll member start member1")]
    Start {
        /// Name of the member.
        name: String,
    },
}

impl Member {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let dir = Dir::existing(self.dir)?;
        let (name, command, done) = match self.what {
            What::Stop { name } => (name.clone(), Command::Stop(name), "stopped"),
            What::Start { name } => (name.clone(), Command::Start(name), "started"),
        };
        let mut stream = control::send(&dir, &command).await?;
        let mut line = String::new();
        let read = progress::announce_if_slow("waiting for the sandbox", stream.read_line(&mut line)).await?;
        if read == 0 {
            anyhow::bail!("the sandbox has stopped");
        }
        match serde_json::from_str(&line).context("the sandbox runs another version of atoll")? {
            Reply::Done => eprintln!("`{name}` is {done}"),
            Reply::Refused(why) => {
                return Err(Failure::usage(&why, "list the members with `atoll clusters`").into());
            }
            Reply::Answer { .. } | Reply::Failed { .. } => {
                anyhow::bail!("unexpected response from the sandbox: {line}")
            }
        }
        Ok(())
    }
}
