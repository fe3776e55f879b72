//! `bench propagation`: the product's benchmark on clusters that are only an API, and a hub beside them.

use super::environment::{LabHub, SeparateHub, audits, install_crds, measured, product, progress};
use anyhow::Context;
use atoll_bench::{Cluster, Environment, Flags, Hub, Options, Path, Report, Who};
use atoll_lab::cli::Format;
use atoll_lab::clusterset::HubApi;
use atoll_lab::{Lab, Progress, Spec};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Args)]
pub(super) struct Propagation {
    #[command(flatten)]
    flags: Flags,
    /// Measure floor and copier only: what the machine can do. Needs no product.
    #[arg(long)]
    floor_only: bool,
    /// Run the hub on an API server of its own, not on that of the first member.
    #[arg(long, conflicts_with = "floor_only")]
    own_api: bool,
    /// The `atoll` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and to remove; one of this name that is up is removed first.
    #[arg(long, default_value = "bench")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Propagation {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let options = self.flags.options();
        let report = match options.path {
            Path::Export => {
                by_exports(options, &self.name, self.binary, self.floor_only, self.own_api).await?
            }
            Path::Mcs if self.floor_only => {
                anyhow::bail!(
                    "the floor of MultiClusterServices needs a hub\n  hint: leave out --floor-only, or --path mcs"
                )
            }
            Path::Mcs => by_mcs(options, &self.name, self.binary).await?,
        };
        self.output.print(&report, ToString::to_string)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}

/// Services cross by exports: the hub's state is in the API of the first member.
async fn by_exports(
    mut options: Options,
    name: &str,
    binary: Option<PathBuf>,
    floor_only: bool,
    own_api: bool,
) -> anyhow::Result<Report> {
    // With fsync, since that is what clusters do: without it the disk's share of every write would be missing.
    let spec = Spec { fsync: true, ..Spec::api_only(name, 2).with_bystander("hub") };
    let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
    let mut questions = None;
    let hub: Option<Arc<dyn Hub>> = if floor_only {
        options.subjects = vec![Who::Floor, Who::Copier];
        install_crds(&lab).await?;
        None
    } else {
        let api = if own_api { HubApi::Own } else { HubApi::Cluster };
        let (atoll, process) = lab.clusterset_on(api, &product(binary)?).await?;
        if own_api {
            let kubeconfig =
                std::fs::read_to_string(atoll.kubeconfig()).context("read the hub's kubeconfig")?;
            questions = Some(Cluster { name: "hub".to_owned(), kubeconfig, context: None });
        }
        Some(Arc::new(LabHub::new(atoll, process)))
    };
    let environment = Environment {
        source: measured(lab.member(1)),
        importers: lab.clusters()[1..].iter().map(measured).collect(),
        hub_api: None,
        questions,
        hub,
        audits: audits(lab.clusters()),
        progress: progress(),
    };
    Ok(Box::pin(atoll_bench::propagation(options, environment)).await?)
}

/// Services cross by `MultiClusterServices`: the first member provides, the second consumes.
async fn by_mcs(options: Options, name: &str, binary: Option<PathBuf>) -> anyhow::Result<Report> {
    let separate = SeparateHub::start(name, binary).await?;
    let mut members = separate.members();
    let importers = members.split_off(1);
    let source = members.pop().context("there are two members")?;
    let environment = Environment {
        source,
        importers,
        hub_api: Some(separate.hub_api()),
        questions: None,
        hub: Some(Arc::clone(&separate.hub)),
        audits: separate.audits(),
        progress: progress(),
    };
    Ok(Box::pin(atoll_bench::propagation(options, environment)).await?)
}
