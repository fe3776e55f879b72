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

/// The address that a hub's health and metrics are served on, on its own machine.
const HEALTH: &str = "0.0.0.0:9090";

/// The `atoll` program and the hub's API that it is pointed at.
#[derive(Debug, Clone)]
pub struct Atoll {
    binary: PathBuf,
    kubeconfig: PathBuf,
    hub: Bystander,
    /// Where a hub with an API of its own keeps its data.
    data_dir: Option<PathBuf>,
}

/// Which API a hub keeps its state in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubApi {
    /// That of the first cluster.
    Cluster,
    /// Its own.
    Own,
}

impl HubApi {
    /// What `ATOLL_LAB_HUB_API` says: `own`, or `cluster`, which is also what nothing means.
    pub fn of_environment() -> Self {
        match std::env::var("ATOLL_LAB_HUB_API").as_deref() {
            Ok("own") => Self::Own,
            _ => Self::Cluster,
        }
    }
}

/// The port of a hub's own API.
const OWN_API: u16 = 6443;

impl Atoll {
    /// `binary`, with the API of `cluster` as the hub's, run on the machine of the bystander `hub`.
    pub fn new(binary: &Path, cluster: &Cluster, hub: &Bystander) -> Result<Self> {
        there_is(binary)?;
        let kubeconfig = hub.machine().dir().join("hub.kubeconfig");
        write_private(&kubeconfig, cluster.kubeconfig())?;
        Ok(Self { binary: binary.to_owned(), kubeconfig, hub: hub.clone(), data_dir: None })
    }

    /// `binary`, with an API of the hub's own, run on the machine of the bystander `hub`. There is a kubeconfig once it ran.
    pub fn with_own_api(binary: &Path, hub: &Bystander) -> Result<Self> {
        there_is(binary)?;
        let data_dir = hub.machine().dir().join("atoll");
        let kubeconfig = data_dir.join("kubeconfig");
        Ok(Self { binary: binary.to_owned(), kubeconfig, hub: hub.clone(), data_dir: Some(data_dir) })
    }

    /// As [`Atoll::new`] or [`Atoll::with_own_api`].
    pub fn on(api: HubApi, binary: &Path, cluster: &Cluster, hub: &Bystander) -> Result<Self> {
        match api {
            HubApi::Cluster => Self::new(binary, cluster, hub),
            HubApi::Own => Self::with_own_api(binary, hub),
        }
    }

    /// Waits until a hub that was started has its API: at once if that is another's.
    pub async fn has_api(&self) -> Result<()> {
        if self.data_dir.is_none() {
            return Ok(());
        }
        until(Deadline::after(Duration::from_secs(30), "the hub serves its API"), async || {
            Ok(match self.run(&["clusters", "-o", "json"]).await {
                Ok(output) if output.status.success() => Ok(()),
                Ok(output) => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
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

    /// Starts a hub; its log is `logs/<log>.log` of the machine.
    pub fn start_hub(&self, log: &str, more: &[&str]) -> Result<Process> {
        let mut argv: Vec<String> = vec![self.binary.display().to_string(), "hub".to_owned()];
        match &self.data_dir {
            None => argv.extend(["--kubeconfig".to_owned(), self.kubeconfig.display().to_string()]),
            Some(data_dir) => argv.extend([
                "--data-dir".to_owned(),
                data_dir.display().to_string(),
                "--api-address".to_owned(),
                format!("{}:{OWN_API}", self.hub.addresses().v4),
            ]),
        }
        if !more.contains(&"--metrics-address") {
            argv.extend(["--metrics-address", HEALTH].map(str::to_owned));
        }
        argv.extend(more.iter().map(|&word| word.to_owned()));
        self.hub.machine().spawn(log, &argv)
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

fn there_is(binary: &Path) -> Result<()> {
    if binary.is_file() {
        return Ok(());
    }
    Err(Error::refused(
        format!("there is no program {}", binary.display()),
        "build it first: cargo build --workspace",
    ))
}

/// Where `atoll` lies when it was built together with the program that is running.
pub fn beside(program: &Path) -> PathBuf {
    program.with_file_name("atoll")
}

impl Lab {
    /// A hub on the API of the first cluster, in the bystander `hub`, with every cluster joined and Ready.
    pub async fn clusterset(&self, binary: &Path) -> Result<(Atoll, Process)> {
        self.clusterset_on(HubApi::of_environment(), binary).await
    }

    /// The same, with the hub's state in the API that is named.
    pub async fn clusterset_on(&self, api: HubApi, binary: &Path) -> Result<(Atoll, Process)> {
        let atoll = Atoll::on(api, binary, self.member(1), self.bystander("hub"))?;
        let hub = atoll.start_hub("hub", &[])?;
        atoll.has_api().await?;
        for cluster in self.clusters() {
            atoll.join(cluster).await?;
        }
        atoll.all_ready(self.clusters()).await?;
        Ok((atoll, hub))
    }
}
