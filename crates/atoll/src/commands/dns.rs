//! `atoll dns`: the DNS server of the clusterset, and its set-up in a member.

mod manifest;
mod serve;
mod setup;

use std::path::PathBuf;

use atoll_dns::Name;
use atoll_hub::connect::{self, ConnectError};
use clap::{Args, Subcommand};

/// Serve clusterset.local names in a member.
///
/// Answers come from the ServiceImports and EndpointSlices of the cluster that it runs in.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  # Run in a pod, on port 8053
  atoll dns

  # Run outside of the cluster
  atoll dns --kubeconfig paris.yaml --listen 10.0.0.5:8053

  # Install the DNS servers in a member
  atoll dns manifest --image registry/atoll:1.0 | \\
    kubectl apply --server-side -f -

  # Forward clusterset.local from CoreDNS to the servers
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
    Setup(setup::Setup),
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
    /// Kubeconfig of the cluster [default: $KUBECONFIG, ~/.kube/config, or the pod's own credentials].
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
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
