//! `atoll dns setup`: leads this cluster's CoreDNS to us. Without a flag it only looks.

use std::net::SocketAddr;

use atoll_dns::Name;
use atoll_dns_server::setup::State;
use atoll_hub::connect;
use clap::{Args, ValueEnum};

use super::{ClusterApi, zone};
use crate::failure::Failure;
use crate::{logs, output};

/// Lead this cluster's CoreDNS to us: one block in its Corefile that forwards the zone. What else is in there stays.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll dns setup                      how it stands, and what would be written
  atoll dns setup --apply
  atoll dns setup --undo
  atoll dns setup --apply --server 10.0.0.5:8053 --config-map kube-system/coredns")]
pub(super) struct Setup {
    #[command(flatten)]
    api: ClusterApi,
    /// Write it.
    #[arg(long)]
    apply: bool,
    /// Take it away.
    #[arg(long, conflicts_with = "apply")]
    undo: bool,
    /// A server to forward to. Can be repeated [default: the addresses of the Service `atoll-dns`].
    #[arg(long = "server", value_name = "ADDRESS")]
    servers: Vec<SocketAddr>,
    /// The zone to forward.
    #[arg(long, default_value = "clusterset.local", value_parser = zone)]
    zone: Name,
    /// The `ConfigMap` that CoreDNS reads.
    #[arg(long, value_name = "NAMESPACE/NAME", default_value = "kube-system/coredns", value_parser = config_map)]
    config_map: (String, String),
    /// The key in it.
    #[arg(long, default_value = "Corefile")]
    key: String,
    /// The namespace of the Service `atoll-dns`; what was set up is remembered there too.
    #[arg(long, default_value = atoll_hub::options::NAMESPACE)]
    namespace: String,
    /// How to print how it stands.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
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
        logs::talk();
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
                setup.undo(&client).await.map_err(|error| Failure::setup("undo the setup", &error))?;
            eprintln!(
                "{}",
                if there { "taken away; CoreDNS reads it soon" } else { "there was nothing of ours" }
            );
            return Ok(());
        }
        let look = if self.apply { setup.apply(&client).await } else { setup.look(&client).await };
        let doing = if self.apply { "set up CoreDNS" } else { "look at CoreDNS's setup" };
        let look = look.map_err(|error| Failure::setup(doing, &error))?;
        if look.multicluster {
            eprintln!(
                "note: CoreDNS's own `multicluster` option serves the zone too; our block goes before it"
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
        State::InPlace => "in place:".to_owned(),
        State::Absent => "not set up. `--apply` would add to the Corefile:".to_owned(),
        State::Outdated => "in place, but not as it should be. `--apply` would make it:".to_owned(),
        State::Reverted { applied } => format!(
            "reverted: it was put in at {applied}, and something has written the Corefile anew since (an upgrade of the cluster, or an \
             add-on manager). `--apply` would put it in again:"
        ),
    }
}

fn done(before: &State) -> String {
    match before {
        State::InPlace => "was in place already:".to_owned(),
        State::Absent => "added to the Corefile; CoreDNS reads it soon:".to_owned(),
        State::Outdated => "replaced in the Corefile; CoreDNS reads it soon:".to_owned(),
        State::Reverted { applied } => {
            format!("put into the Corefile again, which something had written anew since {applied}:")
        }
    }
}
