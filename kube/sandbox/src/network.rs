//! Real sockets at loopback addresses, shared by all members of this process.
//!
//! A port below 1024 is often refused to an ordinary user, and any port may be taken by a program that listens at all
//! addresses: then the socket listens [`OFFSET`] higher, and everything that dials through the [`Network`] still reaches it
//! by the port that was asked for.

mod alive;
mod dial;
mod lookup;

pub(crate) use alive::{Alive, Gone, alive};
pub use dial::{DialError, Dialer, Reached};
pub use lookup::{NoNames, Resolve, ServiceRecord, candidates};

use std::collections::HashMap;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::net::{TcpListener, TcpSocket, TcpStream, UdpSocket};

/// How much higher a socket listens whose port is refused.
pub const OFFSET: u16 = 20_000;
/// The first port that every user may bind, unless the system says otherwise.
const UNPRIVILEGED: u16 = 1024;
const BACKLOG: u32 = 256;

/// What carries the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Protocol {
    Tcp,
    Udp,
}

impl Protocol {
    /// As Kubernetes writes it; nothing for one that the sandbox does not carry.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("" | "TCP") => Some(Self::Tcp),
            Some("UDP") => Some(Self::Udp),
            Some(_) => None,
        }
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// Where a socket should be, and whether it is there. Clones are the same network.
#[derive(Clone, Debug, Default)]
pub struct Network {
    /// Where sockets should be, and the ports at which they are.
    places: Arc<Mutex<HashMap<(SocketAddr, Protocol), u16>>>,
    /// Bind nothing below 1024, even if it were allowed.
    unprivileged: bool,
}

impl Network {
    /// A network that uses ports below 1024 where the system allows it.
    pub fn new() -> Self {
        Self::default()
    }

    /// A network that never binds a port below 1024, as if the system refused.
    #[must_use]
    pub fn unprivileged(mut self) -> Self {
        self.unprivileged = true;
        self
    }

    /// Listens for connections.
    ///
    /// # Errors
    /// The address is taken or not of this machine.
    pub fn listen_tcp(&self, asked: SocketAddr) -> std::io::Result<(TcpListener, ListenAddress)> {
        self.place(asked, Protocol::Tcp, |at| {
            let socket = if at.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
            // A pod that starts again must not wait for its old connections to be forgotten.
            socket.set_reuseaddr(true)?;
            socket.bind(at)?;
            socket.listen(BACKLOG)
        })
    }

    /// Listens for datagrams.
    ///
    /// # Errors
    /// The address is taken or not of this machine.
    pub fn listen_udp(&self, asked: SocketAddr) -> std::io::Result<(UdpSocket, ListenAddress)> {
        self.place(asked, Protocol::Udp, |at| {
            let socket = std::net::UdpSocket::bind(at)?;
            socket.set_nonblocking(true)?;
            UdpSocket::from_std(socket)
        })
    }

    fn place<S>(
        &self,
        asked: SocketAddr,
        protocol: Protocol,
        bind: impl Fn(SocketAddr) -> std::io::Result<S>,
    ) -> std::io::Result<(S, ListenAddress)> {
        if self.places().contains_key(&(asked, protocol)) {
            // By another socket of this process: the two could not be told apart.
            return Err(ErrorKind::AddrInUse.into());
        }
        let refused = match self.unprivileged && (1..UNPRIVILEGED).contains(&asked.port()) {
            true => ErrorKind::PermissionDenied.into(),
            false => match bind(asked) {
                Ok(socket) => return Ok((socket, self.noted(asked, asked, protocol))),
                Err(error) => error,
            },
        };
        let movable = matches!(refused.kind(), ErrorKind::PermissionDenied | ErrorKind::AddrInUse);
        match asked.port().checked_add(OFFSET).filter(|_| movable && asked.port() > 0) {
            Some(port) => {
                let actual = SocketAddr::new(asked.ip(), port);
                Ok((bind(actual)?, self.noted(asked, actual, protocol)))
            }
            None => Err(refused),
        }
    }

    fn noted(&self, asked: SocketAddr, actual: SocketAddr, protocol: Protocol) -> ListenAddress {
        self.places().insert((asked, protocol), actual.port());
        ListenAddress { asked, actual, protocol, network: self.clone() }
    }

