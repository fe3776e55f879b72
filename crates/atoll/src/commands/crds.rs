//! `atoll crds`: prints the CRDs that members and the hub get.

use atoll_api::crds;
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::output;

/// Print the CustomResourceDefinitions.
///
/// `atoll join` installs them; print them to install them in another way.
#[derive(Args)]
#[command(after_help = "Examples:
  # Install the CRDs with kubectl
  atoll crds | kubectl apply --server-side -f -

  # Print their names
  atoll crds -o json | jq -r '.items[].metadata.name'")]
pub(crate) struct Crds {
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Yaml)]
    output: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    Yaml,
    Json,
}

impl Crds {
    pub(crate) fn run(&self) -> anyhow::Result<()> {
        let crds = crds::all();
        match self.output {
            Format::Yaml => output::text(&crds::yaml(&crds)?),
            Format::Json => output::json(&json!({ "apiVersion": "v1", "kind": "List", "items": crds })),
        }
    }
}
