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

/// Measure a running clusterset, or Kubernetes APIs, from outside.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench propagation --from paris.yaml --to tokyo.yaml
  atoll bench policies --hub hub.yaml --to paris.yaml --to tokyo.yaml
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

/// Measure Kubernetes APIs side by side: creates, updates, and how soon watchers see a change.
///
/// It makes and takes away a namespace of its own (atoll-bench-api) in each. How soon an API starts is measured by
/// `make bench-api`, which starts the hub's own API and a kube-apiserver on etcd beside it.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench api --kubeconfig ~/.atoll/kubeconfig --objects 1000
  atoll bench api --kubeconfig all.yaml --context hub --kubeconfig all.yaml --context paris -o json
  atoll bench api --kubeconfig ~/.atoll/kubeconfig --pid $(pidof atoll)    its memory as well")]
struct Api {
    /// The kubeconfig of an administrator of an API; the first one named is compared with the others.
    #[arg(long, value_name = "FILE", required = true)]
    kubeconfig: Vec<PathBuf>,
    /// The contexts in them, in the same order [default: their current ones].
    #[arg(long, value_name = "CONTEXT")]
    context: Vec<String>,
    /// The processes of the APIs, in the same order, if they are on this host.
    #[arg(long, value_name = "PID")]
    pid: Vec<u32>,
    #[command(flatten)]
    amounts: Amounts,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Measure how fast a change in one member is in the others, against a floor of the same writes.
///
/// It fills and empties namespaces of its own (atoll-bench-ours, -floor and -copier) in every cluster that is named.
/// The hub's memory, its restarts and the requests per change are measured by `make bench`, which has the hub's process
/// and the API servers' audit logs at hand.
///
/// With `--path mcs` the intent is a `MultiClusterService` in the hub; members are called by their contexts or else by
/// their files, and these have to be the names under which they joined.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench propagation --from paris.yaml --to tokyo.yaml --quick
  atoll bench propagation --path mcs --hub hub.yaml --from paris.yaml --to tokyo.yaml --quick
  atoll bench propagation --from paris.yaml --to tokyo.yaml --to oslo.yaml --only idle,burst -o json
  atoll bench propagation --from all.yaml --from-context paris --to all.yaml --to-context tokyo")]
struct Propagation {
    /// The kubeconfig of the member that exports and changes.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// The context in it [default: its current one].
    #[arg(long, value_name = "CONTEXT")]
    from_context: Option<String>,
    /// The kubeconfig of a member that imports; the first one named is watched.
    #[arg(long, value_name = "FILE", required = true)]
    to: Vec<PathBuf>,
    /// The contexts in them, in the same order.
    #[arg(long, value_name = "CONTEXT")]
    to_context: Vec<String>,
    /// The kubeconfig of the hub's API, for `--path mcs`.
    #[arg(long, value_name = "FILE", required_if_eq("path", "mcs"))]
    hub: Option<PathBuf>,
    #[command(flatten)]
    flags: Flags,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

/// Measure how fast templates in the hub become copies in members, against a floor of the same writes.
///
/// It fills and empties namespaces of its own (atoll-bench-ours and -floor) in the hub and in every member that is named.
/// Members are called by their contexts or else by their files, and these have to be the names under which they joined,
/// with `--allow-propagation=configmaps`. What is written, and the hub's memory, are counted by `make bench-policies`.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench policies --hub hub.yaml --to paris.yaml --to tokyo.yaml --objects 100 --rounds 2
  atoll bench policies --hub hub.yaml --to all.yaml --to-context paris --only change -o json")]
struct Policies {
    /// The kubeconfig of the hub's API.
    #[arg(long, value_name = "FILE")]
    hub: PathBuf,
    /// The kubeconfig of a member.
    #[arg(long, value_name = "FILE", required = true)]
    to: Vec<PathBuf>,
    /// The contexts in them, in the same order.
    #[arg(long, value_name = "CONTEXT")]
    to_context: Vec<String>,
    #[command(flatten)]
    flags: atoll_bench::policies::Flags,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
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
                "there are more --context or --pid than --kubeconfig",
                "give each a --kubeconfig; the same file may be named twice",
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
                "restarts cannot be measured from outside",
                "leave `restart` out of --only; `make bench` measures it on a hub of its own",
            )
            .into());
        }
        let importers = clusters(&self.to, &self.to_context)?;
        let environment = Environment {
            source: cluster(&self.from, self.from_context.as_ref())?,
            importers,
            hub_api: self.hub.as_deref().map(|hub| cluster(hub, None)).transpose()?,
            hub: None,
            audits: Vec::new(),
            progress: Arc::new(|doing| eprintln!("bench: {doing}")),
        };
        let report = Box::pin(atoll_bench::propagation(self.flags.options(), environment)).await?;
        self.output.print(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
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
            hub: None,
            audits: Vec::new(),
            progress: Arc::new(|doing| eprintln!("bench: {doing}")),
        };
        let report = Box::pin(policies(self.flags.options(), environment)).await?;
        self.output.print(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}

/// The clusters of `--to` and `--to-context`.
fn clusters(files: &[PathBuf], contexts: &[String]) -> anyhow::Result<Vec<Cluster>> {
    if contexts.len() > files.len() {
        return Err(Failure::usage(
            "there are more --to-context than --to",
            "give each --to-context a --to; the same file may be named twice",
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
