//! `atoll lb`: carries connections until it is told to stop.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

use atoll_hub::balancing::{Carrying, carry};
use atoll_hub::connect;
use atoll_lb::{Balancer, DataPath, allow_many_files, file};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Carry connections from one address to backends of many clusters, at layer 4.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll lb --hub hub.kubeconfig --interface eth0 --state /var/lib/atoll/lb.json
                                                  what the hub says, on this machine; also while the hub is gone
  atoll lb --hub hub.kubeconfig --near paris,tokyo pods of paris, then of tokyo, then of the others
  atoll lb --config lb.yaml                       what a file says
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
idleTimeout; of a backend: weight, draining: docs/lb.md has all with their defaults. A change drops no connection; the first SIGTERM lets open ones finish
(`drain`), the second ends them.")]
pub(crate) struct Lb {
    /// The file that says where to listen, and for which backends.
    #[arg(long, value_name = "FILE", required_unless_present = "hub")]
    config: Option<PathBuf>,
    /// Only check the file.
    #[arg(long, conflicts_with = "hub")]
    check: bool,
    /// The kubeconfig of the hub's API, which says what to carry: `MultiClusterServices` of type `LoadBalancer`.
    #[arg(long, value_name = "KUBECONFIG", conflicts_with = "config")]
    hub: Option<PathBuf>,
    /// The context in it [default: its current one].
    #[arg(long, requires = "hub", conflicts_with = "config")]
    context: Option<String>,
    /// The namespace of the hub in its API.
    #[arg(long, default_value = atoll_hub::options::NAMESPACE, conflicts_with = "config")]
    namespace: String,
    /// The interface that addresses are put on, and announced [default: they are there already].
    #[arg(long, value_name = "NAME", requires = "hub", conflicts_with = "config")]
    interface: Option<String>,
    /// Where to note what the hub said last, so that a restart can do without it; of the same form as --config.
    #[arg(long, value_name = "FILE", requires = "hub", conflicts_with = "config")]
    state: Option<PathBuf>,
    /// Clusters that this balancer prefers, the nearest first, with commas in between; the others take over when none of these has
    /// anybody healthy. For services that have no tiers of their own.
    #[arg(long, value_name = "CLUSTERS", value_delimiter = ',', requires = "hub", conflicts_with = "config")]
    near: Vec<String>,
    /// Who carries connections. The kernel needs the capability `NET_ADMIN`, keeps connections and rules when this process ends, and
    /// knows neither the PROXY protocol, nor least connections, nor limits.
    #[arg(long, value_enum, default_value_t = Path::Auto)]
    data_path: Path,
    /// How many threads carry connections [default: one per processor].
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZero<usize>>,
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
    /// The kernel, for listeners that it can do everything for, if this process may tell it what to do and packets are forwarded
    /// (`net.ipv4.ip_forward`); else this process.
    Auto,
    /// This process.
    UserSpace,
    /// The kernel.
    Kernel,
}

impl Lb {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if let Some(config) = &self.config {
            // A file that is wrong from the start is a mistake; one that gets wrong later is not worth an outage.
            let wanted = file::read(config).map_err(|error| Failure::lb_config(&error))?;
            if self.check {
                println!("{}: {} listeners", config.display(), wanted.listeners.len());
                return Ok(());
            }
        }
        let hub = match &self.hub {
            Some(kubeconfig) => {
                let config = connect::config(Some(kubeconfig), self.context.as_deref()).await?;
                Some(connect::Api::reached_by(config)?.watches)
            }
            None => None,
        };
        logs::start(self.log_format);
        let files = allow_many_files();
        let threads =
            self.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, usize::from);
        let path = match self.data_path {
            Path::Auto => DataPath::Auto,
            Path::UserSpace => DataPath::UserSpace,
            Path::Kernel => DataPath::Kernel,
        };
        let balancer = Balancer::start(path, threads).map_err(|error| Failure::lb(&error))?;
        tracing::info!(threads, files, ?path, "ready to carry connections");
        let pages = match self.metrics_address {
            Some(address) => {
                Some(atoll_lb::listen_pages(address).await.map_err(|error| Failure::lb(&error))?)
            }
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
                Some(pages) => atoll_lb::serve_pages(pages, &balancer).await,
                None => std::future::pending().await,
            }
        };
        let mut serve = std::pin::pin!(serve);
        let end = signals::asked_to_end()?;
        tokio::select! {
            () = self.follow(hub, &balancer, at_once) => {}
            () = &mut serve => {}
            () = asked => {}
            () = end => {}
        }
        tracing::info!("stopping: open connections may finish; ask again to end them");
        balancer.stopping();
        let again = signals::asked_to_end()?;
        tokio::select! {
            () = balancer.finish() => {}
            () = &mut serve => {}
            () = again => {}
        }
        Ok(())
    }

    /// Makes the balancer what the file or the hub says, as often as that changes.
    async fn follow(&self, hub: Option<kube::Client>, balancer: &Balancer, at_once: mpsc::Receiver<()>) {
        match (&self.config, hub) {
            (Some(config), _) => file::follow(config, balancer, at_once).await,
            (None, Some(client)) => {
                let carrying = Carrying {
                    namespace: self.namespace.clone(),
                    interface: self.interface.as_deref().map(Into::into),
                    state: self.state.clone(),
                    near: self.near.clone(),
                };
                carry(client, balancer, &carrying).await;
            }
            (None, None) => {} // clap asks for one of them
        }
    }
}
