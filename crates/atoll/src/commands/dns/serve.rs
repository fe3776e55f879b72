//! `atoll dns`: runs the server until it is told to stop.

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
    /// Where to listen, over UDP and TCP. Can be repeated. Where a machine has several addresses, name the one that is asked.
    #[arg(long, value_name = "ADDRESS", default_value = "[::]:8053")]
    listen: Vec<SocketAddr>,
    /// The zone that is ours.
    #[arg(long, default_value = "clusterset.local", value_parser = zone)]
    zone: Name,
    /// How many seconds an answer may be kept, a negative one too.
    #[arg(long, value_name = "SECONDS", default_value_t = Settings::default().ttl)]
    ttl: u32,
    /// How many sockets per address, each with a thread of its own [default: one per processor].
    #[arg(long, value_name = "NUMBER")]
    sockets: Option<usize>,
    /// The id of this cluster, whose endpoints are near [default: its `ClusterProperty`].
    #[arg(long, value_name = "ID", value_parser = zone)]
    cluster: Option<Name>,
    /// Where /healthz, /readyz and /metrics are served; nowhere if not given.
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// How logs are written, to stderr.
    #[arg(long, value_enum, default_value_t = Format::Text)]
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
