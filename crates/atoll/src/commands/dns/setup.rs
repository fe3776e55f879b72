//! `atoll dns setup`: forwards the zone from CoreDNS to `atoll dns`. Without a flag it only shows the state.

use std::net::SocketAddr;

use atoll_dns::Name;
use atoll_dns_server::setup::State;
use atoll_hub::connect;
use clap::{Args, ValueEnum};

use super::{ClusterApi, zone};
use crate::failure::Failure;
use crate::{logs, output};

/// Forward clusterset.local from CoreDNS to `atoll dns`.
///
/// Without a flag it only shows the state. --apply adds one block to the Corefile and changes nothing else in it.
#[derive(Args)]
#[command(after_help = "Examples:
  # Show the current state, and what --apply would write
  atoll dns setup

  # Add the block to the Corefile
  atoll dns setup --apply

  # Remove the block
  atoll dns setup --undo

  # Forward to a server outside of the cluster
  atoll dns setup --apply --server 10.0.0.5:8053")]
pub(super) struct Setup {
    #[command(flatten)]
    api: ClusterApi,
    /// Add the block to the Corefile, or update it.
    #[arg(long)]
    apply: bool,
    /// Remove the block from the Corefile.
    #[arg(long, conflicts_with = "apply")]
    undo: bool,
    /// DNS server to forward to. Can be repeated [default: the addresses of the Service `atoll-dns`].
    #[arg(long = "server", value_name = "ADDRESS")]
    servers: Vec<SocketAddr>,
    /// DNS zone to forward.
    #[arg(long, value_name = "ZONE", default_value = "clusterset.local", value_parser = zone)]
    zone: Name,
    /// `ConfigMap` that CoreDNS reads.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "kube-system/coredns", value_parser = config_map)]
    config_map: (String, String),
    /// Key in the `ConfigMap`.
    #[arg(long, value_name = "KEY", default_value = "Corefile")]
    key: String,
    /// Namespace of the Service `atoll-dns`, and of the record of this set-up.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_hub::options::NAMESPACE)]
    namespace: String,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Format {
    Text,
    Json,
}

fn config_map(text: &str) -> Result<(String, String), String> {
    let (namespace, name) = text.split_once('/').ok_or_else(|| format!("`{text}` is not NAMESPACE/NAME"))?;
    Ok((namespace.to_owned(), name.to_owned()))
}

impl Setup {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        logs::warnings_only();
        let client = connect::client(self.api.config().await?)?;
        let (namespace, config_map) = self.config_map;
        let setup = atoll_dns_server::setup::Setup {
            namespace,
            config_map,
            key: self.key,
            zone: self.zone,
            servers: self.servers,
            own_namespace: self.namespace,
        };
        if self.undo {
            let there =
                setup.undo(&client).await.map_err(|error| Failure::setup("undo the set-up", &error))?;
            eprintln!(
                "{}",
                if there {
                    "removed from the Corefile; CoreDNS reloads it soon"
                } else {
                    "nothing to remove: not set up"
                }
            );
            return Ok(());
        }
        let look = if self.apply { setup.apply(&client).await } else { setup.look(&client).await };
        let doing = if self.apply { "set up CoreDNS" } else { "read the set-up of CoreDNS" };
        let look = look.map_err(|error| Failure::setup(doing, &error))?;
        if look.multicluster {
            eprintln!(
                "note: the `multicluster` option of CoreDNS serves the zone as well; the block of atoll takes precedence"
            );
        }
        eprintln!("{}", if self.apply { done(&look.state) } else { stands(&look.state) });
        match self.output {
            Format::Text => output::text(&look.stub),
            Format::Json => output::json(&look),
        }
    }
}

fn stands(state: &State) -> String {
    match state {
        State::InPlace => "set up:".to_owned(),
        State::Absent => "not set up. --apply would add this to the Corefile:".to_owned(),
        State::Outdated => "set up, but outdated. --apply would change it to:".to_owned(),
        State::Reverted { applied } => format!(
            "reverted: it was added at {applied}, and the Corefile was overwritten since (by a cluster upgrade or an add-on manager). \
             --apply would add this again:"
        ),
    }
}

fn done(before: &State) -> String {
    match before {
        State::InPlace => "already set up:".to_owned(),
        State::Absent => "added to the Corefile; CoreDNS reloads it soon:".to_owned(),
        State::Outdated => "updated in the Corefile; CoreDNS reloads it soon:".to_owned(),
        State::Reverted { applied } => {
            format!("added to the Corefile again, which was overwritten after {applied}:")
        }
    }
}
