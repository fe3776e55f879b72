//! `atoll lb`: carries connections until it is told to stop.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use lb::{Balancer, DataPath, allow_many_files, file};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Carry connections from one address to backends of many clusters, at layer 4.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll lb --config lb.yaml
  atoll lb --config lb.yaml --check               say whether the file can be used, and do nothing
  kill -HUP <pid>                                  look at the file now; changes are noticed within a second anyway

The file:
  listeners:
  - name: shop/web
    address: 127.0.0.1:8080
    protocol: TCP                                  # or UDP
    algorithm: Maglev                              # or LeastConnections
    clusters:
      paris: {weight: 3}                           # three of four connections, however many backends it has
      tokyo: {weight: 1, tier: 0}                  # a higher tier is used only when no lower one has a healthy backend
    health: {interval: 500ms, timeout: 500ms, rise: 2, fall: 2}
    backends:
    - {address: 10.1.0.4:8080, cluster: paris}
    - {address: 10.2.0.9:8080, cluster: tokyo}
Further fields of a listener: interface (its address is put there), affinity, ejection, drain, proxyProtocol, source {keep} or {first, last}, limits {connections, perClient}, connectTimeout,
idleTimeout; of a backend: weight, draining. A change drops no connection; the first SIGTERM lets open ones finish
(`drain`), the second ends them.")]
pub(crate) struct Lb {
    /// The file that says where to listen, and for which backends.
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Only check the file.
    #[arg(long)]
    check: bool,
    /// Who carries connections. The kernel needs the capability `NET_ADMIN`, keeps connections and rules when this process ends, and
    /// knows neither the PROXY protocol, nor least connections, nor limits.
    #[arg(long, value_enum, default_value_t = Path::UserSpace)]
    data_path: Path,
    /// How many threads carry connections [default: one per processor].
    #[arg(long, value_name = "NUMBER")]
    threads: Option<usize>,
    /// Where /healthz, /readyz and /metrics are served; nowhere if not given.
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// How logs are written, to stderr.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

/// Who carries connections.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Path {
    /// The kernel, for listeners that it can do everything for and if this process may tell it what to do; else this process.
    Auto,
    /// This process.
    UserSpace,
    /// The kernel.
    Kernel,
}

impl Lb {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        // A file that is wrong from the start is a mistake; one that gets wrong later is not worth an outage.
        let wanted = file::read(&self.config).map_err(|error| Failure::lb_config(&error))?;
        if self.check {
            println!("{}: {} listeners", self.config.display(), wanted.listeners.len());
            return Ok(());
        }
        logs::start(self.log_format);
        let files = allow_many_files();
        let threads =
            self.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let path = match self.data_path {
            Path::Auto => DataPath::Auto,
            Path::UserSpace => DataPath::UserSpace,
            Path::Kernel => DataPath::Kernel,
        };
        let balancer = Balancer::start(path, threads).map_err(|error| Failure::lb(&error))?;
        tracing::info!(threads, files, ?path, "ready to carry connections");
        let pages = match self.metrics_address {
            Some(address) => Some(lb::listen_pages(address).await.map_err(|error| Failure::lb(&error))?),
            None => None,
        };
        let (look, at_once) = mpsc::channel(1);
        let mut hangup = signal(SignalKind::hangup())?;
        let asked = async {
            while hangup.recv().await.is_some() {
                // One is enough for any number of signals.
                let _ = look.try_send(());
            }
        };
        let serve = async {
            match pages {
                Some(pages) => lb::serve_pages(pages, &balancer).await,
                None => std::future::pending().await,
            }
        };
        let mut serve = std::pin::pin!(serve);
        let end = signals::asked_to_end()?;
        tokio::select! {
            () = file::follow(&self.config, &balancer, at_once) => {}
            () = &mut serve => {}
            () = asked => {}
            () = end => {}
        }
        tracing::info!("stopping: open connections may finish; ask again to end them");
        let again = signals::asked_to_end()?;
        tokio::select! {
            () = balancer.finish() => {}
            () = &mut serve => {}
            () = again => {}
        }
        Ok(())
    }
}
