//! Address families, and the rule for addresses that may enter another cluster.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// An address family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// Both of them: kube-proxy and balancers take what they can use.
    pub const BOTH: [Self; 2] = [Self::V4, Self::V6];

    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }

    /// As Kubernetes spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }
}

/// Where a cluster's endpoints may be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Networks {
    /// The operator's word: ranges that pass whatever they are (the sandbox declares its part of 127.0.0.0/8).
    pub declared: Vec<IpNet>,
    /// The operator's word: the pod networks. When there are any, only they, the nodes and `declared` pass.
    pub pods: Vec<IpNet>,
    /// The cluster's word: the addresses of its nodes, for pods on the host network.
    pub nodes: BTreeSet<IpAddr>,
}

/// Why an address may not enter another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum AddressRefused {
    /// It would reach the consumer's own host.
    Loopback,
    /// It would reach the consumer's own link.
    LinkLocal,
    /// It is no address of anything.
    Unspecified,
    /// It would reach many.
    Multicast,
    /// It is where clouds answer with credentials.
    Metadata,
    /// Pod networks are declared, and it is in none of them, nor a node's.
    OutsideDeclaredNetworks,
    /// It is not of its slice's family.
    WrongFamily,
}

/// Alibaba's, Azure's and Amazon's; those on the link are refused as such.
const METADATA: [IpAddr; 3] = [
    IpAddr::V4(std::net::Ipv4Addr::new(100, 100, 100, 200)),
    IpAddr::V4(std::net::Ipv4Addr::new(168, 63, 129, 16)),
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
];

impl Networks {
    /// May traffic of other clusters be pointed at this address, on this cluster's word?
    pub fn judge(&self, address: IpAddr, family: Family) -> Result<(), AddressRefused> {
        if Family::of(address) != family {
            return Err(AddressRefused::WrongFamily);
        }
        let address = address.to_canonical(); // ::ffff:127.0.0.1 is loopback too
        let within = |ranges: &[IpNet]| ranges.iter().any(|range| range.contains(&address));
        if within(&self.declared) {
            return Ok(());
        }
        let (link_local, broadcast) = match address {
            IpAddr::V4(v4) => (v4.is_link_local(), v4.is_broadcast()),
            IpAddr::V6(v6) => (v6.is_unicast_link_local(), false),
        };
        let this_network = matches!(address, IpAddr::V4(v4) if v4.octets()[0] == 0);
        if address.is_unspecified() || this_network {
            Err(AddressRefused::Unspecified)
        } else if address.is_loopback() {
            Err(AddressRefused::Loopback)
        } else if link_local {
            Err(AddressRefused::LinkLocal)
        } else if address.is_multicast() || broadcast {
            Err(AddressRefused::Multicast)
        } else if METADATA.contains(&address) {
            Err(AddressRefused::Metadata)
        } else if !self.pods.is_empty() && !within(&self.pods) && !self.nodes.contains(&address) {
            Err(AddressRefused::OutsideDeclaredNetworks)
        } else {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cidr(text: &str) -> IpNet {
        text.parse().unwrap()
    }

    #[test]
    fn only_addresses_that_lead_to_the_source_pass() {
        use AddressRefused::*;
        let open = Networks::default();
        let sandbox = Networks { declared: vec![cidr("127.8.0.0/16")], ..Networks::default() };
        let strict = Networks {
            pods: vec![cidr("10.1.0.0/16"), cidr("fd01::/64")],
            nodes: ["192.168.0.4".parse().unwrap()].into(),
            ..Networks::default()
        };
        for (networks, address, want) in [
            (&open, "10.1.2.3", Ok(())),
            (&open, "127.0.0.1", Err(Loopback)),
            (&open, "::1", Err(Loopback)),
            (&open, "::ffff:127.0.0.1", Err(Loopback)),
            (&open, "169.254.169.254", Err(LinkLocal)),
            (&open, "fe80::1", Err(LinkLocal)),
            (&open, "0.0.0.0", Err(Unspecified)),
            (&open, "0.1.2.3", Err(Unspecified)),
            (&open, "::", Err(Unspecified)),
            (&open, "224.0.0.1", Err(Multicast)),
            (&open, "ff02::1", Err(Multicast)),
            (&open, "255.255.255.255", Err(Multicast)),
            (&open, "fd00:ec2::254", Err(Metadata)),
            (&open, "100.100.100.200", Err(Metadata)),
            (&open, "168.63.129.16", Err(Metadata)),
            (&open, "::ffff:168.63.129.16", Err(Metadata)),
            (&sandbox, "127.8.3.4", Ok(())),
            (&sandbox, "127.9.3.4", Err(Loopback)),
            (&strict, "10.1.2.3", Ok(())),
            (&strict, "192.168.0.4", Ok(())),
            (&strict, "192.168.0.5", Err(OutsideDeclaredNetworks)),
            (&strict, "fd01::9", Ok(())),
            (&strict, "fd02::9", Err(OutsideDeclaredNetworks)),
        ] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(networks.judge(address, Family::of(address)), want, "{address}");
        }
        assert_eq!(open.judge("10.0.0.1".parse().unwrap(), Family::V6), Err(WrongFamily));
    }
}
