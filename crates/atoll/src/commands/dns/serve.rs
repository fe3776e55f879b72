//! `atoll dns`: runs the DNS server until a signal ends it.

use std::net::SocketAddr;

use atoll_dns::{Name, Settings};
use atoll_dns_server::{Options, watch_config};
use atoll_hub::connect;
use clap::Args;
use tokio::signal::unix::{SignalKind, signal};

use super::{ClusterApi, zone};
use crate::failure::Failure;
use crate::logs::{self, Format};

#[derive(Args)]
pub(super) struct Serve {
    #[command(flatten)]
    api: ClusterApi,
    /// Address to listen on, over UDP and TCP. Can be repeated. On a host with several addresses, use the one that clients query.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8053")]
    listen: Vec<SocketAddr>,
    /// DNS zone to serve.
    #[arg(long, value_name = "ZONE", default_value = "clusterset.local", value_parser = zone)]
    zone: Name,
    /// TTL of answers, including negative answers.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().ttl)]
    ttl: u32,
    /// Number of sockets per address, each with its own thread [default: one per CPU].
    #[arg(long, value_name = "NUMBER")]
    sockets: Option<usize>,
    /// ID of this cluster [default: its `ClusterProperty`].
    #[arg(long, value_name = "ID", value_parser = zone)]
    cluster: Option<Name>,
    /// Address to serve /healthz, /readyz and /metrics on [default: not served].
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// Format of log lines; logs go to stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

impl Serve {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        logs::start(self.log_format);
        let client = connect::client(watch_config(self.api.config().await?))?;
        let defaults = Options::default();
        let options = Options {
            settings: Settings { zone: self.zone, ttl: self.ttl, ..Settings::default() },
            cluster_zone: None,
            listen: self.listen,
            sockets: self.sockets.unwrap_or(defaults.sockets),
            metrics_address: self.metrics_address,
            cluster: self.cluster,
        };
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        tokio::select! {
            ended = Box::pin(atoll_dns_server::run(options, client)) => ended.map_err(|error| Failure::dns(&error))?,
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("stopping");
        Ok(())
    }
}
