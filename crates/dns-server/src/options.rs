//! What can be chosen when a server is started.

use std::net::{IpAddr, SocketAddr};

use atoll_dns::{Name, Rate, Settings};
use ipnet::IpNet;

/// How a server runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The zone, and how long answers may be kept.
    pub settings: Settings,
    /// The cluster's own zone, where its Services are answered too; elsewhere its own DNS does that.
    pub cluster_zone: Option<Settings>,
    /// Where to listen, over UDP and TCP.
    pub listen: Vec<SocketAddr>,
    /// How many UDP sockets per address, each with a thread of its own.
    pub sockets: usize,
    /// Where `/healthz`, `/readyz` and `/metrics` are served; nowhere if none.
    pub metrics_address: Option<SocketAddr>,
    /// The id of the cluster that we are in; read from its `ClusterProperty` if none.
    pub cluster: Option<Name>,
    /// How often strangers are answered over UDP; as often as they like if none.
    pub rate_limit: Option<RateLimit>,
}

/// How often strangers are answered over UDP.
#[derive(Debug, Clone)]
pub struct RateLimit {
    /// The sources of one network, at each socket.
    pub rate: Rate,
    /// Who is no stranger.
    pub exempt: Vec<IpNet>,
}

impl Default for RateLimit {
    /// Private addresses are no strangers: those are the pods, nodes and resolvers of a cluster, and an answer to a forged one does not
    /// leave the network that it came from.
    fn default() -> Self {
        let range = |address: IpAddr, bits| IpNet::new(address, bits).ok();
        let exempt = [
            range([127, 0, 0, 0].into(), 8),
            range([10, 0, 0, 0].into(), 8),
            range([172, 16, 0, 0].into(), 12),
            range([192, 168, 0, 0].into(), 16),
            range([100, 64, 0, 0].into(), 10),
            range([169, 254, 0, 0].into(), 16),
            range([0, 0, 0, 0, 0, 0, 0, 1_u16].into(), 128),
            range([0xfc00, 0, 0, 0, 0, 0, 0, 0_u16].into(), 7),
            range([0xfe80, 0, 0, 0, 0, 0, 0, 0_u16].into(), 10),
        ];
        Self { rate: Rate::default(), exempt: exempt.into_iter().flatten().collect() }
    }
}

impl Options {
    /// The port that is listened on unless another is chosen: one that needs no privilege.
    pub const PORT: u16 = 8053;
    /// The port of health and metrics unless another is chosen.
    pub const METRICS_PORT: u16 = 9153;
}

impl Default for Options {
    /// Every address, as many sockets as there are processors.
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            cluster_zone: None,
            listen: vec![SocketAddr::from(([0_u16; 8], Self::PORT))],
            sockets: std::thread::available_parallelism().map_or(1, usize::from),
            metrics_address: None,
            cluster: None,
            rate_limit: Some(RateLimit::default()),
        }
    }
}
