//! How a pod reaches others: names by the cluster's DNS, Services by the cluster's proxy, the rest directly.

use super::{Network, Protocol, Resolve, ServiceRecord, candidates};
use crate::proxy::table::NoRoute;
use crate::proxy::{Proxy, Route};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpStream, UdpSocket};

/// How long a connection may take to be made.
const PATIENCE: Duration = Duration::from_secs(5);
const LARGEST_DATAGRAM: usize = 64 * 1024;

/// Reaches others from one place: a pod, or a namespace of a member. Clones are cheap.
#[derive(Clone)]
pub struct Dialer {
    network: Network,
    proxy: Proxy,
    resolver: Arc<dyn Resolve>,
    namespace: Arc<str>,
    source: Option<Ipv4Addr>,
}

/// A connection, and whom it reached.
#[derive(Debug)]
pub struct Reached {
    /// The connection.
    pub stream: TcpStream,
    /// What was dialled: the name's address and the port.
    pub dialled: SocketAddr,
    /// Who answers: an endpoint if a Service was dialled. The port is the asked one, wherever the socket really listens.
    pub endpoint: SocketAddr,
}

/// Why a connection failed.
#[derive(Debug, thiserror::Error)]
pub enum DialError {
    /// DNS does not know the name.
    #[error("cannot resolve {0}: no such name in this cluster")]
    UnknownName(String),
    /// It is the address of a Service, and leads nowhere.
    #[error("connection to {address} refused: Service {service} {}", match .why {
        NoRoute::NoEndpoints => "has no endpoint that is ready",
        NoRoute::NoSuchPort => "has no such port",
    })]
    Refused {
        /// What was dialled.
        address: SocketAddr,
        /// `namespace/name`.
        service: String,
        /// Why not.
        why: NoRoute,
    },
    /// No socket listens, or there is no answer.
    #[error("cannot reach {address}: {source}")]
    Unreachable {
        /// What was dialled, or the endpoint chosen for it.
        address: SocketAddr,
        /// What the system says.
        source: std::io::Error,
    },
    /// It took too long.
    #[error("no answer from {address} within {} ms", .patience.as_millis())]
    TimedOut {
        /// What was dialled, or the endpoint chosen for it.
        address: SocketAddr,
        /// How long was waited.
        patience: Duration,
    },
}

impl Dialer {
    /// Reaches others as something in `default` would.
    pub fn new(network: Network, proxy: Proxy, resolver: Arc<dyn Resolve>) -> Self {
        Self { network, proxy, resolver, namespace: Arc::from("default"), source: None }
    }

    /// Reaches others as a pod in `namespace` with that address would.
    #[must_use]
    pub fn from_pod(&self, namespace: &str, address: Option<Ipv4Addr>) -> Self {
        Self { namespace: Arc::from(namespace), source: address, ..self.clone() }
    }

    /// The addresses of a host: itself if it is an address, else what DNS says along the search path.
    ///
    /// # Errors
    /// The name is not known.
    pub async fn resolve(&self, host: &str) -> Result<Vec<IpAddr>, DialError> {
        Ok(self.look_up(host).await?.1)
    }

    /// The complete name that was found, and its addresses.
    ///
    /// # Errors
    /// The name is not known.
    pub async fn look_up(&self, host: &str) -> Result<(String, Vec<IpAddr>), DialError> {
        let address = match host {
            // A pod is alone at its localhost, which is its own address here.
            "localhost" | "127.0.0.1" => {
                Some(self.source.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V4))
            }
            host => host.trim_matches(['[', ']']).parse().ok(),
        };
        if let Some(address) = address {
            return Ok((host.to_owned(), vec![address]));
        }
        for name in candidates(host, &self.namespace) {
            let found = self.resolver.resolve(&name).await;
            if !found.is_empty() {
                return Ok((name, found));
            }
        }
        Err(DialError::UnknownName(host.to_owned()))
    }

    /// The SRV records of a name, along the search path.
    pub async fn services(&self, host: &str) -> Vec<ServiceRecord> {
        for name in candidates(host, &self.namespace) {
            let found = self.resolver.services(&name).await;
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Connects to a host by name or address.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn connect_tcp(&self, host: &str, port: u16) -> Result<Reached, DialError> {
        let mut last = DialError::UnknownName(host.to_owned());
        for address in self.resolve(host).await? {
            match self.connect(SocketAddr::new(address, port)).await {
                Ok(reached) => return Ok(reached),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// The connection fails.
    pub async fn connect(&self, dialled: SocketAddr) -> Result<Reached, DialError> {
        let endpoint = self.endpoint(dialled, Protocol::Tcp)?;
        let stream = self.network.connect(self.source, endpoint);
        let stream = within(PATIENCE, endpoint, stream).await?;
        Ok(Reached { stream, dialled, endpoint })
    }

    /// Sends one datagram to a host and waits for one in return.
    ///
    /// # Errors
    /// The connection fails, or there is no answer.
    pub async fn exchange_udp(
        &self,
        host: &str,
        port: u16,
        payload: &[u8],
        patience: Duration,
    ) -> Result<Vec<u8>, DialError> {
        let (socket, endpoint) = self.connect_udp(host, port).await?;
        within(patience, endpoint, async {
            socket.send(payload).await?;
            let mut answer = vec![0; LARGEST_DATAGRAM];
            let count = socket.recv(&mut answer).await?;
            answer.truncate(count);
            Ok(answer)
        })
        .await
    }

    /// A socket for datagrams to a host, and the endpoint that they go to.
    ///
    /// # Errors
    /// The name is not known, or has no endpoint.
    pub async fn connect_udp(&self, host: &str, port: u16) -> Result<(UdpSocket, SocketAddr), DialError> {
        let addresses = self.resolve(host).await?;
        let Some(address) = addresses.first() else { return Err(DialError::UnknownName(host.to_owned())) };
        let endpoint = self.endpoint(SocketAddr::new(*address, port), Protocol::Udp)?;
        let socket = self.network.connect_udp(self.source, endpoint).await;
        Ok((socket.map_err(|source| DialError::Unreachable { address: endpoint, source })?, endpoint))
    }

    fn endpoint(&self, dialled: SocketAddr, protocol: Protocol) -> Result<SocketAddr, DialError> {
        match self.proxy.route(dialled, protocol, self.source.map(IpAddr::V4)) {
            Route::Direct => Ok(dialled),
            Route::To(endpoint) => Ok(endpoint),
            Route::Refused { service, why } => Err(DialError::Refused { address: dialled, service, why }),
        }
    }
}

async fn within<T>(
    patience: Duration,
    address: SocketAddr,
    work: impl Future<Output = std::io::Result<T>>,
) -> Result<T, DialError> {
    match tokio::time::timeout(patience, work).await {
        Ok(done) => done.map_err(|source| DialError::Unreachable { address, source }),
        Err(_) => Err(DialError::TimedOut { address, patience }),
    }
}
