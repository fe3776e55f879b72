//! `--encryption-key-file`: what the data of a hub and its backups are encrypted with.

use std::path::PathBuf;

use atoll_kubeapi::encryption::Keys;
use clap::Args;

/// The key file.
#[derive(Args, Debug)]
pub(super) struct Encryption {
    /// File with the keys that encrypt the data directory's store and its backups, one per line; the first encrypts [default: none].
    #[arg(long, value_name = "FILE", env = "ATOLL_ENCRYPTION_KEY_FILE")]
    encryption_key_file: Option<PathBuf>,
}

impl Encryption {
    pub(super) fn keys(&self) -> anyhow::Result<Keys> {
        match &self.encryption_key_file {
            Some(path) => Ok(Keys::read(path)?),
            None => Ok(Keys::default()),
        }
    }
}
