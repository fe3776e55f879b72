//! `lab up`.

use super::output::{Format, LabStatus, status};
use super::{Named, possible};
use clap::Args;
use lab::{Kind, Lab, Progress, Spec};
use std::time::Instant;

#[derive(Args)]
pub(super) struct Up {
    #[command(flatten)]
    named: Named,
    /// How many clusters.
    #[arg(short = 'n', long, default_value_t = 3, value_name = "N")]
    clusters: u8,
    /// etcd and kube-apiserver only: no nodes, no pods.
    #[arg(long)]
    api_only: bool,
    /// A host outside all clusters, on the same network; may be given more than once.
    #[arg(long = "bystander", value_name = "NAME")]
    bystanders: Vec<String>,
    /// Let etcd wait for the disk, as it would in earnest.
    #[arg(long)]
    fsync: bool,
    /// Start anew even if an equal lab is up.
    #[arg(long)]
    fresh: bool,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Up {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let spec = Spec {
            name: self.named.name,
            clusters: self.clusters,
            kind: if self.api_only { Kind::ApiOnly } else { Kind::Whole },
            bystanders: self.bystanders,
            fsync: self.fsync,
            audit: true,
        };
        spec.check()?;
        possible()?;
        let progress = Progress::to_stderr();
        let start = Instant::now();
        let there = if self.fresh { None } else { Lab::find(&spec.name)?.filter(|lab| *lab.spec() == spec) };
        if there.is_some() {
            eprintln!("lab: `{}` is up already", spec.name);
        } else {
            // Ctrl-C drops the half-made lab, and that takes it away.
            let lab = tokio::select! {
                lab = Lab::start(&spec, &progress) => lab?,
                _ = tokio::signal::ctrl_c() => anyhow::bail!("interrupted; what had been made is gone"),
            };
            lab.leave_running();
            eprintln!("lab: up in {:.1} s", start.elapsed().as_secs_f32());
        }
        let status = status(&spec.name)?;
        self.output.print(&status)?;
        if matches!(self.output, Format::Text) {
            hint(&status);
        }
        Ok(())
    }
}

fn hint(status: &LabStatus) {
    eprintln!(
        "\nTry:\n  export KUBECONFIG={}\n  kubectl --context {} get pods -A\n  lab down --name {}",
        status.kubeconfig,
        status.clusters.first().map_or("member1", |cluster| &cluster.name),
        status.name
    );
}
