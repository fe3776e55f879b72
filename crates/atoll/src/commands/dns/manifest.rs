//! `atoll dns manifest`: prints what a member runs.

use atoll_dns_server::manifest::Manifest;
use clap::Args;

use crate::output;

/// Print what a member runs: servers, a Service before them, and an account that may read and nothing else.
#[derive(Args)]
#[command(after_help = "Example:
  atoll dns manifest --image registry/atoll:1.0 | kubectl apply --server-side -f -")]
pub(super) struct PrintManifest {
    /// The image with this program.
    #[arg(long)]
    image: String,
    /// How many servers.
    #[arg(long, default_value_t = 2)]
    replicas: u32,
    /// The namespace.
    #[arg(long, default_value = atoll_hub::options::NAMESPACE)]
    namespace: String,
}

impl PrintManifest {
    pub(super) fn run(self) -> anyhow::Result<()> {
        let Self { image, replicas, namespace } = self;
        for object in (Manifest { namespace, image, replicas }).objects() {
            output::text("---\n")?;
            output::yaml(&object)?;
        }
        Ok(())
    }
}
