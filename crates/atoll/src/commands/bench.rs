//! `atoll bench`: measures a running clusterset, or Kubernetes APIs, from outside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use atoll_bench::api::{Amounts, Running, measure_running};
use atoll_bench::policies::policies;
use atoll_bench::{Cluster, Environment, Flags, Scenario};
use clap::{Args, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::output;

/// Measure a running clusterset, or Kubernetes API servers.
#[derive(Args)]
#[command(after_help = "Examples:
  # How fast a change of a service in paris reaches tokyo
  atoll bench propagation --from paris.yaml --to tokyo.yaml

  # How fast policies copy templates to members
  atoll bench policies --hub hub.yaml --to paris.yaml --to tokyo.yaml

  # Compare two API servers
  atoll bench api --kubeconfig hub.yaml --kubeconfig other.yaml")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Api(Api),
    Policies(Policies),
    Propagation(Propagation),
}

/// Compare Kubernetes API servers: creates, updates and watch latency.
///
/// Creates the namespace atoll-bench-api in each cluster, and deletes it at the end. To measure start-up times as well, use
/// `make bench-api`: it starts the hub's API server and a kube-apiserver with etcd.
#[derive(Args)]
#[command(after_help = "Examples:
  # Measure the hub's API server with 1000 objects
  atoll bench api --kubeconfig ~/.atoll/kubeconfig --objects 1000

  # Compare two contexts of one kubeconfig
  atoll bench api --kubeconfig all.yaml --context hub \\
    --kubeconfig all.yaml --context paris -o json

  # Measure memory as well
  atoll bench api --kubeconfig ~/.atoll/kubeconfig --pid $(pidof atoll)")]
struct Api {
    /// Kubeconfig with administrator rights; the first is compared with the others. Can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    kubeconfig: Vec<PathBuf>,
    /// Context in each kubeconfig, in the same order [default: the current contexts].
    #[arg(long, value_name = "CONTEXT")]
    context: Vec<String>,
    /// Process of each API server, in the same order, to measure its memory; on this host only.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    #[command(flatten)]
    amounts: Amounts,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Measure how fast a service change in one member reaches the others, compared with the bare writes.
///
/// Uses the namespaces atoll-bench-ours, -floor and -copier in every cluster. To measure the hub's memory, its restarts and
/// the requests per change as well, use `make bench`.
///
/// With `--path mcs` services cross by a `MultiClusterService` in the hub. Each member's name is its context, or else the name
/// of its kubeconfig file; it must be the name that the member joined with.
#[derive(Args)]
#[command(after_help = "Examples:
  # A short run, to see whether it works
  atoll bench propagation --from paris.yaml --to tokyo.yaml --quick

  # Two scenarios, two importing members, JSON output
  atoll bench propagation --from paris.yaml --to tokyo.yaml --to oslo.yaml \\
    --only idle,burst -o json

  # Services that cross by a MultiClusterService
  atoll bench propagation --path mcs --hub hub.yaml \\
    --from paris.yaml --to tokyo.yaml

  # Contexts of one kubeconfig
  atoll bench propagation --from all.yaml --from-context paris \\
    --to all.yaml --to-context tokyo")]
struct Propagation {
    /// Kubeconfig of the member that exports the services.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// Context in the kubeconfig of --from [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    from_context: Option<String>,
    /// Kubeconfig of a member that imports; the first is measured. Can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    to: Vec<PathBuf>,
    /// Context in each kubeconfig of --to, in the same order [default: the current contexts].
    #[arg(long, value_name = "CONTEXT")]
    to_context: Vec<String>,
    /// Kubeconfig of the hub's API; required with `--path mcs`.
    #[arg(long, value_name = "FILE", required_if_eq("path", "mcs"))]
    hub: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Measure how fast policies copy templates to members, compared with the bare writes.
///
/// Uses the namespaces atoll-bench-ours and -floor in the hub and in every member. Each member's name is its context, or else
/// the name of its kubeconfig file; it must be the name that the member joined with, and the member must have joined with
/// `--allow-propagation=configmaps`. To count writes and the hub's memory as well, use `make bench-policies`.
#[derive(Args)]
#[command(after_help = "Examples:
  # A short run with two members
  atoll bench policies --hub hub.yaml --to paris.yaml --to tokyo.yaml \\
    --objects 100 --rounds 2

