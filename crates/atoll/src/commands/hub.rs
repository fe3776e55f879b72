//! `atoll hub`: runs the hub until a signal ends it.

mod api;
mod audit;
mod backup;
pub(crate) mod embedded;
mod encryption;
mod restore;

pub(crate) use embedded::default_data_dir;

use std::net::SocketAddr;
use std::num::NonZero;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use atoll_engine::facts::{Liveness, Settings};
use atoll_engine::names::Namespace;
use atoll_hub::Options;
use atoll_hub::balancing::Balancing;
use atoll_hub::connect::Api;
use atoll_hub::explain::Questions;
use atoll_hub::options::{Explain, Propagation, Unstamped};
use clap::{ArgAction, Args, Subcommand, ValueEnum};

use atoll_kubeapi::hosted::HostOptions;
use atoll_lb::provider::{Access, Registry, RegistryError};
use atoll_lb::{Balancer, DataPath, allow_many_files};
use atoll_lb_kube::{Follow, Pool, follow};
use embedded::Embedded;

use crate::failure::Failure;
use crate::logs::{self, Format};
use crate::signals;

/// Run the hub.
///
/// By default the hub has an API server of its own. With --kubeconfig, with --context or in a pod it uses an existing one; $KUBECONFIG
/// alone does not change that.
#[derive(Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:
  # Run with an API server of its own, with its data in ~/.atoll
  atoll hub

  # Serve that API to other hosts
  atoll hub --data-dir /var/lib/atoll --api-address 0.0.0.0:6443 \\
    --api-name hub.example.com

  # With an audit log and an encrypted store
  head -c 32 /dev/urandom | base64 | install -m 600 /dev/stdin /etc/atoll/keys
  atoll hub --data-dir /var/lib/atoll --encryption-key-file /etc/atoll/keys \\
    --audit-log-path /var/log/atoll/audit.log

  # Use an existing API server; one of several replicas is the leader
  atoll hub --context hub --identity hub-1

  # Load balancers for MultiClusterServices, in this process
  atoll hub --lb-pool 192.0.2.0/28,2001:db8::/124 --lb --lb-interface eth0

  # The same, with connections balanced by `atoll lb --hub` on other hosts
  atoll hub --lb-pool 192.0.2.0/28

  # Load balancers of an external provider: see docs/lb.md
  atoll hub --lb-provider unix:///run/atoll/provider.sock
  atoll hub --lb-provider grpcs://lb.example.com:7070 \\
    --lb-provider-ca ca.crt --lb-provider-cert hub.crt --lb-provider-key hub.key"
)]
pub(crate) struct Hub {
    #[command(subcommand)]
    command: Option<DataCommand>,
    #[command(flatten)]
    api: api::ServedApi,
    /// Address of the hub's own API server.
    #[arg(long, default_value = "127.0.0.1:6443", value_name = "ADDRESS")]
    api_address: SocketAddr,
    /// Additional name or address in the certificate of the hub's own API server. Can be repeated.
    #[arg(long, value_name = "NAME")]
    api_name: Vec<String>,
    /// Address and port of this host where an existing API server asks this hub for explanations [default: none].
    #[arg(long, value_name = "ADDRESS", value_parser = reachable)]
    explain_address: Option<SocketAddr>,
    /// How long the leader or a member may be silent before it counts as lost; from 2s to 60m.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = atoll_duration::parse)]
    lease_time: Duration,
    /// Name of this replica: stable across restarts, unique among replicas [default: the host name].
    #[arg(long, value_name = "NAME", env = "ATOLL_IDENTITY")]
    identity: Option<String>,
    /// Address to serve /healthz, /readyz and /metrics on, or `none`.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:9464", value_parser = address)]
    metrics_address: Address,
    /// What to do with the endpoints of a lost member; exports can override it.
    #[arg(long, value_name = "POLICY", value_enum, default_value_t = LostMembers::Retain)]
    liveness: LostMembers,
    /// Create the namespaces of the hub in every member.
    #[arg(long, value_name = "BOOL", default_value_t = true, action = ArgAction::Set, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    namespace_sync: bool,
    /// Use members that were joined with --allow-insecure, without a check of their certificate.
    #[arg(long)]
    allow_insecure_members: bool,
    /// System namespace, such as kube-system, whose services may be exported and imported. Can be repeated.
    #[arg(long, value_name = "NAME", value_parser = namespace)]
    allow_namespace: Vec<Namespace>,
    /// Namespace whose services are never exported or imported; * stands for any part of a name. Can be repeated.
    #[arg(long, value_name = "NAME")]
    deny_namespace: Vec<String>,
    #[command(flatten)]
    audit: audit::AuditLog,
    #[command(flatten)]
    encryption: encryption::Encryption,
    #[command(flatten)]
    propagation: PropagationRules,
    #[command(flatten)]
    lb: LoadBalancers,
    /// Format of log lines; logs go to stderr.
    #[arg(long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    log_format: Format,
}