    fn places(&self) -> std::sync::MutexGuard<'_, HashMap<(SocketAddr, Protocol), u16>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the socket that should be at `asked` is.
    pub fn actual(&self, asked: SocketAddr, protocol: Protocol) -> SocketAddr {
        let port = self.places().get(&(asked, protocol)).copied();
        SocketAddr::new(asked.ip(), port.unwrap_or(asked.port()))
    }

    /// Connects, from the address `source` if there is one.
    ///
    /// # Errors
    /// No socket listens there.
    pub async fn connect(&self, source: Option<Ipv4Addr>, target: SocketAddr) -> std::io::Result<TcpStream> {
        let actual = self.actual(target, Protocol::Tcp);
        let socket = if actual.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        if let Some(source) = usable(source, actual) {
            socket.bind(SocketAddr::new(source, 0))?;
        }
        let stream = socket.connect(actual).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// A socket for datagrams to `target` alone, from the address `source` if there is one.
    ///
    /// # Errors
    /// There is no such address.
    pub async fn connect_udp(
        &self,
        source: Option<Ipv4Addr>,
        target: SocketAddr,
    ) -> std::io::Result<UdpSocket> {
        let actual = self.actual(target, Protocol::Udp);
        let any = if actual.is_ipv4() {
            IpAddr::V4(Ipv4Addr::UNSPECIFIED)
        } else {
            "::".parse().unwrap_or(actual.ip())
        };
        let from = usable(source, actual).unwrap_or(any);
        let socket = UdpSocket::bind(SocketAddr::new(from, 0)).await?;
        socket.connect(actual).await?;
        Ok(socket)
    }
}

/// A loopback address reaches loopback addresses alone.
fn usable(source: Option<Ipv4Addr>, target: SocketAddr) -> Option<IpAddr> {
    source.filter(|_| target.ip().is_loopback() && target.is_ipv4()).map(IpAddr::V4)
}

/// Where a socket listens; forgotten when dropped.
#[derive(Debug)]
pub struct ListenAddress {
    /// Where it should.
    pub asked: SocketAddr,
    /// Where it does.
    pub actual: SocketAddr,
    /// For what.
    pub protocol: Protocol,
    network: Network,
}

impl Drop for ListenAddress {
    fn drop(&mut self) {
        self.network.places().remove(&(self.asked, self.protocol));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_refused_port_is_reached_by_its_own_number() {
        let network = Network::new().unprivileged();
        let asked: SocketAddr = "127.201.1.1:80".parse().unwrap();
        let (listener, place) = network.listen_tcp(asked).unwrap();
        assert_eq!(listener.local_addr().unwrap().port(), 20_080);
        assert_eq!(place.actual.port(), 20_080);
        let source = Ipv4Addr::new(127, 201, 1, 9);
        let (client, server) = tokio::join!(network.connect(Some(source), asked), listener.accept());
        let (mut client, (mut server, from)) = (client.unwrap(), server.unwrap());
        assert_eq!(from.ip(), IpAddr::V4(source));
        server.write_all(b"hello").await.unwrap();
        let mut said = [0; 5];
        client.read_exact(&mut said).await.unwrap();
        assert_eq!(&said, b"hello");
        drop(place);
        assert_eq!(network.actual(asked, Protocol::Tcp), asked);
    }

    #[tokio::test]
    async fn a_port_that_a_stranger_has_moves_and_one_of_ours_does_not() {
        let stranger = std::net::TcpListener::bind("0.0.0.0:0").unwrap();
        let port = stranger.local_addr().unwrap().port();
        if port > u16::MAX - OFFSET {
            return; // The system gave one that can't move; there are others to try next time.
        }
        let network = Network::new();
        let asked = SocketAddr::new("127.201.1.2".parse().unwrap(), port);
        let (_listener, place) = network.listen_tcp(asked).unwrap();
        assert_eq!(place.actual.port(), port + OFFSET);
        assert_eq!(network.listen_tcp(asked).unwrap_err().kind(), ErrorKind::AddrInUse);
    }
}
