//! `atoll bench`: measures a running clusterset, or Kubernetes APIs, from outside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use atoll_bench::api::{Amounts, Running, measure_running};
use atoll_bench::{Cluster, Environment, Flags, Scenario};
use clap::{Args, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::output;

/// Measure a running clusterset, or Kubernetes APIs, from outside.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench propagation --from paris.yaml --to tokyo.yaml
  atoll bench api --kubeconfig hub.yaml --kubeconfig other.yaml")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Api(Api),
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
#[derive(Args)]
#[command(after_help = "Examples:
  atoll bench propagation --from paris.yaml --to tokyo.yaml --quick
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
    #[command(flatten)]
    flags: Flags,
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
        if self.to_context.len() > self.to.len() {
            return Err(Failure::usage(
                "there are more --to-context than --to",
                "give each --to-context a --to; the same file may be named twice",
            )
            .into());
        }
        let contexts = self.to_context.iter().map(Some).chain(std::iter::repeat(None));
        let importers = self.to.iter().zip(contexts);
        let importers = importers.map(|(file, context)| cluster(file, context)).collect::<Result<_, _>>()?;
        let environment = Environment {
            source: cluster(&self.from, self.from_context.as_ref())?,
            importers,
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

/// A cluster is called by its context, or else by its file.
fn cluster(file: &Path, context: Option<&String>) -> anyhow::Result<Cluster> {
    let kubeconfig = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read the kubeconfig `{}`", file.display()))
        .map_err(|error| Failure::unreadable(&error))?;
    let named = || file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    Ok(Cluster { name: context.cloned().unwrap_or_else(named), kubeconfig, context: context.cloned() })
}
