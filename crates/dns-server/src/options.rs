//! What can be chosen when a server is started.

use std::net::SocketAddr;

use atoll_dns::{Name, Settings};

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
        }
    }
}
