//! What the benchmarks of the product need of a lab: clusters as they name them, the hub's process, audit logs.

use anyhow::{Context, ensure};
use atoll_bench::{Audit, Hub, Recording, Request};
use atoll_lab::audit::Recorder;
use atoll_lab::clusterset::{Atoll, beside};
use atoll_lab::{Cluster, Deadline, Lab, Process, Progress, Spec, until};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, LocalBoxFuture};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The product to measure: the one that is named, or the one beside this program.
pub(super) fn product(named: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let binary = match named {
        Some(binary) => binary,
        None => beside(&std::env::current_exe().context("where is this program?")?),
    };
    ensure!(
        binary.is_file(),
        "there is no program {}\n  hint: build it, or name another with --binary",
        binary.display()
    );
    Ok(binary)
}

/// A lab for what lies in the hub's API: two members, and a third cluster whose API is the hub's. One of its own is needed, since a
/// template and its copy can't be the same object; a real one, since product and floor shall write to it in the same way.
pub(super) struct SeparateHub {
    pub(super) lab: Lab,
    pub(super) hub: Arc<dyn Hub>,
}

impl SeparateHub {
    pub(super) async fn start(name: &str, binary: Option<PathBuf>) -> anyhow::Result<Self> {
        // With fsync, since that is what clusters do: without it the disk's share of every write would be missing.
        let spec = Spec { fsync: true, ..Spec::api_only(name, 3).with_bystander("hub") };
        let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
        let atoll = Atoll::new(&product(binary)?, lab.member(3), lab.bystander("hub"))?;
        let process = atoll.start_hub("hub", &[])?;
        for cluster in &lab.clusters()[..2] {
            let kubeconfig = cluster.dir().join("kubeconfig").display().to_string();
            let words = ["join", cluster.name(), "--cluster-kubeconfig", &kubeconfig, "--allow-propagation"];
            atoll.must(&words).await?;
        }
        atoll.all_ready(&lab.clusters()[..2]).await?;
        Ok(Self { lab, hub: Arc::new(LabHub::new(atoll, process)) })
    }

    pub(super) fn hub_api(&self) -> atoll_bench::Cluster {
        atoll_bench::Cluster { name: "hub".to_owned(), ..measured(self.lab.member(3)) }
    }

    pub(super) fn members(&self) -> Vec<atoll_bench::Cluster> {
        self.lab.clusters()[..2].iter().map(measured).collect()
    }

    pub(super) fn audits(&self) -> Vec<Arc<dyn Audit>> {
        let of_members = audits(&self.lab.clusters()[..2]);
        let of_hub = Log { name: "hub".to_owned(), cluster: self.lab.member(3).clone() };
        [of_members, vec![Arc::new(of_hub) as Arc<dyn Audit>]].concat()
    }
}

/// A cluster of the lab, for the benchmark.
pub(super) fn measured(cluster: &Cluster) -> atoll_bench::Cluster {
    atoll_bench::Cluster { name: cluster.name().to_owned(), kubeconfig: cluster.kubeconfig(), context: None }
}

/// The audit logs of clusters.
pub(super) fn audits(clusters: &[Cluster]) -> Vec<Arc<dyn Audit>> {
    let log = |cluster: &Cluster| Log { name: cluster.name().to_owned(), cluster: cluster.clone() };
    clusters.iter().map(|cluster| Arc::new(log(cluster)) as Arc<dyn Audit>).collect()
}

/// Hears what is being done.
pub(super) fn progress() -> Arc<dyn Fn(&str) + Send + Sync> {
    Arc::new(|doing| eprintln!("bench: {doing}"))
}

/// The hub's process in the lab.
pub(super) struct LabHub {
    atoll: Atoll,
    process: Mutex<Process>,
}

impl LabHub {
    pub(super) fn new(atoll: Atoll, process: Process) -> Self {
        Self { atoll, process: Mutex::new(process) }
    }

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
    work: impl FnOnce() -> atoll_lab::Result<T> + Send + 'static,
) -> BoxFuture<'static, Result<T, String>> {
    let running = tokio::task::spawn_blocking(work);
    async { running.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string()) }.boxed()
}

/// A cluster's audit log, under the name that the benchmark has for the cluster.
struct Log {
    name: String,
    cluster: Cluster,
}

impl Audit for Log {
    fn cluster(&self) -> &str {
        &self.name
    }

    fn record(&self) -> Result<Box<dyn Recording>, String> {
        let recorder = Recorder::of(&self.cluster).map_err(|error| error.to_string())?;
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
