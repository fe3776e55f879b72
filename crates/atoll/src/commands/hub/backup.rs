//! `atoll hub backup`: backs up a data directory, also while the hub is running.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_hub::connect;
use atoll_kubeapi::backup::{self, BACKUP_PATH, STORE_FILE, Summary};
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::store::{OpenError, Store};
use clap::Args;
use futures_util::AsyncReadExt;

use super::default_data_dir;
use super::encryption::Encryption;
use crate::failure::Failure;

/// Back up a hub's data directory, also while the hub is running.
#[derive(Args)]
#[command(after_help = "Examples:
  # Back up the data of a hub
  atoll hub backup --data-dir /var/lib/atoll -o hub-2026-11-15.jsonl")]
pub(crate) struct Backup {
    /// Data directory of the hub [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// File to write. It contains the hub's keys and Secrets, encrypted if the hub has a key file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file if it is there.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    encryption: Encryption,
}

impl Backup {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let data_dir = self.data_dir.clone().or_else(default_data_dir).ok_or_else(Failure::no_data_dir)?;
        if !data_dir.join(STORE_FILE).is_file() {
            return Err(Failure::no_data(&data_dir).into());
        }
        if !self.force && self.output.exists() {
            let what = format!("{} exists already", self.output.display());
            return Err(Failure::usage(&what, "choose another file, or overwrite it with --force").into());
        }
        let keys = self.encryption.keys()?;
        let mut part = self.output.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let summary = match fetch(&data_dir, &part, &keys).await {
            Ok(summary) => summary,
            Err(error) => {
                // Half a backup is of no use.
                let _ = fs::remove_file(&part);
                return Err(error);
            }
        };
        fs::rename(&part, &self.output).with_context(|| format!("cannot write {}", self.output.display()))?;
        println!(
            "backed up {} objects at revision {} to {}",
            summary.objects,
            summary.revision,
            self.output.display()
        );
        Ok(())
    }
}

async fn fetch(data_dir: &Path, part: &Path, keys: &Keys) -> anyhow::Result<Summary> {
    let written = || format!("cannot write {}", part.display());
    let mut file = private(part).with_context(written)?;
    match Store::open_as_it_is(data_dir.join(STORE_FILE), keys) {
        Ok(store) => backup::Backup::take(&store, data_dir, keys)?.write_to(&mut file)?,
        Err(OpenError::InUse { .. }) => from_running(data_dir, &mut file).await?,
        Err(error) => return Err(error.into()),
    }
    file.sync_all().with_context(written)?;
    drop(file);
    // The file is read back, so that a fault of the network or the disk is found now.
    Ok(backup::check(BufReader::new(File::open(part).with_context(written)?), keys)?)
}

/// A hub that runs has the data directory to itself: it is asked.
async fn from_running(data_dir: &Path, file: &mut File) -> anyhow::Result<()> {
    let config = connect::config(Some(&data_dir.join("kubeconfig")), None).await?;
    let client = connect::client(config)?;
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = http::Uri::from_static(BACKUP_PATH);
    let stream = client.request_stream(request).await.context("the running hub refused the backup")?;
    let mut stream = Box::pin(stream);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = stream.read(&mut chunk).await.context("the connection to the running hub was lost")?;
        if read == 0 {
            return Ok(());
        }
        file.write_all(&chunk[..read])?;
    }
}

fn private(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}
