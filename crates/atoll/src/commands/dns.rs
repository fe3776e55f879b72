//! `atoll dns`: answers names of the clusterset, and what it takes to get there.

mod manifest;
mod serve;
mod setup;

use std::path::PathBuf;

use atoll_dns::Name;
use atoll_hub::connect::{self, ConnectError};
use clap::{Args, Subcommand};

/// Answer names of the clusterset, from what the cluster that this runs in holds and from nothing else.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  atoll dns                                         on the API of the pod it runs in, port 8053
  atoll dns --kubeconfig paris.yaml --listen 10.0.0.5:8053 --metrics-address 127.0.0.1:9153
  atoll dns manifest --image registry/atoll:1.0 | kubectl apply --server-side -f -
  atoll dns setup                                   what would lead this cluster's CoreDNS to it
  atoll dns setup --apply"
)]
pub(crate) struct Dns {
    #[command(flatten)]
    serve: serve::Serve,
    #[command(subcommand)]
    command: Option<DnsCommand>,
}

#[derive(Subcommand)]
enum DnsCommand {
    /// Lead this cluster's CoreDNS to us, or undo that.
    Setup(setup::Setup),
    /// Print what a member runs, as manifests.
    Manifest(manifest::PrintManifest),
}

impl Dns {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.command {
            None => self.serve.run().await,
            Some(DnsCommand::Setup(setup)) => setup.run().await,
            Some(DnsCommand::Manifest(manifest)) => manifest.run(),
        }
    }
}

/// Which cluster's API; as in kubectl.
#[derive(Args, Debug, Clone)]
struct ClusterApi {
    /// The kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in it [default: its current one].
    #[arg(long)]
    context: Option<String>,
}

impl ClusterApi {
    async fn config(&self) -> Result<kube::Config, ConnectError> {
        connect::config(self.kubeconfig.as_deref(), self.context.as_deref()).await
    }
}

fn zone(text: &str) -> Result<Name, String> {
    Name::parse(text).map_err(|error| error.to_string())
}
