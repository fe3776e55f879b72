//! What a cluster says of its imports: no more of it than DNS needs.

use std::net::IpAddr;

use crate::name::Name;

/// A ServiceImport, or a Service in the cluster's own zone.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Import {
    /// Reached by its endpoints, not by an address of its own.
    pub headless: bool,
    /// Its own addresses.
    pub ips: Vec<IpAddr>,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Endpoints of the asker's own cluster come first: the service has a traffic distribution.
    pub local_first: bool,
}

/// The protocol of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Protocol {
    #[default]
    Tcp,
    Udp,
    Sctp,
}

impl Protocol {
    /// As in the names of SRV records, but for the underscore.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Sctp => "sctp",
        }
    }
}

/// A port of a service or of a slice.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Port {
    /// Empty if it has none; then no SRV record names it.
    pub name: String,
    /// Its protocol.
    pub protocol: Protocol,
    /// Its number.
    pub port: u16,
}

/// An EndpointSlice: endpoints of one cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The import that it belongs to.
    pub service: String,
    /// The id of the cluster that the endpoints are in; empty in the cluster's own zone.
    pub cluster: Name,
    /// The ports of each endpoint.
    pub ports: Box<[Port]>,
    /// The endpoints that are ready, and no others.
    pub endpoints: Box<[Endpoint]>,
}

/// An address that is ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Where.
    pub address: IpAddr,
    /// Its name within its cluster, one label; made of the address if none.
    pub hostname: Option<Name>,
}
