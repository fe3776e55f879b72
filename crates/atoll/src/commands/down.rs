//! `atoll down`: stops the sandbox that `atoll up` started.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use crate::commands::up::state::Dir;
use crate::failure::Failure;
use crate::progress;

/// Far more than it takes.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Stop the sandbox that `atoll up` started.
///
/// Its state is kept for the next `atoll up`; --forget deletes it.
#[derive(Args)]
#[command(after_help = "Examples:
  # Stop the sandbox
  atoll down

  # Stop a sandbox in another directory, and delete its state
  atoll down --dir /tmp/second --forget")]
pub(crate) struct Down {
    /// Directory of the sandbox [default: that of $KUBECONFIG, or ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR")]
    dir: Option<PathBuf>,
    /// Delete the state of the sandbox as well.
    #[arg(long)]
    forget: bool,
}

impl Down {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let dir = Dir::existing(self.dir)?;
        match dir.running()? {
            None => eprintln!("no sandbox is running in {}", dir.0.display()),
            Some(process) => {
                stop(process)?;
                progress::announce_if_slow(
                    "waiting for the sandbox to stop",
                    wait_until_stopped(&dir, process),
                )
                .await?;
                eprintln!("stopped; `atoll up` starts it again with its state");
            }
        }
        if self.forget && dir.0.exists() {
            let _lock = dir.lock()?;
            dir.clear()?;
            eprintln!("deleted the state in {}", dir.0.display());
        }
        Ok(())
    }
}

fn stop(process: u32) -> anyhow::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| {
        Failure::plain(
            &format!("invalid process id {process}"),
            "check the file `lock` in the directory of the sandbox",
        )
    })?;
    kill_process(pid, Signal::TERM).map_err(|error| {
        Failure::plain(
            &format!("cannot stop process {process}: {error}"),
            "the process may belong to another user",
        )
    })?;
    Ok(())
}

async fn wait_until_stopped(dir: &Dir, process: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + STOP_TIMEOUT;
    while dir.running()? == Some(process) {
        if Instant::now() > deadline {
            let what = format!("process {process} does not stop");
            let hint = format!(
                "see the log in {}; `kill -KILL {process}` stops it without losing state",
                dir.path("log").display()
            );
            return Err(Failure::plain(&what, &hint).into());
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}
