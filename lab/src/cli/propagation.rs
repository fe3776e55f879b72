//! `lab bench propagation`: the product's benchmark on two clusters that are only an API, and a hub beside them.

use super::output::Format;
use anyhow::Context;
use atoll_bench::{Audit, Environment, Flags, Hub, Recording, Request, Who};
use clap::Args;
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use lab::audit::Recorder;
use lab::clusterset::{Atoll, beside};
use lab::{Cluster, Deadline, Lab, Process, Progress, Spec, until};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

#[derive(Args)]
pub(super) struct Propagation {
    #[command(flatten)]
    flags: Flags,
    /// Measure floor and copier only: what the machine can do. Needs no product.
    #[arg(long)]
    floor_only: bool,
    /// The product; by default the `atoll` beside this program.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and take down; one of this name that is up goes first.
    #[arg(long, default_value = "bench")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Propagation {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        // With fsync, since that is what clusters do: without it the disk's share of every write would be missing.
        let spec = Spec { fsync: true, ..Spec::api_only(&self.name, 2).with_bystander("hub") };
        let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
        let mut options = self.flags.options();
        let hub: Option<Arc<dyn Hub>> = if self.floor_only {
            options.subjects = vec![Who::Floor, Who::Copier];
            install_crds(&lab).await?;
            None
        } else {
            let binary = match self.binary {
                Some(binary) => binary,
                None => beside(&std::env::current_exe().context("where is this program?")?),
            };
            let (atoll, process) = lab.clusterset(&binary).await?;
            Some(Arc::new(LabHub { atoll, process: Mutex::new(process) }))
        };
        let measured = |cluster: &Cluster| atoll_bench::Cluster {
            name: cluster.name().to_owned(),
            kubeconfig: cluster.kubeconfig(),
            context: None,
        };
        let audits = lab.clusters().iter().map(|cluster| Arc::new(Log(cluster.clone())) as Arc<dyn Audit>);
        let environment = Environment {
            source: measured(lab.member(1)),
            importers: lab.clusters()[1..].iter().map(measured).collect(),
            hub,
            audits: audits.collect(),
            progress: Arc::new(|doing| eprintln!("bench: {doing}")),
        };
        let report = Box::pin(atoll_bench::propagation(options, environment)).await?;
        self.output.print_propagation(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}

/// What joining would have installed.
pub(super) async fn install_crds(lab: &Lab) -> anyhow::Result<()> {
    let crds = atoll_api::crds::of_members();
    let crds: Vec<_> = crds.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    for cluster in lab.clusters() {
        cluster.apply(&crds).await?;
        let client = cluster.client().await?;
        until(Deadline::after(Duration::from_secs(30), "the CRDs are served"), async || {
            let known = client.list_api_group_resources("multicluster.x-k8s.io/v1beta1").await;
            Ok(match known {
                Ok(list) if list.resources.iter().any(|kind| kind.name == "serviceimports/status") => Ok(()),
                Ok(list) => Err(format!("{} kinds", list.resources.len())),
                Err(error) => Err(error.to_string()),
            })
        })
        .await?;
    }
    Ok(())
}

/// The hub's process in the lab.
struct LabHub {
    atoll: Atoll,
    process: Mutex<Process>,
}

impl LabHub {
    fn process(&self) -> Process {
        *self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a hub may take to end when it is asked politely.
const GRACE: Duration = Duration::from_secs(30);

impl Hub for LabHub {
    fn pid(&self) -> Option<u32> {
        Some(self.process()).filter(Process::alive).map(|process| process.pid())
    }

    fn stop(&self) -> BoxFuture<'_, Result<(), String>> {
        let process = self.process();
        blocking(move || process.end(GRACE))
    }

    fn kill(&self) -> BoxFuture<'_, Result<(), String>> {
        let process = self.process();
        blocking(move || process.kill())
    }

    fn start(&self) -> BoxFuture<'_, Result<(), String>> {
        let atoll = self.atoll.clone();
        async move {
            let started = blocking(move || atoll.start_hub("hub", &[])).await?;
            *self.process.lock().unwrap_or_else(PoisonError::into_inner) = started;
            Ok(())
        }
        .boxed()
    }
}

fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> lab::Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T, String>> {
    let running = tokio::task::spawn_blocking(work);
    async { running.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string()) }.boxed()
}

/// A cluster's audit log.
struct Log(Cluster);

impl Audit for Log {
    fn cluster(&self) -> &str {
        self.0.name()
    }

    fn record(&self) -> Result<Box<dyn Recording>, String> {
        let recorder = Recorder::of(&self.0).map_err(|error| error.to_string())?;
        Ok(Box::new(LogPart(recorder)))
    }
}

struct LogPart(Recorder);

impl Recording for LogPart {
    fn requests(&self) -> LocalBoxFuture<'_, Result<Vec<Request>, String>> {
        async {
            let recorded = self.0.requests().await.map_err(|error| error.to_string())?;
            let plain = recorded.into_iter().map(|one| Request {
                verb: one.request.verb,
                resource: one.request.resource,
                subresource: one.request.subresource,
                namespace: one.request.namespace,
                name: one.request.name,
                user: one.user,
            });
            Ok(plain.collect())
        }
        .boxed_local()
    }
}
