//! Who has which address: the plan of a lab's networks, computed from two numbers.
//!
//! Node networks differ from lab to lab (by *slot*), because the host has a leg in each. Pod and service
//! networks exist only inside a lab, so every lab uses the same ones.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The most clusters that one lab's address plan has room for.
pub const MOST_CLUSTERS: u8 = 80;
/// The most labs that can be up at once on one host.
pub const MOST_LABS: u8 = 16;
/// The most bystanders of one lab.
pub const MOST_BYSTANDERS: u8 = 40;

const HOST: u8 = 254;
const FIRST_BYSTANDER: u8 = 200;

/// An IPv4 and an IPv6 address of one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pair {
    /// The IPv4 address.
    pub v4: Ipv4Addr,
    /// The IPv6 address.
    pub v6: Ipv6Addr,
}

impl Pair {
    /// Both, IPv4 first.
    pub fn both(&self) -> [IpAddr; 2] {
        [self.v4.into(), self.v6.into()]
    }
}

/// An IPv4 and an IPv6 network of one purpose, in CIDR notation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Networks {
    /// The IPv4 network.
    pub v4: String,
    /// The IPv6 network.
    pub v6: String,
}

impl Networks {
    /// Both, separated by a comma, as Kubernetes' flags want them.
    pub fn joined(&self) -> String {
        format!("{},{}", self.v4, self.v6)
    }
}

/// The bridge that joins the namespaces of the lab in `slot`.
pub fn bridge(slot: u8) -> String {
    format!("atoll{slot}")
}

/// The host's end of the cable to address `host` on the bridge of `slot`.
pub fn cable(slot: u8, host: u8) -> String {
    format!("{}{host}", cable_prefix(slot))
}

/// How the names of all cables of `slot` begin.
pub fn cable_prefix(slot: u8) -> String {
    format!("atoll{slot}p")
}

/// The host's own addresses on the bridge.
pub fn host(slot: u8) -> Pair {
    on_bridge(slot, HOST)
}

/// The last byte of bystander `index`'s addresses.
pub fn bystander_host(index: u8) -> u8 {
    FIRST_BYSTANDER + index
}

/// The addresses with last byte `host` on the bridge of `slot`.
pub fn on_bridge(slot: u8, host: u8) -> Pair {
    Pair {
        v4: Ipv4Addr::new(10, 200, slot, host),
        v6: Ipv6Addr::new(0xfd00, 0x200, slot.into(), 0, 0, 0, 0, host.into()),
    }
}

/// The addresses of one cluster, the `number`th (from 1) of its lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClusterAddresses {
    /// Which lab on this host.
    pub slot: u8,
    /// Which cluster of the lab, from 1.
    pub number: u8,
}

impl ClusterAddresses {
    /// The node's addresses on the bridge.
    pub fn node(&self) -> Pair {
        on_bridge(self.slot, self.number)
    }

    /// The networks that the cluster's pods live in.
    pub fn pods(&self) -> Networks {
        Networks {
            v4: format!("10.{}.0.0/24", 10 + self.number),
            v6: format!("fd00:10:{:x}::/112", self.number),
        }
    }

    /// The networks that the cluster's Services get their addresses from.
    pub fn services(&self) -> Networks {
        Networks {
            v4: format!("10.{}.0.0/16", 110 + self.number),
            v6: format!("fd00:20:{:x}::/112", self.number),
        }
    }

    /// The `host`th address of the service networks: 1 is the API server's, 10 is DNS's.
    pub fn service(&self, host: u8) -> Pair {
        Pair {
            v4: Ipv4Addr::new(10, 110 + self.number, 0, host),
            v6: Ipv6Addr::new(0xfd00, 0x20, self.number.into(), 0, 0, 0, 0, host.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_clusters_share_a_network() {
        let clusters = (1..=MOST_CLUSTERS).map(|number| ClusterAddresses { slot: 3, number });
        let networks: Vec<_> =
            clusters.flat_map(|c| [c.pods().v4, c.pods().v6, c.services().v4, c.services().v6]).collect();
        let distinct: BTreeSet<_> = networks.iter().collect();
        assert_eq!(distinct.len(), networks.len());
        assert!(networks.iter().all(|n| !n.starts_with("10.200.")), "the node network is taken");
    }

    #[test]
    fn names_of_links_fit_the_kernels_limit() {
        assert!(cable(MOST_LABS - 1, u8::MAX).len() <= 15);
        assert!(bridge(MOST_LABS - 1).len() <= 15);
    }

    #[test]
    fn clusters_bystanders_and_the_host_never_meet() {
        const { assert!(MOST_CLUSTERS < FIRST_BYSTANDER) };
        assert!(bystander_host(MOST_BYSTANDERS - 1) < HOST);
    }
}
