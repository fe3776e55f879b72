//! Gathers what a person needs to see why something failed: every log, every object, every route.

use crate::cluster::Cluster;
use crate::command::run;
use crate::error::{Doing, Result};
use crate::lab::Lab;
use crate::layout::{make_dir, write_private};
use crate::spec::Kind;
use std::path::Path;
use std::time::Duration;

/// An API that does not answer must not hold up the rest.
const PATIENCE: Duration = Duration::from_secs(10);

impl Lab {
    /// Copies logs and objects of every cluster below `folder`. What can't be had is noted there, not an error.
    pub async fn collect(&self, folder: &Path) -> Result<()> {
        make_dir(folder)?;
        futures_util::future::try_join_all(self.clusters().iter().map(|cluster| gather(cluster, folder)))
            .await?;
        for bystander in self.bystanders() {
            let machine = bystander.machine();
            copy(&machine.dir().join("logs"), &folder.join(machine.name()).join("logs"))?;
        }
        Ok(())
    }
}

async fn gather(cluster: &Cluster, folder: &Path) -> Result<()> {
    let folder = folder.join(cluster.name());
    make_dir(&folder)?;
    copy(&cluster.dir().join("logs"), &folder.join("logs"))?;
    let audit = cluster.dir().join("audit.log");
    if audit.exists() {
        copy_file(&audit, &folder.join("audit.log"))?;
    }
    if cluster.kind() == Kind::Whole {
        copy(&cluster.dir().join("pods"), &folder.join("pods"))?;
    }
    let script = "ip addr; ip route; ip -6 route; nft list ruleset; ps -ef";
    let said = run(cluster.machine().command("sh").args(["-c", script]));
    write_private(
        &folder.join("network.txt"),
        said.map_or_else(|e| e.to_string().into_bytes(), |o| o.stdout),
    )?;
    write_private(&folder.join("objects.yaml"), objects(cluster).await)
}

/// Every object of every kind, as YAML, or why not.
async fn objects(cluster: &Cluster) -> Vec<u8> {
    let kinds = match kubectl(cluster, &["api-resources", "--verbs=list", "-o", "name"]).await {
        Ok(kinds) => String::from_utf8_lossy(&kinds).split_whitespace().collect::<Vec<_>>().join(","),
        Err(why) => return why.into_bytes(),
    };
    kubectl(cluster, &["get", &kinds, "-A", "-o", "yaml", "--ignore-not-found"])
        .await
        .unwrap_or_else(String::into_bytes)
}

async fn kubectl(cluster: &Cluster, arguments: &[&str]) -> Result<Vec<u8>, String> {
    let output = cluster.kubectl().args(arguments).arg("--request-timeout=5s").output();
    match tokio::time::timeout(PATIENCE, output).await {
        Ok(Ok(output)) if output.status.success() => Ok(output.stdout),
        Ok(Ok(output)) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("kubectl did not end within {} s", PATIENCE.as_secs())),
    }
}

/// Copies the files below `from`; a file that goes away meanwhile is left out.
fn copy(from: &Path, to: &Path) -> Result<()> {
    make_dir(to)?;
    for entry in std::fs::read_dir(from).into_iter().flatten().flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&entry.path(), &target)?,
            Ok(kind) if kind.is_file() => copy_file(&entry.path(), &target)?,
            _ => {}
        }
    }
    Ok(())
}

fn copy_file(from: &Path, to: &Path) -> Result<()> {
    match std::fs::copy(from, to) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        outcome => outcome.map(drop).doing(|| format!("copy {} to {}", from.display(), to.display())),
    }
}
