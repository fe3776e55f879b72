//! The addresses of one member: a block of the loopback network, which needs no privilege.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::ops::RangeInclusive;

use ipnet::Ipv4Net;

/// The port of a member's API server.
const API_PORT: u16 = 6443;

/// The block `127.B.0.0/16`. The process that has bound its API server's socket has the block.
///
/// ```
/// let block = atoll_sandbox::block::Block(7);
/// assert_eq!(block.api().to_string(), "127.7.0.1:6443");
/// assert_eq!(block.to_string(), "127.7.0.0/16");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(pub u8);

impl Block {
    fn at(self, third: u8, fourth: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, self.0, third, fourth)
    }

    fn network(self, third: u8, bits: u8) -> Ipv4Net {
        Ipv4Net::new_assert(self.at(third, 0), bits)
    }

    /// Where the API server listens.
    pub fn api(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.at(0, 1), API_PORT)
    }

    /// Where a sandbox listens for as long as the block is its own, also while the member is stopped. Nothing is answered there.
    pub fn claim(self) -> SocketAddrV4 {
        SocketAddrV4::new(self.at(0, 2), API_PORT)
    }

    /// The address of DNS.
    pub fn dns(self) -> Ipv4Addr {
        self.at(0, 53)
    }

    /// The addresses that pods may get, the first and the last.
    pub fn pods(self) -> RangeInclusive<Ipv4Addr> {
        self.at(1, 1)..=self.at(127, 254)
    }

    /// The network of pods, as the node declares it.
    pub fn pod_cidr(self) -> Ipv4Net {
        self.network(0, 17)
    }

    /// The addresses that pods may get, as networks, and nothing of the member's own beside them.
    pub fn pod_ranges(self) -> [Ipv4Net; 7] {
        [(1, 24), (2, 23), (4, 22), (8, 21), (16, 20), (32, 19), (64, 18)]
            .map(|(third, bits)| self.network(third, bits))
    }

    /// The network of Services.
    pub fn service_cidr(self) -> Ipv4Net {
        self.network(128, 17)
    }
}

impl Block {
    /// Is it an address of this block?
    pub fn holds(self, address: std::net::IpAddr) -> bool {
        matches!(address, std::net::IpAddr::V4(address) if self.network(0, 16).contains(&address))
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.network(0, 16))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_has_two_uses() {
        for block in [Block(1), Block(255)] {
            let (pods, services) = (block.pod_cidr(), block.service_cidr());
            for address in [*block.pods().start(), *block.pods().end()] {
                assert!(pods.contains(&address) && !services.contains(&address), "{address}");
            }
            for own in [*block.api().ip(), block.dns()] {
                assert!(!block.pods().contains(&own) && !services.contains(&own), "{own}");
            }
            assert!(!pods.contains(&services), "{services}");
            let allowed = |address: Ipv4Addr| block.pod_ranges().iter().any(|range| range.contains(&address));
            assert!(allowed(*block.pods().start()) && allowed(*block.pods().end()));
            assert!(!allowed(*block.api().ip()) && !allowed(block.dns()) && !allowed(services.addr()));
        }
    }

    #[test]
    fn blocks_share_nothing() {
        assert!(!Block(3).pod_cidr().contains(Block(4).pods().start()));
        assert!(!Block(3).service_cidr().contains(&Block(4).service_cidr()));
    }
}
