//! `lab bench propagation`: the product's benchmark on clusters that are only an API, and a hub beside them.

use super::measured::{Apart, LabHub, audits, measured, product, progress};
use super::output::Format;
use anyhow::Context;
use atoll_bench::{Environment, Flags, Hub, Options, Path, Report, Who};
use atoll_lab::{Deadline, Lab, Progress, Spec, until};
use clap::Args;
use std::path::PathBuf;
use std::sync::Arc;
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
        let options = self.flags.options();
        let report = match options.path {
            Path::Export => exports(options, &self.name, self.binary, self.floor_only).await?,
            Path::Mcs if self.floor_only => {
                anyhow::bail!(
                    "the floor of MultiClusterServices needs a hub\n  hint: leave out --floor-only, or --path mcs"
                )
            }
            Path::Mcs => crossings(options, &self.name, self.binary).await?,
        };
        self.output.print_propagation(&report)?;
        match report.unfinished {
            Some(why) => Err(anyhow::anyhow!("the benchmark broke off: {why}")),
            None => Ok(()),
        }
    }
}

/// By exports: the hub's state is in the API of the first member.
async fn exports(
    mut options: Options,
    name: &str,
    binary: Option<PathBuf>,
    floor_only: bool,
) -> anyhow::Result<Report> {
    // With fsync, since that is what clusters do: without it the disk's share of every write would be missing.
    let spec = Spec { fsync: true, ..Spec::api_only(name, 2).with_bystander("hub") };
    let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
    let hub: Option<Arc<dyn Hub>> = if floor_only {
        options.subjects = vec![Who::Floor, Who::Copier];
        install_crds(&lab).await?;
        None
    } else {
        let (atoll, process) = lab.clusterset(&product(binary)?).await?;
        Some(Arc::new(LabHub::new(atoll, process)))
    };
    let environment = Environment {
        source: measured(lab.member(1)),
        importers: lab.clusters()[1..].iter().map(measured).collect(),
        hub_api: None,
        hub,
        audits: audits(lab.clusters()),
        progress: progress(),
    };
    Ok(Box::pin(atoll_bench::propagation(options, environment)).await?)
}

/// By `MultiClusterServices`: the first member provides, the second consumes.
async fn crossings(options: Options, name: &str, binary: Option<PathBuf>) -> anyhow::Result<Report> {
    let apart = Apart::start(name, binary).await?;
    let mut members = apart.members();
    let importers = members.split_off(1);
    let source = members.pop().context("there are two members")?;
    let environment = Environment {
        source,
        importers,
        hub_api: Some(apart.hub_api()),
        hub: Some(Arc::clone(&apart.hub)),
        audits: apart.audits(),
        progress: progress(),
    };
    Ok(Box::pin(atoll_bench::propagation(options, environment)).await?)
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