  # Single changes only, JSON output
  atoll bench policies --hub hub.yaml --to all.yaml --to-context paris \\
    --only change -o json")]
struct Policies {
    /// Kubeconfig of the hub's API.
    #[arg(long, value_name = "FILE")]
    hub: PathBuf,
    /// Kubeconfig of a member. Can be repeated.
    #[arg(long, value_name = "FILE", required = true)]
    to: Vec<PathBuf>,
    /// Context in each kubeconfig of --to, in the same order [default: the current contexts].
    #[arg(long, value_name = "CONTEXT")]
    to_context: Vec<String>,
    #[command(flatten)]
    flags: atoll_bench::policies::Flags,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Text,
    Json,
    Yaml,
}

impl Format {
    fn print<T: serde::Serialize + ToString>(self, report: &T) -> anyhow::Result<()> {
        match self {
            Self::Text => output::text(&report.to_string()),
            Self::Json => output::json(report),
            Self::Yaml => output::yaml(report),
        }
    }
}

impl Bench {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Api(api) => Box::pin(api.run()).await,
            What::Policies(policies) => Box::pin(policies.run()).await,
            What::Propagation(propagation) => Box::pin(propagation.run()).await,
        }
    }
}

impl Api {
    async fn run(self) -> anyhow::Result<()> {
        if self.context.len() > self.kubeconfig.len() || self.pid.len() > self.kubeconfig.len() {
            return Err(Failure::usage(
                "there are more --context or --pid flags than --kubeconfig flags",
                "give one --kubeconfig for each; the same file can be given twice",
            )
            .into());
        }
        let contexts = self.context.iter().map(Some).chain(std::iter::repeat(None));
        let pids = self.pid.iter().map(|pid| vec![*pid]).chain(std::iter::repeat(Vec::new()));
        let apis =
            self.kubeconfig.iter().zip(contexts).zip(pids).map(|((file, context), processes)| {
                Ok(Running { cluster: cluster(file, context)?, processes })
            });
        let apis: Vec<Running> = apis.collect::<anyhow::Result<_>>()?;
        let report =
            Box::pin(measure_running(apis, self.amounts, &|doing| eprintln!("bench: {doing}"))).await?;
        self.output.print(&report)
    }
}

impl Propagation {
    async fn run(self) -> anyhow::Result<()> {
        if self.flags.only.contains(&Scenario::Restart) {
            return Err(Failure::usage(
                "the scenario `restart` cannot be measured from outside",
                "remove `restart` from --only; `make bench` measures it with a hub of its own",
            )
            .into());
        }
        let importers = clusters(&self.to, &self.to_context)?;
        let environment = Environment {
            source: cluster(&self.from, self.from_context.as_ref())?,
            importers,
            hub_api: self.hub.as_deref().map(|hub| cluster(hub, None)).transpose()?,
            questions: self.hub.as_deref().map(|hub| cluster(hub, None)).transpose()?,
            hub: None,
            audits: Vec::new(),
            progress: Arc::new(|doing| eprintln!("bench: {doing}")),
        };
        let report = Box::pin(atoll_bench::propagation(self.flags.options(), environment)).await?;
        self.output.print(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark stopped early: {why}")),
            None => Ok(()),
        }
    }
}

impl Policies {
    async fn run(self) -> anyhow::Result<()> {
        let environment = Environment {
            importers: clusters(&self.to, &self.to_context)?,
            source: cluster(&self.hub, None)?,
            hub_api: None,
            questions: None,
            hub: None,
            audits: Vec::new(),
            progress: Arc::new(|doing| eprintln!("bench: {doing}")),
        };
        let report = Box::pin(policies(self.flags.options(), environment)).await?;
        self.output.print(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark stopped early: {why}")),
            None => Ok(()),
        }
    }
}

/// The clusters of `--to` and `--to-context`.
fn clusters(files: &[PathBuf], contexts: &[String]) -> anyhow::Result<Vec<Cluster>> {
    if contexts.len() > files.len() {
        return Err(Failure::usage(
            "there are more --to-context flags than --to flags",
            "give one --to for each --to-context; the same file can be given twice",
        )
        .into());
    }
    let contexts = contexts.iter().map(Some).chain(std::iter::repeat(None));
    files.iter().zip(contexts).map(|(file, context)| cluster(file, context)).collect()
}

/// A cluster is called by its context, or else by its file.
fn cluster(file: &Path, context: Option<&String>) -> anyhow::Result<Cluster> {
    let kubeconfig = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the kubeconfig `{}`", file.display()))
        .map_err(|error| Failure::unreadable(&error))?;
    let named = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Cluster { name: context.cloned().unwrap_or_else(named), kubeconfig, context: context.cloned() })
}
