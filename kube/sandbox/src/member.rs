//! One member: its API, its controllers, its node, its DNS.

use crate::block::Block;
use crate::controllers;
use crate::network::{Dialer, Network, Resolve};
use crate::node::{Node, NodeError, NodeOptions, Runtime};
use crate::programs::Confinement;
use atoll_dns::{Lookup, Name, Settings};
use atoll_dns_server::{Listening, Names};
use atoll_kubeapi::hosted::{HostError, HostOptions, Hosted};
use futures_util::future::BoxFuture;
use kube::Client;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// DNS's own port, where binding it is allowed.
const DNS_PORT: u16 = 53;
/// How long the sockets of a member that was stopped may take to be free.
const FREE_WITHIN: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(20);
/// How long an answer of DNS may be kept, in seconds.
const TTL: u32 = 5;

/// What a member is made of.
#[derive(Clone, Debug)]
pub struct Options {
    /// Its name.
    pub name: String,
    /// Where it keeps what it remembers.
    pub data_dir: PathBuf,
    /// Its addresses.
    pub block: Block,
    /// The sockets of all members of this process.
    pub network: Network,
    /// What keeps `process:` pods from what is not theirs; the member's own directory is hidden from them in any case.
    pub confinement: Confinement,
}

/// Why a member does not start.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// Its API does not.
    #[error("cannot start `{name}`: {source}")]
    Host {
        /// The member.
        name: String,
        /// What is wrong.
        source: HostError,
    },
    /// Its node does not.
    #[error("cannot start `{name}`: {source}")]
    Node {
        /// The member.
        name: String,
        /// What is wrong.
        source: NodeError,
    },
    /// Its DNS does not.
    #[error("cannot start `{name}`: {source}")]
    Dns {
        /// The member.
        name: String,
        /// What is wrong.
        source: atoll_dns_server::ServerError,
    },
}

/// A member that runs. It ends with this value.
pub struct Member {
    options: Options,
    dialer: Dialer,
    dns: SocketAddr,
    names: Names,
    hosted: Hosted,
    /// Ended in this order: pods while their API still answers.
    running: Mutex<Option<(Node, JoinSet<()>)>>,
}

impl Member {
    /// Starts everything on the runtime that this is called on.
    ///
    /// # Errors
    /// The directory or an address is taken, or the directory can't be used.
    pub async fn start(options: Options) -> Result<Self, MemberError> {
        let name = || options.name.clone();
        let (block, runtime) = (options.block, Runtime::new());
        let pods: Arc<dyn atoll_kubeapi::pods::Pods> = Arc::clone(&runtime) as _;
        let api = atoll_kubeapi::Options::default()
            .pods(pods)
            .service_network(block.service_cidr())
            .loopback_endpoints(true);
        let host =
            HostOptions { data_dir: &options.data_dir, address: SocketAddr::V4(block.api()), names: &[] };
        let hosted =
            Hosted::start(&host, api).await.map_err(|source| MemberError::Host { name: name(), source })?;
        let client = Client::new(hosted.api.admin(), "default");
        let mut tasks = JoinSet::new();
        let (names, dns) = serve_dns(&options, client.clone(), &mut tasks)
            .await
            .map_err(|source| MemberError::Dns { name: name(), source })?;
        tasks.spawn(crate::tokens::run(client.clone()));
        tasks.spawn(controllers::run(client.clone(), std::future::pending()));
        let node = NodeOptions {
            resolver: Arc::new(Resolver(names.clone())),
            network: options.network.clone(),
            confinement: options.confinement.and_hidden(&options.data_dir),
            ..NodeOptions::new(name(), block, client, runtime)
        };
        let node = Node::start(node).await.map_err(|source| MemberError::Node { name: name(), source })?;
        let dialer = node.dialer("default");
        Ok(Self { options, dialer, dns, names, hosted, running: Mutex::new(Some((node, tasks))) })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.options.name
    }

    /// Its addresses.
    pub fn block(&self) -> Block {
        self.options.block
    }

    /// Its API, for who may do everything.
    pub fn client(&self) -> Client {
        Client::new(self.hosted.api.admin(), "default")
    }

    /// How its API is reached from outside.
    pub fn url(&self) -> &str {
        &self.hosted.url
    }

    /// Its administrator's kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        &self.hosted.kubeconfig
    }

    /// Where its DNS answers.
    pub fn dns(&self) -> SocketAddr {
        self.dns
    }

    /// Does its DNS know everything that there is? Before, it answers nothing.
    pub fn knows_names(&self) -> bool {
        self.names.complete()
    }

    /// Reaches others as a pod of this member would.
    pub fn dialer(&self) -> Dialer {
        self.dialer.clone()
    }

    /// Switches it off: its API, its DNS, and its pods without a word. Sockets are free and processes gone when it is done.
    pub async fn stop(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((node, mut tasks)) = running {
            node.stop().await;
            tasks.shutdown().await;
        }
        self.hosted.stop();
    }
}

/// Answers `clusterset.local` and `cluster.local` at the member's DNS address.
async fn serve_dns(
    options: &Options,
    client: Client,
    tasks: &mut JoinSet<()>,
) -> Result<(Names, SocketAddr), atoll_dns_server::ServerError> {
    let at = |port| SocketAddr::from((options.block.dns(), port));
    let cluster = Name::parse("cluster.local").unwrap_or_default();
    let mut serving = atoll_dns_server::Options {
        cluster_zone: Some(Settings::cluster(cluster, TTL)),
        listen: vec![at(DNS_PORT)],
        sockets: 1,
        cluster: Name::parse(&options.name).ok(),
        ..atoll_dns_server::Options::default()
    };
    let give_up = tokio::time::Instant::now() + FREE_WITHIN;
    let listening = loop {
        match Listening::bind(&serving) {
            Ok(listening) => break listening,
            // This user may not: then higher up, as all ports below 1024.
            Err(atoll_dns_server::ServerError::Listen { source, .. })
                if source.kind() == ErrorKind::PermissionDenied && serving.listen == [at(DNS_PORT)] =>
            {
                serving.listen = vec![at(DNS_PORT + crate::network::OFFSET)];
            }
            // A member that was just stopped is still closing its sockets.
            Err(atoll_dns_server::ServerError::Listen { source, .. })
                if source.kind() == ErrorKind::AddrInUse && tokio::time::Instant::now() < give_up =>
            {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            Err(error) => return Err(error),
        }
    };
    let address = serving.listen[0];
    let names = Names::new(&serving);
    let answered = names.clone();
    tasks.spawn(async move {
        if let Err(error) = atoll_dns_server::serve_with(serving, listening, client, answered).await {
            tracing::error!(%error, "DNS has ended");
        }
    });
    Ok((names, address))
}

/// The member's DNS, asked without a socket.
struct Resolver(Names);

impl Resolve for Resolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        let found = match Name::parse(name).map(|name| self.0.lookup(&name)) {
            Ok(Lookup::Addresses(found)) => found,
            Ok(Lookup::NoSuchName(_) | Lookup::NotOurs | Lookup::NotSynced) | Err(_) => Vec::new(),
        };
        Box::pin(std::future::ready(found))
    }
}
