//! The sockets: several for UDP on one address, so that the kernel spreads clients over them; one for TCP.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::ServerError;
use crate::options::Options;

/// How often a thread that waits for packets looks whether it should end.
const LOOK_UP: Duration = Duration::from_millis(200);
/// Room for a burst: some thousand questions.
const WAITING_BYTES: usize = 1 << 20;
const WAITING_CONNECTIONS: i32 = 128;
/// How often a free port is looked for.
const TRIES: usize = 16;

/// Sockets that are bound.
#[derive(Debug)]
pub struct Listening {
    pub(crate) udp: Vec<UdpSocket>,
    pub(crate) tcp: Vec<TcpListener>,
}

impl Listening {
    /// Binds everything that the options ask for. Port 0 chooses one, the same for UDP and TCP.
    pub fn bind(options: &Options) -> Result<Self, ServerError> {
        let mut all = Self { udp: Vec::new(), tcp: Vec::new() };
        for address in &options.listen {
            let mut bound = bind_one(*address, options.sockets);
            // A port that UDP may choose can be taken for TCP: then another one.
            for _ in 0..TRIES {
                match &bound {
                    Err(ServerError::Listen { source, .. })
                        if address.port() == 0 && source.kind() == io::ErrorKind::AddrInUse =>
                    {
                        bound = bind_one(*address, options.sockets);
                    }
                    _ => break,
                }
            }
            let (udp, tcp) = bound?;
            all.udp.extend(udp);
            all.tcp.push(tcp);
        }
        Ok(all)
    }

    /// Where.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.tcp.iter().filter_map(|socket| socket.local_addr().ok()).collect()
    }
}

/// All sockets of one address.
fn bind_one(address: SocketAddr, sockets: usize) -> Result<(Vec<UdpSocket>, TcpListener), ServerError> {
    let first = match udp(address) {
        // The machine has no IPv6: every address is then every IPv4 address.
        Err(error) if address.ip().is_unspecified() && address.is_ipv6() && no_family(&error) => {
            udp(SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port())))
        }
        other => other,
    };
    let failed = |protocol| move |source| ServerError::Listen { address, protocol, source };
    let first = first.map_err(failed("UDP"))?;
    let chosen = first.local_addr().map_err(failed("UDP"))?;
    let mut all = vec![first];
    for _ in 1..sockets.max(1) {
        all.push(udp(chosen).map_err(failed("UDP"))?);
    }
    Ok((all, tcp(chosen).map_err(failed("TCP"))?))
}

fn no_family(error: &io::Error) -> bool {
    // EAFNOSUPPORT has no kind of its own; the address is missing where IPv6 is switched off.
    error.raw_os_error() == Some(97) || error.kind() == io::ErrorKind::AddrNotAvailable
}

fn udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    both_families(&socket, address)?;
    socket.set_reuse_port(true)?;
    // The kernel may grant less.
    let _ = socket.set_recv_buffer_size(WAITING_BYTES);
    socket.bind(&address.into())?;
    socket.set_read_timeout(Some(LOOK_UP))?;
    Ok(socket.into())
}

fn tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    both_families(&socket, address)?;
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(WAITING_CONNECTIONS)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Every address means those of both families.
fn both_families(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() { socket.set_only_v6(!address.ip().is_unspecified()) } else { Ok(()) }
}
