//! `atoll hub`: runs the hub until it is told to stop.

mod backup;
pub(crate) mod embedded;
mod restore;

pub(crate) use embedded::default_data_dir;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use atoll_engine::facts::{Liveness, Settings};
use atoll_hub::Options;
use atoll_hub::balancing::{Balancing, Carrying, carry};
use atoll_hub::connect::Api;
use atoll_hub::networks::Ranges;
use clap::{ArgAction, Args, Subcommand, ValueEnum};

use atoll_kubeapi::hosted::HostOptions;
use atoll_lb::provider::Registry;
use atoll_lb::{Balancer, DataPath, allow_many_files};
use embedded::Embedded;

use crate::cli::{HubApi, duration};
use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Run the hub.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  atoll hub                                     with an API of its own, its data in ~/.atoll
  atoll hub --data-dir /var/lib/atoll --api-address 0.0.0.0:6443 --api-name hub.example.com
  atoll hub --context hub --identity hub-1      on another API: one of several replicas; one leads, the others stand by
  atoll hub --log-format json --metrics-address 0.0.0.0:9464
  atoll hub --lb-pool 192.0.2.0/28,2001:db8::/124 --lb --lb-interface eth0
                                                load balancers for MultiClusterServices, carried by this process
  atoll hub --lb-pool 192.0.2.0/28              the same, carried by `atoll lb --hub` on other machines
  atoll hub --lb-provider grpc://127.0.0.1:7070 made by somebody else: see docs/lb.md"
)]
pub(crate) struct Hub {
    #[command(subcommand)]
    instead: Option<Instead>,
    #[command(flatten)]
    api: HubApi,
    /// Where the hub's own API is served.
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDRESS")]
    api_address: SocketAddr,
    /// A further name or address that the hub's own API is reached by, for its certificate.
    #[arg(long, value_name = "NAME")]
    api_name: Vec<String>,
    /// How long the leader, or a member, may be silent before it counts as lost; 2s to 60m.
    #[arg(long, default_value = "10s", value_parser = duration)]
    lease_time: Duration,
    /// Who this replica is: the same after a restart, different in each replica [default: the host's name].
    #[arg(long, env = "ATOLL_IDENTITY")]
    identity: Option<String>,
    /// Where /healthz, /readyz and /metrics are served; `none` for nowhere.
    #[arg(long, default_value = "127.0.0.1:9464", value_parser = address)]
    metrics_address: Address,
    /// What happens to the endpoints of a lost member, for exports that do not say.
    #[arg(long, value_enum, default_value_t = Lost::Retain)]
    liveness: Lost,
    /// Whether namespaces of the hub are made in every member.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespace_sync: bool,
    #[command(flatten)]
    lb: LoadBalancers,
    /// How logs are written, to stderr.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

/// Who makes load balancers for `MultiClusterServices` of type `LoadBalancer`, and how.
#[derive(Args, Debug)]
struct LoadBalancers {
    /// Who makes load balancers: `builtin`, `none` (they are another controller's), or grpc://HOST:PORT.
    #[arg(long, value_name = "PROVIDER", default_value = "builtin")]
    lb_provider: String,
    /// The addresses that the built-in balancer gives to services, with commas in between; one of each family to each.
    #[arg(long, value_name = "RANGES", default_value = "", hide_default_value = true)]
    lb_pool: Ranges,
    /// Carry connections in this process too, without privilege; else `atoll lb --hub` does.
    #[arg(long)]
    lb: bool,
    /// The interface that addresses are put on where this process carries connections [default: they are there already].
    #[arg(long, value_name = "NAME", requires = "lb")]
    lb_interface: Option<String>,
    /// Where the /readyz and /metrics of what this process carries are served; nowhere if not given.
    #[arg(long, value_name = "ADDRESS", requires = "lb")]
    lb_metrics_address: Option<SocketAddr>,
    /// Clusters that this process prefers where it carries connections, the nearest first; for services without tiers.
    #[arg(long, value_name = "CLUSTERS", value_delimiter = ',', requires = "lb")]
    lb_near: Vec<String>,
}

impl LoadBalancers {
    fn balancing(&self) -> anyhow::Result<Balancing> {
        match self.lb_provider.as_str() {
            "builtin" => return Ok(Balancing::BuiltIn(self.lb_pool.clone())),
            other if self.lb || !self.lb_pool.0.is_empty() => {
                let what = format!("--lb and --lb-pool are for the built-in balancer, and not for `{other}`");
                return Err(Failure::usage(&what, "leave out --lb-provider, or the others").into());
            }
            "none" => return Ok(Balancing::Nobody),
            _ => {}
        }
        let found = Registry::default().find(&self.lb_provider);
        found.map(Balancing::By).map_err(|_| {
            let what = format!("`{}` makes no load balancers", self.lb_provider);
            Failure::usage(&what, "choose builtin, none, or grpc://HOST:PORT").into()
        })
    }
}

/// A balancer in this process, for what the built-in provider publishes in the hub's API.
pub(crate) fn balancer() -> anyhow::Result<Balancer> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    allow_many_files();
    Ok(Balancer::start(DataPath::UserSpace, threads).map_err(|error| Failure::lb(&error))?)
}

