//! `atoll dns`: runs the DNS server until a signal ends it.

use std::net::SocketAddr;
use std::num::NonZero;

use atoll_dns::{Name, Rate, Settings};
use atoll_dns_server::{Options, RateLimit, watch_config};
use atoll_hub::connect;
use clap::Args;
use ipnet::IpNet;
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
    /// Answers per second over UDP to the sources of one network (IPv4 /24, IPv6 /56) that are not exempt, at each socket; 0: no limit.
    /// Some questions above it are answered by "ask over TCP", the others not at all.
    #[arg(long, value_name = "NUMBER", default_value_t = Rate::default().per_second.get())]
    rate_limit: u32,
    /// Networks of sources that are not limited. Comma-separated [default: private, loopback and link-local addresses].
    #[arg(long, value_name = "CIDR", value_delimiter = ',')]
    rate_limit_exempt: Option<Vec<IpNet>>,
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
            rate_limit: rate_limit(self.rate_limit, self.rate_limit_exempt),
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

fn rate_limit(per_second: u32, exempt: Option<Vec<IpNet>>) -> Option<RateLimit> {
    let per_second = NonZero::new(per_second)?;
    let defaults = RateLimit::default();
    let rate = Rate { per_second, burst: per_second.saturating_mul(NonZero::new(2)?), ..defaults.rate };
    Some(RateLimit { rate, exempt: exempt.unwrap_or(defaults.exempt) })
}
