//! `atoll lb`: balances connections until a signal ends it.

mod credentials;
mod role;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;

use atoll_hub::connect;
use atoll_lb::{Balancer, DataPath, allow_many_files, file};
use atoll_lb_kube::{Follow, client, follow};
use clap::{Args, Subcommand, ValueEnum};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Balance connections across clusters, at layer 4.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  # Balance the MultiClusterServices of the hub on this host; the state file
  # lets it restart while the hub is down
  atoll lb credentials > lb.kubeconfig
  atoll lb --hub lb.kubeconfig --interface eth0 \\
    --state /var/lib/atoll/lb.json

  # Prefer backends in paris, then in tokyo
  atoll lb --hub lb.kubeconfig --near paris,tokyo

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
    - {address: 10.3.0.2:8080, cluster: oslo}

See docs/lb.md for all fields and their defaults. A change of the configuration
closes no connection. The first SIGTERM waits for open connections to finish
(`drain`), the second closes them. SIGHUP reloads the file at once."
)]
pub(crate) struct Lb {
    #[command(subcommand)]
    command: Option<LbCommand>,
    /// Configuration file with listeners and backends.
    #[arg(long, value_name = "FILE", required_unless_present = "hub")]
    config: Option<PathBuf>,
    /// Check the configuration file and exit.
    #[arg(long, conflicts_with = "hub")]
    check: bool,
    /// Kubeconfig of the hub's API, from `atoll lb credentials`; balances its `MultiClusterServices` of type `LoadBalancer`.
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    hub: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT", requires = "hub", conflicts_with = "config")]
    context: Option<String>,
    /// Namespace in the hub's API for Atoll's credentials and state.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_lb_kube::NAMESPACE, conflicts_with = "config")]
    namespace: String,
    /// Network interface to add the addresses to, and to announce them on [default: none; the host must have them].
    #[arg(long, value_name = "NAME", requires = "hub", conflicts_with = "config")]
    interface: Option<String>,
    /// File to save the last configuration from the hub in, for restarts while the hub is down; same format as --config.
    #[arg(long, value_name = "FILE", requires = "hub", conflicts_with = "config")]
    state: Option<PathBuf>,
    /// Clusters to prefer, nearest first, for services without tiers. Other clusters are used when these have no healthy backend.
    /// Comma-separated.
    #[arg(long, value_name = "CLUSTERS", value_delimiter = ',', requires = "hub", conflicts_with = "config")]
    near: Vec<String>,
    /// Data path. The kernel path needs the capability `NET_ADMIN`. It keeps connections and rules when this process exits, and does
    /// not support the PROXY protocol, `LeastConnections` or limits.
    #[arg(long, value_name = "PATH", value_enum, default_value_t = Path::Auto)]
    data_path: Path,
    /// Number of worker threads [default: one per CPU].
    #[arg(long, value_name = "NUMBER")]
    threads: Option<NonZero<usize>>,
    /// Address to serve /healthz, /readyz and /metrics on [default: not served].
    #[arg(long, value_name = "ADDRESS")]
    metrics_address: Option<SocketAddr>,
    /// Format of log lines; logs go to stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

#[derive(Subcommand)]
enum LbCommand {
    Credentials(credentials::Credentials),
    Role(role::Role),
}

/// Which data path carries connections.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Path {
    /// The kernel, for listeners that it fully supports, if this process has `NET_ADMIN` and `net.ipv4.ip_forward` is on; otherwise
    /// this process.
    Auto,
    /// This process, in user space.
    UserSpace,
    /// The kernel (nftables).
    Kernel,
}

impl Lb {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match &self.command {
            Some(LbCommand::Credentials(credentials)) => return Box::pin(credentials.run()).await,
            Some(LbCommand::Role(role)) => return role.run(),
            None => {}
        }
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
                // Read here first: these errors quote nothing of the file.
                connect::read(Some(kubeconfig)).map_err(|error| Failure::connect(&error))?;
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
        tracing::info!(threads, files, ?path, "ready");
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
        tracing::info!("stopping: waiting for open connections to finish; a second signal closes them");
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
