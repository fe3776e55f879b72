//! Address families, and the rule for addresses that may enter another cluster: one judge for imports, native access and balancers.
//!
//! What a member may announce is the operator's word, or what was read off it at its join and shown to him. Its own later words change
//! nothing. Start at [`territory::Territory`].

mod special;
pub mod territory;

use std::collections::BTreeSet;
use std::net::IpAddr;

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

/// What is known of where a member is. Each range by how it is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Networks {
    /// The operator's word.
    pub declared: Ranges,
    /// The operator's word: ranges of loopback that pass, such as the sandbox's. Nothing else that is always refused does.
    pub endpoints: Vec<IpNet>,
    /// Read off the member when it joined, and shown to the operator.
    pub observed: Ranges,
    /// Whether what was observed binds the member itself. Of one that joined by an older release it does not: nothing had said so.
    pub binding: bool,
    /// Read off a member that joined without that, when it was first heard: it binds the member, and denies nothing to others.
    pub learnt: Ranges,
    /// Since when it is a member, in seconds: of two with one observed range the elder has it.
    pub since: i64,
}

impl Networks {
    /// Whether some of its pod networks are known: then nothing outside of its ranges passes.
    pub fn knows_pods(&self) -> bool {
        let observed = self.binding && !self.observed.pods.is_empty();
        observed || [&self.declared, &self.learnt].into_iter().any(|ranges| !ranges.pods.is_empty())
    }
}

/// Ranges by what they are for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Ranges {
    /// Of pods.
    pub pods: Vec<IpNet>,
    /// Of nodes, for pods on the host network.
    pub nodes: Vec<IpNet>,
    /// Of Services. No member announces one.
    pub services: Vec<IpNet>,
    /// Of the API. No member announces one.
    pub api: Vec<IpNet>,
}

/// What a member's Node objects say: its own word.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Nodes {
    /// Their addresses.
    pub addresses: BTreeSet<IpAddr>,
    /// The networks of their pods.
    pub pods: BTreeSet<IpNet>,
}

/// Addresses that are no member's.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reserved {
    /// The hub's own.
    pub hub: Vec<IpNet>,
    /// Those that balancers give to services.
    pub pool: Vec<IpNet>,
}

/// What a range is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Use {
    /// Pods.
    Pods,
    /// Nodes.
    Nodes,
    /// Services.
    Services,
    /// The API.
    Api,
    /// Endpoints of any kind, by the operator's word.
    Endpoints,
}

impl Use {
    /// In a word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pods => "pods",
            Self::Nodes => "nodes",
            Self::Services => "services",
            Self::Api => "api",
            Self::Endpoints => "endpoints",
        }
    }

    /// Whether endpoints of an owner may be there.
    pub fn announces(self) -> bool {
        match self {
            Self::Pods | Self::Nodes | Self::Endpoints => true,
            Self::Services | Self::Api => false,
        }
    }
}

/// Why no cluster may announce this address, whatever its networks are. Loopback has an exception: networks that the operator declared.
pub fn always_refused(address: IpAddr) -> Option<AddressRefused> {
    special::refused(address.to_canonical())
}

/// Why an address may not enter another cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
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
    /// The hub has it.
    OfTheHub,
    /// Balancers give it to services.
    OfABalancer,
    /// Another member has it. Which one is not said: whoever announces it has no right to know.
    OfAnotherMember(Use),
    /// Pod networks are known, and it is in none of the member's ranges.
    OutsideDeclaredNetworks,
    /// It is not of its slice's family.
    WrongFamily,
}

impl AddressRefused {
    /// For a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Loopback => "Loopback",
            Self::LinkLocal => "LinkLocal",
            Self::Unspecified => "Unspecified",
            Self::Multicast => "Multicast",
            Self::Metadata => "Metadata",
            Self::OfAnotherMember(_) => "OfAnotherMember",
            Self::OfTheHub => "OfTheHub",
            Self::OfABalancer => "OfABalancer",
            Self::OutsideDeclaredNetworks => "OutsideDeclaredNetworks",
            Self::WrongFamily => "WrongFamily",
        }
    }
}

#[cfg(test)]
mod tests;
