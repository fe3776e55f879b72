//! `atoll hub restore`: makes a data directory what it was when a backup was taken.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context;
use atoll_kubeapi::backup;
use clap::Args;

use super::default_data_dir;
use crate::failure::Failure;

/// Make a data directory what it was when a backup was taken.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll hub restore hub-2026-11-15.jsonl --data-dir /var/lib/atoll
  atoll hub restore hub-2026-11-15.jsonl --data-dir /var/lib/atoll --force    the old one stays in restore.old")]
pub(crate) struct Restore {
    /// The backup.
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// The data directory; no hub may run on it [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Replace what is there; it is moved to DIR/restore.old.
    #[arg(long)]
    force: bool,
}

impl Restore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let file =
            File::open(&self.backup).with_context(|| format!("cannot read {}", self.backup.display()))?;
        let data_dir = self.data_dir.clone().or_else(default_data_dir).ok_or_else(Failure::no_data_dir)?;
        let restored = backup::restore(BufReader::new(file), &data_dir, self.force)
            .map_err(|error| Failure::restore(&data_dir, &error))?;
        let backup::Restored { objects, taken_at, revision } = restored;
        println!("{objects} objects of revision {taken_at}; the hub goes on from revision {revision}");
        Ok(())
    }
}
