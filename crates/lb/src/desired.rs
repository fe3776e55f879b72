//! What a balancer should do, as data. Equal data change nothing.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use atoll_balance::{Backend, Settings};
use serde::{Deserialize, Serialize};

/// Everything that a balancer should do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Desired {
    /// Where it listens, and for whom.
    pub listeners: Vec<Listener>,
}

/// What travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// Streams.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

impl Protocol {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        }
    }
}

/// One address and port, and who answers there. Protocol and address are its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listener {
    /// What it is called in metrics and logs: a service and a port.
    pub name: Arc<str>,
    /// Streams or datagrams.
    pub protocol: Protocol,
    /// Where clients come in.
    pub address: SocketAddr,
    /// The interface that its address is put on, and taken from again; none if the address is there already.
    pub interface: Option<Arc<str>>,
    /// How connections are shared out.
    pub settings: Settings,
    /// Who takes them.
    pub backends: Vec<Backend>,
    /// What one listener may use up.
    pub limits: Limits,
    /// Tells backends who the client is, by a header of the PROXY protocol, version 2. TCP only.
    pub proxy_protocol: bool,
    /// A backend that takes longer is not there; another is tried.
    pub connect_timeout: Duration,
    /// A connection or flow that carries nothing for so long ends.
    pub idle_timeout: Duration,
    /// Who backends see as the client, where the kernel carries connections.
    pub source: Source,
    /// The port that is checked, if it is not the backend's own. Datagrams need one: they can't be checked.
    pub check_port: Option<u16>,
}

impl Listener {
    /// One with nothing special.
    pub fn new(name: &str, protocol: Protocol, address: SocketAddr, backends: Vec<Backend>) -> Self {
        Self {
            name: name.into(),
            protocol,
            address,
            interface: None,
            settings: Settings::default(),
            backends,
            limits: Limits::default(),
            proxy_protocol: false,
            connect_timeout: Duration::from_secs(1),
            idle_timeout: match protocol {
                Protocol::Tcp => Duration::from_secs(3600),
                Protocol::Udp => Duration::from_secs(60),
            },
            source: Source::default(),
            check_port: None,
        }
    }

    /// What it is known by.
    pub fn key(&self) -> (Protocol, SocketAddr) {
        (self.protocol, self.address)
    }
}

/// Who backends see as the client, where the kernel carries connections. In user space it is always this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Source {
    /// This machine, by the address that leads to the backend.
    #[default]
    Masquerade,
    /// The client itself: backends must send their answers by way of this machine.
    Keep,
    /// One of these addresses, the first to the last, which must lead back to this machine.
    Pool(IpAddr, IpAddr),
}

impl Source {
    /// Whether backends of a listener at `ip` can be shown this.
    pub(crate) fn fits(self, ip: IpAddr) -> bool {
        match self {
            Self::Masquerade | Self::Keep => true,
            Self::Pool(first, last) => {
                first <= last && first.is_ipv4() == last.is_ipv4() && first.is_ipv4() == ip.is_ipv4()
            }
        }
    }
}

/// What one listener may use up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections, or flows of datagrams, at once.
    pub connections: usize,
    /// The same from one address; none if only the sum counts.
    pub per_client: Option<usize>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connections: 65_536, per_client: None }
    }
}
