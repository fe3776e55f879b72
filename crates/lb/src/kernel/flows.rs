//! Conntrack's entries: what pins a client to a backend.

use std::net::SocketAddr;

use nlink::netlink::netfilter::{ConntrackFilter, IpProtocol};
use nlink::netlink::{Connection, Netfilter};

use crate::desired::Protocol;

/// Ends the flows from clients of `listener` to `backend`.
pub(super) async fn end(
    protocol: Protocol,
    listener: SocketAddr,
    backend: SocketAddr,
) -> nlink::Result<usize> {
    let filter = ConntrackFilter::new()
        .proto(match protocol {
            Protocol::Tcp => IpProtocol::Tcp,
            Protocol::Udp => IpProtocol::Udp,
        })
        .orig_dst(listener.ip())
        .orig_dst_port(listener.port())
        .reply_src(backend.ip())
        .reply_src_port(backend.port());
    Connection::<Netfilter>::new()?.del_conntrack_matching(&filter).await
}
