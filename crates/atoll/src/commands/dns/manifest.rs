//! `atoll dns manifest`: prints the manifests of the DNS servers.

use atoll_dns_server::manifest::Manifest;
use clap::Args;

use crate::output;

/// Print the manifests of the DNS servers.
///
/// These are a Deployment, a Service, and a ServiceAccount with read-only rights.
#[derive(Args)]
#[command(after_help = "Examples:
  # Install the DNS servers in a member
  atoll dns manifest --image registry/atoll:1.0 | \\
    kubectl apply --server-side -f -")]
pub(super) struct PrintManifest {
    /// Container image with the atoll binary.
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// Number of replicas.
    #[arg(long, value_name = "NUMBER", default_value_t = 2)]
    replicas: u32,
    /// Namespace of the objects.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_hub::options::NAMESPACE)]
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
