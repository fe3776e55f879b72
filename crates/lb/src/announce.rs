//! Tells the neighbours on a link where an address is now, so that they send nothing to where it was.
//!
//! IPv6 has a message for it: an unsolicited neighbour advertisement. A gratuitous ARP would need a packet socket, whose address no safe
//! code can make; but the kernel itself broadcasts a question, with the new address as the one who asks, when something is to be sent *from*
//! it to a neighbour that it does not know, and whoever hears a question learns where its asker is (RFC 826). No host has the address that
//! is asked for; the kernel asks three times, a second apart.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use nlink::netlink::{Connection, Route};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

/// Of the link-local range, so that no router would pass it on.
const NOBODY: Ipv4Addr = Ipv4Addr::new(169, 254, 255, 254);
/// The port for what is thrown away.
const DISCARD: u16 = 9;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);
/// `MSG_DONTROUTE`: do not ask routes, it is on this link.
const DONT_ROUTE: i32 = 4;
/// A neighbour may be deaf for a moment, or believe for a second what it heard last.
const TIMES: usize = 3;
const PAUSE: Duration = Duration::from_millis(1100);

/// Announces the address a few times. What fails is logged: neighbours then find out by themselves, some time later.
pub(crate) fn spawn(interface: Arc<str>, ip: IpAddr) {
    tokio::spawn(async move {
        for time in 0..TIMES {
            if time > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            if let Err(error) = announce(&interface, ip).await {
                tracing::warn!(%ip, interface = &*interface, %error, "cannot announce the address");
                return;
            }
        }
    });
}

async fn announce(interface: &str, ip: IpAddr) -> io::Result<()> {
    match ip {
        IpAddr::V4(v4) => ask_from(interface, v4),
        IpAddr::V6(v6) => {
            let link = Connection::<Route>::new().map_err(io::Error::other)?;
            let link = link.get_link_by_name(interface).await.map_err(io::Error::other)?;
            let link = link.ok_or_else(|| io::Error::other("there is no such interface"))?;
            let hardware = link.address().and_then(|bytes| bytes.try_into().ok());
            advertise(link.ifindex(), hardware, v6)
        }
    }
}

fn ask_from(interface: &str, ip: Ipv4Addr) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.bind_device(Some(interface.as_bytes()))?;
    socket.bind(&SockAddr::from(SocketAddr::from((ip, 0))))?;
    let nobody = SockAddr::from(SocketAddr::from((NOBODY, DISCARD)));
    socket.send_to_with_flags(&[], &nobody, DONT_ROUTE).map(drop)
}

fn advertise(index: u32, hardware: Option<[u8; 6]>, ip: Ipv6Addr) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV6, Type::RAW, Some(Protocol::ICMPV6))?;
    socket.set_multicast_if_v6(index)?;
    // Whoever hears it checks that no router has passed it on.
    socket.set_multicast_hops_v6(255)?;
    socket.bind(&SockAddr::from(SocketAddr::from((ip, 0))))?;
    socket.send_to(&advertisement(ip, hardware), &SockAddr::from(SocketAddr::from((ALL_NODES, 0)))).map(drop)
}

/// The message (RFC 4861, 4.4); the kernel fills in the checksum.
fn advertisement(ip: Ipv6Addr, hardware: Option<[u8; 6]>) -> Vec<u8> {
    const KIND: u8 = 136;
    const OVERRIDE: u8 = 0x20;
    let mut message = vec![KIND, 0, 0, 0, OVERRIDE, 0, 0, 0];
    message.extend(ip.octets());
    if let Some(hardware) = hardware {
        message.extend([2, 1]); // the target's hardware address, one unit of eight bytes
        message.extend(hardware);
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_advertisement_overrides_what_neighbours_believe() {
        let message = advertisement("fd00::9".parse().unwrap(), Some([2, 0, 0, 0, 0, 7]));
        assert_eq!((message[0], message[4], message.len()), (136, 0x20, 32));
        assert_eq!((message[23], &message[24..]), (9, &[2, 1, 2, 0, 0, 0, 0, 7][..]));
    }
}
