//! `atoll down`: stops what `atoll up` started.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::Instant;

use crate::commands::up::state::Dir;
use crate::failure::Failure;
use crate::patience;

/// Far more than it takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Stop a sandbox. Its state stays, and `atoll up` goes on from it; --forget takes it away.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll down
  atoll down --dir /tmp/second --forget")]
pub(crate) struct Down {
    /// The directory of the sandbox [default: that of $KUBECONFIG, or ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR")]
    dir: Option<PathBuf>,
    /// Take away what it remembers, too.
    #[arg(long)]
    forget: bool,
}

impl Down {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let dir = Dir::meant(self.dir)?;
        match dir.running()? {
            None => eprintln!("nothing runs in {}", dir.0.display()),
            Some(process) => {
                stop(process)?;
                patience::saying("stopping", gone(&dir, process)).await?;
                eprintln!("stopped; `atoll up` goes on from here");
            }
        }
        if self.forget && dir.0.exists() {
            let _lock = dir.lock()?;
            dir.clear()?;
            eprintln!("forgot what was in {}", dir.0.display());
        }
        Ok(())
    }
}

fn stop(process: u32) -> anyhow::Result<()> {
    let pid = i32::try_from(process).ok().and_then(Pid::from_raw);
    let pid =
        pid.ok_or_else(|| Failure::plain(&format!("{process} is no process"), "see the file `lock`"))?;
    kill_process(pid, Signal::TERM).map_err(|error| {
        Failure::plain(&format!("cannot stop process {process}: {error}"), "it may be another user's")
    })?;
    Ok(())
}

async fn gone(dir: &Dir, process: u32) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    while dir.running()? == Some(process) {
        if Instant::now() > deadline {
            let what = format!("process {process} does not end");
            let hint = format!(
                "see {}; `kill -KILL {process}` ends it, and nothing is lost by that",
                dir.path("log").display()
            );
            return Err(Failure::plain(&what, &hint).into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}
