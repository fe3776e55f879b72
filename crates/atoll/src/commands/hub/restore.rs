//! `atoll hub restore`: restores a data directory from a backup.

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;

use anyhow::Context;
use atoll_kubeapi::backup;
use clap::Args;

use super::default_data_dir;
use super::encryption::Encryption;
use crate::failure::Failure;

/// Restore a hub's data directory from a backup.
#[derive(Args)]
#[command(after_help = "Examples:
  # Restore into an empty directory
  atoll hub restore hub-2026-11-15.jsonl --data-dir /var/lib/atoll

  # Replace existing data, which is moved to restore.old
  atoll hub restore hub-2026-11-15.jsonl --data-dir /var/lib/atoll --force")]
pub(crate) struct Restore {
    /// Backup file.
    #[arg(value_name = "FILE")]
    backup: PathBuf,
    /// Data directory of the hub, which must be stopped [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Replace existing data; it is moved to DIR/restore.old.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    encryption: Encryption,
}

impl Restore {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let keys = self.encryption.keys()?;
        let file =
            File::open(&self.backup).with_context(|| format!("cannot read {}", self.backup.display()))?;
        let data_dir = self.data_dir.clone().or_else(default_data_dir).ok_or_else(Failure::no_data_dir)?;
        let restored = backup::restore(BufReader::new(file), &data_dir, self.force, &keys)
            .map_err(|error| Failure::restore(&data_dir, &error))?;
        let backup::Restored { objects, taken_at, revision } = restored;
        println!(
            "restored {objects} objects of revision {taken_at}; the hub continues from revision {revision}"
        );
        Ok(())
    }
}
