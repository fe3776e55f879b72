//! `atoll hub backup`: copies a data directory, also while a hub runs on it.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufReader, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use atoll_hub::connect;
use atoll_kubeapi::backup::{self, BACKUP_PATH, STORE_FILE, Summary};
use atoll_kubeapi::store::{OpenError, Store};
use clap::Args;
use futures_util::AsyncReadExt;

use super::default_data_dir;
use crate::failure::Failure;

/// Copy a data directory, also while a hub runs on it.
#[derive(Args)]
#[command(after_help = "Example:
  atoll hub backup --data-dir /var/lib/atoll -o hub-2026-11-15.jsonl")]
pub(crate) struct Backup {
    /// The hub's data directory [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// The file to write. It will have the hub's keys and secrets in it.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

impl Backup {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let data_dir = self.data_dir.clone().or_else(default_data_dir).ok_or_else(Failure::no_data_dir)?;
        if !data_dir.join(STORE_FILE).is_file() {
            return Err(Failure::no_data(&data_dir).into());
        }
        let mut part = self.output.clone().into_os_string();
        part.push(".part");
        let part = PathBuf::from(part);
        let summary = match fetch(&data_dir, &part).await {
            Ok(summary) => summary,
            Err(error) => {
                // Half a backup is of no use to anybody.
                let _ = fs::remove_file(&part);
                return Err(error);
            }
        };
        fs::rename(&part, &self.output).with_context(|| format!("cannot write {}", self.output.display()))?;
        println!("{} objects at revision {} in {}", summary.objects, summary.revision, self.output.display());
        Ok(())
    }
}

async fn fetch(data_dir: &Path, part: &Path) -> anyhow::Result<Summary> {
    let written = || format!("cannot write {}", part.display());
    let mut file = private(part).with_context(written)?;
    match Store::open(data_dir.join(STORE_FILE)) {
        Ok(store) => backup::Backup::take(&store, data_dir)?.write_to(&mut file)?,
        Err(OpenError::InUse { .. }) => from_running(data_dir, &mut file).await?,
        Err(error) => return Err(error.into()),
    }
    file.sync_all().with_context(written)?;
    drop(file);
    // What the network or the disk made of it is read back before anybody counts on it.
    Ok(backup::check(BufReader::new(File::open(part).with_context(written)?))?)
}

/// A hub that runs has the data directory to itself: it is asked.
async fn from_running(data_dir: &Path, file: &mut File) -> anyhow::Result<()> {
    let config = connect::config(Some(&data_dir.join("kubeconfig")), None).await?;
    let client = connect::client(config)?;
    let mut request = http::Request::new(Vec::new());
    *request.uri_mut() = http::Uri::from_static(BACKUP_PATH);
    let stream = client.request_stream(request).await.context("the running hub gives no backup")?;
    let mut stream = Box::pin(stream);
    let mut chunk = vec![0; 64 << 10];
    loop {
        let read = stream.read(&mut chunk).await.context("the running hub broke off")?;
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