/// What policies may do.
#[derive(Args, Debug)]
struct PropagationRules {
    /// Policies and `MultiClusterServices` whose author is not known: ignore them, or accept them unchecked.
    #[arg(long, value_name = "ACTION", value_enum, default_value_t = UnstampedPolicies::Refuse)]
    unstamped_policies: UnstampedPolicies,
    /// Copy spec.externalIPs of Services to members; whoever sets them can take others' traffic.
    #[arg(long)]
    allow_external_ips: bool,
    /// Accept bindings that an older hub wrote without a seal; for the first start after an upgrade.
    #[arg(long)]
    adopt_bindings: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum UnstampedPolicies {
    /// Ignore them; existing copies stay.
    Refuse,
    /// Accept them, as if their authors had all rights.
    Allow,
}

impl PropagationRules {
    fn propagation(&self) -> Propagation {
        Propagation {
            unstamped: match self.unstamped_policies {
                UnstampedPolicies::Refuse => Unstamped::Refuse,
                UnstampedPolicies::Allow => Unstamped::Allow,
            },
            external_ips: self.allow_external_ips,
            adopt_bindings: self.adopt_bindings,
            ..Propagation::default()
        }
    }
}

/// Load balancers for `MultiClusterServices` of type `LoadBalancer`.
#[derive(Args, Debug)]
struct LoadBalancers {
    /// Load balancer provider: `builtin`, `none` (another controller provides them), `unix:///PATH` or `grpcs://HOST:PORT`.
    #[arg(long, value_name = "PROVIDER", default_value = "builtin")]
    lb_provider: String,
    /// CA of the provider's certificate; for `grpcs://`.
    #[arg(long, value_name = "FILE", requires = "lb_provider")]
    lb_provider_ca: Option<PathBuf>,
    /// Certificate that the hub shows to the provider. It and its key are read again for each connection.
    #[arg(long, value_name = "FILE", requires = "lb_provider")]
    lb_provider_cert: Option<PathBuf>,
    /// Key of that certificate.
    #[arg(long, value_name = "FILE", requires = "lb_provider")]
    lb_provider_key: Option<PathBuf>,
    /// Name in the provider's certificate [default: the host of its address].
    #[arg(long, value_name = "NAME", requires = "lb_provider")]
    lb_provider_server_name: Option<String>,
    /// Allow plain text to a provider at a loopback address, `grpc://127.0.0.1:PORT`. Every user of this host can then listen there
    /// in its place: for trials.
    #[arg(long, requires = "lb_provider")]
    lb_provider_plaintext: bool,
    /// Addresses that the built-in balancer assigns to services, one per IP family. Comma-separated.
    #[arg(long, value_name = "CIDR", default_value = "", hide_default_value = true)]
    lb_pool: Pool,
    /// How many addresses of the pool the services of one namespace can have [default: no limit].
    #[arg(long, value_name = "NUMBER", requires = "lb_pool")]
    lb_addresses_per_namespace: Option<NonZero<usize>>,
    /// Balance connections in this process, without privileges; otherwise run `atoll lb --hub`.
    #[arg(long)]
    lb: bool,
    /// Network interface that --lb adds the addresses to [default: none; the host must have them].
    #[arg(long, value_name = "NAME", requires = "lb")]
    lb_interface: Option<String>,
    /// Address to serve /readyz and /metrics of --lb on [default: not served].
    #[arg(long, value_name = "ADDRESS", requires = "lb")]
    lb_metrics_address: Option<SocketAddr>,
    /// Clusters that --lb prefers, nearest first, for services without tiers. Comma-separated.
    #[arg(long, value_name = "CLUSTERS", value_delimiter = ',', requires = "lb")]
    lb_near: Vec<String>,
}

impl LoadBalancers {
    fn balancing(&self) -> anyhow::Result<Balancing> {
        match self.lb_provider.as_str() {
            "builtin" => {
                let pool = self.lb_pool.clone();
                return Ok(match self.lb_addresses_per_namespace {
                    Some(most) => Balancing::Limited(pool, most.get()),
                    None => Balancing::BuiltIn(pool),
                });
            }
            other if self.lb || !self.lb_pool.is_empty() => {
                let what =
                    format!("--lb and --lb-pool need the built-in provider, but --lb-provider is `{other}`");
                return Err(
                    Failure::usage(&what, "remove --lb-provider, or remove --lb and --lb-pool").into()
                );
            }
            "none" => return Ok(Balancing::Off),
            _ => {}
        }
        let access = Access {
            ca: self.lb_provider_ca.clone(),
            certificate: self.lb_provider_cert.clone(),
            key: self.lb_provider_key.clone(),
            server_name: self.lb_provider_server_name.clone(),
            plaintext: self.lb_provider_plaintext,
        };
        let found = Registry::default().find(&self.lb_provider, &access);
        found.map(Balancing::Provider).map_err(|error| match error {
            RegistryError::Unknown { name, .. } => {
                let what = format!("unknown load balancer provider `{name}`");
                Failure::usage(&what, "use builtin, none, unix:///PATH, or grpcs://HOST:PORT").into()
            }
            RegistryError::Remote(error) => {
                let hint = "see --lb-provider, --lb-provider-ca, --lb-provider-cert, --lb-provider-key and --lb-provider-plaintext";
                Failure::usage(&error.to_string(), hint).into()
            }
        })
    }
}

/// A balancer in this process, for what the built-in provider publishes in the hub's API.
pub(crate) fn balancer() -> anyhow::Result<Balancer> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    allow_many_files();
    Ok(Balancer::start(DataPath::UserSpace, threads).map_err(|error| Failure::lb(&error))?)
}

