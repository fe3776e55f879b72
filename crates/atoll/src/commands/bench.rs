//! `atoll bench`: measures a running clusterset from outside.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context;
use atoll_bench::{Cluster, Environment, Flags, Scenario};
use clap::{Args, Subcommand, ValueEnum};

use crate::failure::Failure;
use crate::output;

/// Measure a running clusterset from outside.
#[derive(Args)]
#[command(after_help = "Example:
  atoll bench propagation --from paris.yaml --to tokyo.yaml")]
pub(crate) struct Bench {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Propagation(Propagation),
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

impl Bench {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.what {
            What::Propagation(propagation) => Box::pin(propagation.run()).await,
        }
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
        match self.output {
            Format::Text => output::text(&report.to_string())?,
            Format::Json => output::json(&report)?,
            Format::Yaml => output::yaml(&report)?,
        }
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
