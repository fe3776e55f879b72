//! The product on the lab: an `atoll hub` process, and clusters joined to it by the product's own commands.

use crate::cluster::Cluster;
use crate::command::failure;
use crate::error::{Doing, Error, Result};
use crate::lab::{Bystander, Lab};
use crate::layout::write_private;
use crate::process::Process;
use crate::until::{Deadline, until};
use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

/// The address that a hub's health and metrics are served on, in its own place.
const HEALTH: &str = "0.0.0.0:9090";

/// The `atoll` program and the hub's API that it is pointed at.
#[derive(Debug, Clone)]
pub struct Atoll {
    binary: PathBuf,
    kubeconfig: PathBuf,
    hub: Bystander,
}

impl Atoll {
    /// `binary`, with the API of `cluster` as the hub's, run in the place of the bystander `hub`.
    pub fn new(binary: &Path, cluster: &Cluster, hub: &Bystander) -> Result<Self> {
        if !binary.is_file() {
            return Err(Error::refused(
                format!("there is no program {}", binary.display()),
                "build it first: cargo build --workspace",
            ));
        }
        let kubeconfig = hub.place().dir().join("hub.kubeconfig");
        write_private(&kubeconfig, cluster.kubeconfig())?;
        Ok(Self { binary: binary.to_owned(), kubeconfig, hub: hub.clone() })
    }

    /// The kubeconfig of the hub's API.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The program.
    pub fn binary(&self) -> &Path {
        &self.binary
    }

    /// Runs a command of the program to its end, on the host.
    pub async fn run(&self, arguments: &[&str]) -> Result<Output> {
        self.run_with(arguments, Some(&self.kubeconfig)).await
    }

    /// As [`Atoll::must`], for a command that is about `cluster` and not about the hub.
    pub async fn must_on(&self, cluster: &Cluster, arguments: &[&str]) -> Result<Output> {
        let output = self.run_with(arguments, Some(&cluster.dir().join("kubeconfig"))).await?;
        succeeded(arguments, output)
    }

    /// As [`Atoll::must`], for a command that is about no cluster.
    pub async fn must_alone(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.run_with(arguments, None).await?;
        succeeded(arguments, output)
    }

    async fn run_with(&self, arguments: &[&str], kubeconfig: Option<&Path>) -> Result<Output> {
        let mut command = tokio::process::Command::new(&self.binary);
        command.args(arguments).kill_on_drop(true);
        if let Some(kubeconfig) = kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        let line = format!("atoll {}", arguments.join(" "));
        let limit = Duration::from_secs(120);
        let output = tokio::time::timeout(limit, command.output()).await;
        output
            .map_err(|_| Deadline::after(limit, line.clone()).passed("no end"))?
            .doing(|| format!("run `{line}`"))
    }

    /// As [`Atoll::run`], and a bad exit status is an error.
    pub async fn must(&self, arguments: &[&str]) -> Result<Output> {
        let output = self.run(arguments).await?;
        succeeded(arguments, output)
    }

    /// Joins `cluster`.
    pub async fn join(&self, cluster: &Cluster) -> Result<()> {
        let kubeconfig = cluster.dir().join("kubeconfig").display().to_string();
        self.must(&["join", cluster.name(), "--cluster-kubeconfig", &kubeconfig]).await.map(drop)
    }

    /// Starts a hub; its log is `logs/<log>.log` of the place.
    pub fn start_hub(&self, log: &str, more: &[&str]) -> Result<Process> {
        let mut argv: Vec<String> =
            [&*self.binary.to_string_lossy(), "hub", "--kubeconfig", &*self.kubeconfig.to_string_lossy()]
                .map(str::to_owned)
                .to_vec();
        if !more.contains(&"--metrics-address") {
            argv.extend(["--metrics-address", HEALTH].map(str::to_owned));
        }
        argv.extend(more.iter().map(|&word| word.to_owned()));
        self.hub.place().spawn(log, &argv)
    }

    /// Waits until every joined cluster is Ready.
    pub async fn all_ready(&self, clusters: &[Cluster]) -> Result<()> {
        until(Deadline::after(Duration::from_secs(60), "every cluster is Ready"), async || {
            let output = self.must(&["clusters", "-o", "json"]).await;
            let text = match output {
                Ok(output) => String::from_utf8_lossy(&output.stdout).into_owned(),
                Err(error) => return Ok(Err(error.to_string())),
            };
            let listed: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
            let ready = |cluster: &Cluster| {
                let entries = listed.as_array().or_else(|| listed["items"].as_array());
                entries.is_some_and(|entries| {
                    entries.iter().any(|entry| {
                        let name = entry["name"].as_str().or_else(|| entry["metadata"]["name"].as_str());
                        name == Some(cluster.name()) && entry.to_string().contains("ClusterReady")
                    })
                })
            };
            Ok(if clusters.iter().all(ready) { Ok(()) } else { Err(text) })
        })
        .await
    }
}

fn succeeded(arguments: &[&str], output: Output) -> Result<Output> {
    if output.status.success() {
        return Ok(output);
    }
    Err(failure(format!("atoll {}", arguments.join(" ")), &output))
}

/// Where `atoll` lies when it was built together with the program that is running.
pub fn beside(program: &Path) -> PathBuf {
    program.with_file_name("atoll")
}

impl Lab {
    /// A hub on the API of the first cluster, in the bystander `hub`, with every cluster joined and Ready.
    pub async fn clusterset(&self, binary: &Path) -> Result<(Atoll, Process)> {
        let atoll = Atoll::new(binary, self.member(1), self.bystander("hub"))?;
        let hub = atoll.start_hub("hub", &[])?;
        for cluster in self.clusters() {
            atoll.join(cluster).await?;
        }
        atoll.all_ready(self.clusters()).await?;
        Ok((atoll, hub))
    }
}
