//! `lab up`.

use super::output::{LabStatus, print, status};
use atoll_lab::cli::{Format, Named};
use atoll_lab::{Kind, Lab, Progress, Spec, requirements, say};
use clap::Args;
use std::io::Write;
use std::time::Instant;
use tokio::signal::unix::{SignalKind, signal};

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
    /// Give the cluster of this number the API of the oldest Kubernetes that is supported; needs --api-only.
    #[arg(long, value_name = "NUMBER")]
    oldest: Vec<u8>,
    /// As `--api-only`, with the controllers of namespaces, garbage collection and aggregated roles.
    #[arg(long, conflicts_with = "api_only")]
    api_with_cleanup: bool,
    /// A host outside all clusters, on the same network; may be given more than once.
    #[arg(long = "bystander", value_name = "NAME")]
    bystanders: Vec<String>,
    /// Let etcd wait for the disk, as in production.
    #[arg(long)]
    fsync: bool,
    /// Replace a lab of this name that is up.
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
            kind: match (self.api_only, self.api_with_cleanup) {
                (true, _) => Kind::ApiOnly,
                (false, true) => Kind::ApiWithCleanup,
                (false, false) => Kind::Whole,
            },
            bystanders: self.bystanders,
            fsync: self.fsync,
            audit: true,
            oldest: self.oldest,
        };
        spec.check()?;
        requirements::check()?;
        let progress = Progress::to_stderr();
        let start = Instant::now();
        match Lab::find(&spec.name)? {
            Some(there) if *there.spec() == spec && !self.fresh => {
                say(&format!("`{}` is up already", spec.name));
            }
            Some(there) if !self.fresh => anyhow::bail!(
                "the lab `{}` is up, and it is another: {} clusters, {:?}\n  hint: `--fresh` replaces it, `--name` starts one beside it",
                spec.name,
                there.spec().clusters,
                there.spec().kind
            ),
            _ => {
                until_interrupted(Lab::start(&spec, &progress)).await?.leave_running();
                say(&format!("up in {:.1} s", start.elapsed().as_secs_f32()));
            }
        }
        let status = status(&spec.name)?;
        print(self.output, &status)?;
        if matches!(self.output, Format::Text) {
            hint(&status);
        }
        Ok(())
    }
}

/// Lets `start` go on until it is done or interrupted; dropped, it removes what it made.
async fn until_interrupted(start: impl Future<Output = atoll_lab::Result<Lab>>) -> anyhow::Result<Lab> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let code = tokio::select! {
        lab = start => return Ok(lab?),
        _ = tokio::signal::ctrl_c() => 130,
        _ = terminate.recv() => 143,
        _ = hang_up.recv() => 129,
    };
    say("interrupted; what had been made is gone");
    // A build that was under way holds a thread that need not be waited for.
    std::process::exit(code)
}

fn hint(status: &LabStatus) {
    let program = std::env::args().next().unwrap_or_else(|| "lab".to_owned());
    let _ = writeln!(
        std::io::stderr(),
        "\nTry:\n  export KUBECONFIG={}\n  kubectl --context {} get nodes\n  {program} down --name {}",
        status.kubeconfig,
        status.clusters.first().map_or("member1", |cluster| &cluster.name),
        status.name
    );
}