/// What can be done with a hub's data instead of running it.
#[derive(Subcommand)]
enum Instead {
    Backup(backup::Backup),
    Restore(restore::Restore),
}

#[derive(Clone)]
struct Address(Option<SocketAddr>);

#[derive(Clone, Copy, ValueEnum)]
enum Lost {
    /// Keep them, marked stale.
    Retain,
    /// Take them away.
    Withdraw,
}

fn address(text: &str) -> Result<Address, String> {
    if text == "none" {
        return Ok(Address(None));
    }
    text.parse()
        .map(|address| Address(Some(address)))
        .map_err(|_| format!("`{text}` is no address such as 127.0.0.1:9464"))
}

impl Hub {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.instead {
            Some(Instead::Backup(backup)) => return Box::pin(backup.run()).await,
            Some(Instead::Restore(restore)) => return restore.run(),
            None => {}
        }
        let balancing = self.lb.balancing()?;
        logs::start(self.log_format);
        let identity = match self.identity {
            Some(identity) => identity,
            None => host().context("cannot tell who this replica is; say it with --identity")?,
        };
        let own = match self.api.own_data_dir() {
            Some(data_dir) => {
                let host =
                    HostOptions { data_dir: &data_dir, address: self.api_address, names: &self.api_name };
                Some(Embedded::start(&host).await.map_err(|error| Failure::own_api(&error))?)
            }
            None => None,
        };
        let api = match &own {
            Some(own) => Api::within(own.client()),
            None => Api::reached_by(self.api.config().await?)?,
        };
        let liveness = match self.liveness {
            Lost::Retain => Liveness::Retain,
            Lost::Withdraw => Liveness::Withdraw,
        };
        let options = Options {
            namespace: self.api.namespace,
            lease_time: self.lease_time,
            metrics_address: self.metrics_address.0,
            settings: Settings { liveness, ..Settings::default() },
            sync_namespaces: self.namespace_sync,
            balancing,
            ..Options::new(identity)
        };
        let asked = signals::asked_to_end()?;
        let shutdown = async move {
            asked.await;
            tracing::info!("stopping");
        };
        let carrying = Carrying {
            namespace: options.namespace.clone(),
            interface: self.lb.lb_interface.as_deref().map(Into::into),
            state: None,
            near: self.lb.lb_near,
        };
        let balancer = self.lb.lb.then(balancer).transpose()?;
        let pages = match self.lb.lb_metrics_address {
            Some(address) => {
                Some(atoll_lb::listen_pages(address).await.map_err(|error| Failure::lb(&error))?)
            }
            None => None,
        };
        let client = api.watches.clone();
        let carried = async {
            match (&balancer, pages) {
                (Some(balancer), Some(pages)) => {
                    tokio::join!(carry(client, balancer, &carrying), atoll_lb::serve_pages(pages, balancer));
                }
                (Some(balancer), None) => carry(client, balancer, &carrying).await,
                (None, _) => {}
            }
            std::future::pending::<()>().await;
        };
        let mut hub = Box::pin(atoll_hub::run(api, options, shutdown));
        let ended = tokio::select! {
            ended = &mut hub => ended,
            () = carried => Ok(()),
        };
        drop(own);
        if let Some(balancer) = &balancer {
            tracing::info!("open connections may finish; ask again to end them");
            let again = signals::asked_to_end()?;
            tokio::select! {
                () = balancer.finish() => {}
                () = again => {}
            }
        }
        Ok(ended?)
    }
}

/// The host's name: in a pod, the pod's.
fn host() -> Option<String> {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname")
        .or_else(|_| std::fs::read_to_string("/etc/hostname"));
    let name = std::env::var("HOSTNAME").ok().or_else(|| read.ok())?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}
