//! The sockets of a listener: one per thread on one address, so that the kernel spreads clients over them.

use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};

use socket2::{Domain, Protocol, Socket, Type};

use crate::desired;

const WAITING_CONNECTIONS: i32 = 4096;
/// Room for a burst of datagrams.
const WAITING_BYTES: usize = 1 << 20;

/// A bound socket.
#[derive(Debug)]
pub(crate) enum Bound {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// One socket per thread. Port 0 chooses one, the same for all.
pub(crate) fn bind(
    protocol: desired::Protocol,
    address: SocketAddr,
    threads: usize,
) -> io::Result<(SocketAddr, Vec<Bound>)> {
    let first = one(protocol, address)?;
    let chosen = match &first {
        Bound::Tcp(socket) => socket.local_addr()?,
        Bound::Udp(socket) => socket.local_addr()?,
    };
    let mut all = vec![first];
    for _ in 1..threads {
        all.push(one(protocol, chosen)?);
    }
    Ok((chosen, all))
}

fn one(protocol: desired::Protocol, address: SocketAddr) -> io::Result<Bound> {
    let domain = Domain::for_address(address);
    let socket = match protocol {
        desired::Protocol::Tcp => Socket::new(domain, Type::STREAM, Some(Protocol::TCP))?,
        desired::Protocol::Udp => Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))?,
    };
    if address.is_ipv6() {
        socket.set_only_v6(!address.ip().is_unspecified())?;
    }
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    match protocol {
        desired::Protocol::Tcp => {
            socket.set_reuse_address(true)?;
            // Accepted connections have it from here, without a call of their own.
            socket.set_tcp_nodelay(true)?;
            socket.bind(&address.into())?;
            socket.listen(WAITING_CONNECTIONS)?;
            Ok(Bound::Tcp(socket.into()))
        }
        desired::Protocol::Udp => {
            // The kernel may grant less.
            let _ = socket.set_recv_buffer_size(WAITING_BYTES);
            socket.bind(&address.into())?;
            Ok(Bound::Udp(socket.into()))
        }
    }
}
