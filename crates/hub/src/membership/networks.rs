//! Ranges of addresses, and which of two clusters' overlap.
//!
//! ```
//! use atoll_hub::networks::{Kind, Networks, overlap};
//! let east = Networks { pods: "10.1.0.0/16".parse()?, ..Networks::default() };
//! let west = Networks { pods: "10.1.128.0/17".parse()?, ..Networks::default() };
//! let found = overlap(&east, &west).expect("the pods do");
//! assert_eq!((found.ours.0, found.ours.1.to_string()), (Kind::Pods, "10.1.0.0/16".to_owned()));
//! # Ok::<(), atoll_hub::networks::BadRange>(())
//! ```

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use ipnet::IpNet;

/// A text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a CIDR such as 10.1.0.0/16")]
pub struct BadRange {
    /// What came.
    pub text: String,
}

/// Reads a range.
pub fn range(text: &str) -> Result<IpNet, BadRange> {
    text.trim().parse().map_err(|_| BadRange { text: text.to_owned() })
}

/// Whether some address is in both.
fn overlaps(one: &IpNet, other: &IpNet) -> bool {
    one.contains(other) || other.contains(one)
}

/// Several ranges, written with commas in between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranges(pub BTreeSet<IpNet>);

impl Ranges {
    /// As the engine has them.
    pub(crate) fn cidrs(&self) -> Vec<IpNet> {
        self.0.iter().copied().collect()
    }
}

impl FromStr for Ranges {
    type Err = BadRange;

    fn from_str(text: &str) -> Result<Self, BadRange> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        parts.map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            write!(f, "{}{range}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

/// The networks of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Networks {
    /// Of its pods.
    pub pods: Ranges,
    /// Of its services.
    pub services: Ranges,
    /// Of its nodes. Not looked at for overlaps: clusters behind address translation may have the same.
    pub nodes: Ranges,
}

/// What a range is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Pods.
    Pods,
    /// Services.
    Services,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Pods => "pod network",
            Self::Services => "service network",
        })
    }
}

/// Two ranges that share an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The range of the one.
    pub ours: (Kind, IpNet),
    /// The range of the other.
    pub theirs: (Kind, IpNet),
}

/// The first overlap between two clusters. A service network matters as well: in the other cluster its addresses are
/// caught by kube-proxy before they could reach a pod.
pub fn overlap(ours: &Networks, theirs: &Networks) -> Option<Overlap> {
    let of = |networks: &Networks| {
        let pods = networks.pods.0.iter().map(|range| (Kind::Pods, *range));
        pods.chain(networks.services.0.iter().map(|range| (Kind::Services, *range))).collect::<Vec<_>>()
    };
    let theirs = of(theirs);
    of(ours).into_iter().find_map(|ours| {
        let found = theirs.iter().find(|theirs| overlaps(&ours.1, &theirs.1))?;
        Some(Overlap { ours, theirs: *found })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_overlap_when_they_share_an_address() {
        for (ours, theirs, want) in [
            ("10.1.0.0/16", "10.2.0.0/16", false),
            ("10.1.0.0/16", "10.1.255.0/24", true),
            ("10.1.255.0/24", "10.1.0.0/16", true),
            ("10.1.0.0/16", "10.1.0.0/16", true),
            ("0.0.0.0/0", "10.1.0.0/16", true),
            ("0.0.0.0/0", "fd00::/8", false),
            ("fd00:1::/64", "fd00:2::/64", false),
            ("fd00:1::/48", "fd00:1:0:5::/64", true),
        ] {
            let (a, b) = (range(ours).unwrap(), range(theirs).unwrap());
            assert_eq!((overlaps(&a, &b), overlaps(&b, &a)), (want, want), "{ours} {theirs}");
        }
    }

    #[test]
    fn a_service_network_may_not_lie_in_a_pod_network() {
        let ours = Networks { pods: "10.0.0.0/8".parse().unwrap(), ..Networks::default() };
        let (pods, services) = ("192.168.0.0/16".parse().unwrap(), "10.96.0.0/12".parse().unwrap());
        let theirs = Networks { pods, services, ..Networks::default() };
        let found = overlap(&ours, &theirs).unwrap();
        assert_eq!((found.ours.0, found.theirs.0), (Kind::Pods, Kind::Services));
        assert_eq!(overlap(&ours, &Networks::default()), None, "unknown networks overlap nothing");
    }

    #[test]
    fn ranges_are_read_as_they_are_written() {
        for text in ["", "10.1.0.0/16", "10.1.0.0/16,fd00::/64"] {
            assert_eq!(text.parse::<Ranges>().unwrap().to_string(), text);
        }
        for text in ["10.1.0.0", "10.1.0.0/33", "a/8", "10.1.0.0/16;10.2.0.0/16"] {
            assert!(text.parse::<Ranges>().is_err(), "{text}");
        }
    }
}
