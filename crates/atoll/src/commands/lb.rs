//! `atoll lb`: runs a load balancer until it is told to stop.

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

use atoll_lb::{Balancer, DataPath, allow_many_files, file};
use atoll_lb_kube::{Follow, client, follow};
use clap::{Args, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Run a layer 4 load balancer for backends in many clusters.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll lb --hub hub.kubeconfig --interface eth0 --state /var/lib/atoll/lb.json
                                                  services of the hub, on this machine; also while the hub is down
  atoll lb --hub hub.kubeconfig --near paris,tokyo pods of paris, then of tokyo, then of the others
  atoll lb --config lb.yaml                       listeners from a file
  atoll lb --config lb.yaml --check               check the file and exit
  kill -HUP <pid>                                  read the file now; changes are noticed within a second anyway

  # Prefer backends in paris, then in tokyo
  atoll lb --hub hub.kubeconfig --near paris,tokyo

  # Use a configuration file; changes are applied within a second
  atoll lb --config lb.yaml

  # Check the file and exit
  atoll lb --config lb.yaml --check

Configuration file:
  listeners:
  - name: shop/web
    address: 127.0.0.1:8080
    protocol: TCP              # or UDP
    algorithm: Maglev          # or LeastConnections
    clusters:
      paris: {weight: 3}       # three of four connections
      tokyo: {weight: 1, tier: 0}
      oslo: {tier: 1}          # only if tier 0 has no healthy backend
    health: {interval: 500ms, timeout: 500ms, rise: 2, fall: 2}
    backends:
    - {address: 10.1.0.4:8080, cluster: paris}
    - {address: 10.2.0.9:8080, cluster: tokyo}
Further fields of a listener: interface (its address is added there), affinity, ejection, drain, proxyProtocol, source {keep} or {first, last}, limits {connections, perClient}, connectTimeout,
idleTimeout; of a backend: weight, draining; docs/lb.md lists all with their defaults. A change drops no connection. The first SIGTERM lets open connections
finish (`drain`), the second ends them.")]
pub(crate) struct Lb {
    /// The file with listeners and their backends.
    #[arg(long, value_name = "FILE", required_unless_present = "hub")]
    config: Option<PathBuf>,
    /// Check the file and exit.
    #[arg(long, conflicts_with = "hub")]
    check: bool,
    /// The kubeconfig of the hub's API: serve its `MultiClusterServices` of type `LoadBalancer`.
    #[arg(long, value_name = "KUBECONFIG", conflicts_with = "config")]
    hub: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT", requires = "hub", conflicts_with = "config")]
    context: Option<String>,
    /// The namespace of the hub in its API.
    #[arg(long, default_value = atoll_lb_kube::NAMESPACE, conflicts_with = "config")]
    namespace: String,
    /// The interface that addresses are added to and announced on [default: they are there already].
    #[arg(long, value_name = "NAME", requires = "hub", conflicts_with = "config")]
    interface: Option<String>,
    /// The file that keeps the last configuration of the hub, for a restart while the hub is down; same format as --config.
    #[arg(long, value_name = "FILE", requires = "hub", conflicts_with = "config")]
    state: Option<PathBuf>,
    /// The clusters that this load balancer prefers, the nearest first, separated by commas; the others are used when none of these has a
    /// healthy backend. For services without tiers of their own.
    #[arg(long, value_name = "CLUSTERS", value_delimiter = ',', requires = "hub", conflicts_with = "config")]
    near: Vec<String>,
    /// What forwards connections. The kernel needs the capability `NET_ADMIN`, keeps connections and rules when this process ends, and
    /// supports neither the PROXY protocol, nor least connections, nor limits.
    #[arg(long, value_enum, default_value_t = Path::Auto)]
    data_path: Path,
    /// The number of threads that forward connections [default: one per processor].
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZero<usize>>,
    /// Where /healthz, /readyz and /metrics are served [default: nowhere].
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// Format of log lines; logs go to stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

/// What forwards connections.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Path {
    /// The kernel for each listener that it fully supports, if this process may configure it and packets are forwarded
    /// (`net.ipv4.ip_forward`); else this process.
    Auto,
    /// This process, in user space.
    UserSpace,
    /// The kernel (nftables).
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
                let client = client(kubeconfig, self.context.as_deref()).await;
                Some(client.map_err(|error| Failure::lb_hub(&error))?)
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
        tracing::info!(threads, files, ?path, "ready for connections");
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
        let end = signals::shutdown()?;
        tokio::select! {
            () = self.follow(hub, &balancer, at_once) => {}
            () = &mut serve => {}
            () = asked => {}
            () = end => {}
        }
        tracing::info!("stopping: open connections may finish; a second signal ends them");
        balancer.stopping();
        let again = signals::shutdown()?;
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
                let following = Follow {
                    namespace: self.namespace.clone(),
                    interface: self.interface.as_deref().map(Into::into),
                    state: self.state.clone(),
                    near: self.near.clone(),
                };
                follow(client, balancer, &following).await;
            }
            (None, None) => {} // clap asks for one of them
        }
    }
}