/// Commands on the data of a hub, instead of running it.
#[derive(Subcommand)]
enum DataCommand {
    Backup(backup::Backup),
    Restore(restore::Restore),
}

#[derive(Clone)]
struct Address(Option<SocketAddr>);

#[derive(Clone, Copy, ValueEnum)]
enum LostMembers {
    /// Keep the endpoints, marked as stale.
    Retain,
    /// Remove the endpoints.
    Withdraw,
}

/// An address that another program can connect to.
fn reachable(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr =
        text.parse().map_err(|_| format!("invalid address `{text}`: use IP:PORT, such as 192.0.2.7:9443"))?;
    let ip = address.ip();
    if ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || address.port() == 0 {
        return Err(format!(
            "the API server cannot connect to `{text}`: use an address of this host that it reaches, and a port"
        ));
    }
    Ok(address)
}

fn namespace(text: &str) -> Result<Namespace, String> {
    Namespace::parse(text).map_err(|_| format!("`{text}` is not the name of a namespace"))
}

fn address(text: &str) -> Result<Address, String> {
    if text == "none" {
        return Ok(Address(None));
    }
    text.parse()
        .map(|address| Address(Some(address)))
        .map_err(|_| format!("invalid address `{text}`: use IP:PORT, such as 127.0.0.1:9464, or none"))
}

impl Hub {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        match self.command {
            Some(DataCommand::Backup(backup)) => return Box::pin(backup.run()).await,
            Some(DataCommand::Restore(restore)) => return restore.run(),
            None => {}
        }
        let balancing = self.lb.balancing()?;
        logs::start(self.log_format);
        let identity = match self.identity {
            Some(identity) => identity,
            None => host().context("cannot determine the host name; set --identity")?,
        };
        let audit = self.audit.open()?;
        let keys = self.encryption.keys()?;
        let questions = Questions::default();
        let own = match self.api.own_data_dir() {
            Some(_) if self.explain_address.is_some() => {
                let what = "--explain-address is for an existing API server; the hub's own answers by itself";
                return Err(Failure::usage(
                    what,
                    "remove --explain-address, or name an API server by --kubeconfig or --context",
                )
                .into());
            }
            Some(data_dir) => {
                let host =
                    HostOptions { data_dir: &data_dir, address: self.api_address, names: &self.api_name };
                Some(
                    Embedded::start(&host, audit.clone(), keys, questions.clone())
                        .await
                        .map_err(|error| Failure::own_api(&error))?,
                )
            }
            None => None,
        };
        let api = match &own {
            Some(own) => Api::within(own.client()),
            None => Api::reached_by(self.api.config().await?)?,
        };
        let liveness = match self.liveness {
            LostMembers::Retain => Liveness::Retain,
            LostMembers::Withdraw => Liveness::Withdraw,
        };
        let options = Options {
            namespace: self.api.namespace,
            lease_time: self.lease_time,
            metrics_address: self.metrics_address.0,
            settings: Settings { liveness, ..Settings::default() },
            sync_namespaces: self.namespace_sync,
            allowed_namespaces: self.allow_namespace,
            denied_namespaces: self.deny_namespace,
            balancing,
            audit: audit.clone(),
            propagation: self.propagation.propagation(),
            allow_insecure_members: self.allow_insecure_members,
            questions,
            explain: match (&own, self.explain_address) {
                (Some(_), _) => Explain::ByApi,
                (None, Some(address)) => Explain::At(address),
                (None, None) => Explain::Nowhere,
            },
            ..Options::new(identity)
        };
        let asked = signals::shutdown()?;
        let shutdown = async move {
            asked.await;
            tracing::info!("stopping");
        };
        let following = Follow {
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
        let balancing = async {
            match (&balancer, pages) {
                (Some(balancer), Some(pages)) => {
                    tokio::join!(
                        follow(client, balancer, &following),
                        atoll_lb::serve_pages(pages, balancer)
                    );
                }
                (Some(balancer), None) => follow(client, balancer, &following).await,
                (None, _) => {}
            }
            std::future::pending::<()>().await;
        };
        let mut hub = Box::pin(atoll_hub::run(api, options, shutdown));
        let ended = tokio::select! {
            ended = &mut hub => ended,
            () = balancing => Ok(()),
        };
        drop(own);
        if let Some(balancer) = &balancer {
            tracing::info!("waiting for open connections to finish; a second signal closes them");
            let again = signals::shutdown()?;
            tokio::select! {
                () = balancer.finish() => {}
                () = again => {}
            }
        }
        if let Some(audit) = &audit {
            audit.flush(Duration::from_secs(2));
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
