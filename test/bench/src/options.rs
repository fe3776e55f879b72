//! What to measure, and how often.

use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

/// Whose speed is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Who {
    /// The product.
    Ours,
    /// The same writes with nothing around them.
    Floor,
    /// One write per change, to one cluster: less than anybody could do with.
    Copier,
}

impl Who {
    /// Everybody, in the order of the report.
    pub const ALL: [Self; 3] = [Self::Ours, Self::Floor, Self::Copier];

    /// The namespace that its services live in. None of the three writes into the namespace of another.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Ours => "atoll-bench-ours",
            Self::Floor => "atoll-bench-floor",
            Self::Copier => "atoll-bench-copier",
        }
    }

    /// Who lives in `namespace`.
    pub fn of(namespace: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|who| who.namespace() == namespace)
    }
}

/// What makes services cross.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Path {
    /// A ServiceExport in the exporting member.
    #[default]
    Export,
    /// A `MultiClusterService` in the hub.
    Mcs,
}

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Scenario {
    /// One change at a time, with few other services.
    Idle,
    /// Create many services at once.
    Cold,
    /// Change many services at once.
    Burst,
    /// One change at a time, with many other services.
    Loaded,
    /// First change after a restart of the hub.
    Restart,
    /// As `loaded`, and the hub is asked for 100 explanations a second. Not by default: needs the hub's API.
    Asked,
}

impl Scenario {
    /// Those that are measured by default.
    pub const DEFAULT: [Self; 5] = [Self::Idle, Self::Cold, Self::Burst, Self::Loaded, Self::Restart];
}

/// What to measure, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What makes services cross.
    pub path: Path,
    /// Whom.
    pub subjects: Vec<Who>,
    /// What.
    pub scenarios: Vec<Scenario>,
    /// How many single changes, each.
    pub samples: usize,
    /// How many rounds of each burst, cold sync and kind of restart.
    pub rounds: usize,
    /// How many slices change in a burst.
    pub bursts: Vec<usize>,
    /// How many services a cold sync has.
    pub colds: Vec<usize>,
    /// How many services are there under load, asked about or not.
    pub loaded: usize,
    /// How many services are there when the hub is restarted.
    pub restart_services: usize,
    /// Decides the gaps between changes.
    pub seed: u64,
    /// Where endpoints are; where pod networks are declared, it has to be in the source's.
    pub network: Network,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            path: Path::Export,
            subjects: Who::ALL.to_vec(),
            scenarios: Scenario::DEFAULT.to_vec(),
            samples: 300,
            rounds: 5,
            bursts: vec![200, 1000],
            colds: vec![200, 1000],
            loaded: 1400,
            restart_services: 200,
            seed: 1,
            network: Network::default(),
        }
    }
}

impl Options {
    /// Everything once or twice: whether it works, not how fast.
    pub fn quick() -> Self {
        Self {
            samples: 10,
            rounds: 2,
            bursts: vec![20],
            colds: vec![20],
            loaded: 50,
            restart_services: 20,
            ..Self::default()
        }
    }
}

/// A range of IPv4 addresses that endpoints are taken from, with room for at least two sets of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    base: Ipv4Addr,
    length: u8,
}

/// A text that is no such range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a range of IPv4 addresses of /8 to /27, such as 198.18.0.0/16")]
pub struct BadNetwork(String);

impl Default for Network {
    /// The range that is set aside for measurements (RFC 2544).
    fn default() -> Self {
        Self { base: Ipv4Addr::new(198, 18, 0, 0), length: 16 }
    }
}

impl std::str::FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let parsed = text
            .split_once('/')
            .and_then(|(base, length)| Some(Self { base: base.parse().ok()?, length: length.parse().ok()? }));
        parsed.filter(|found| (8..=27).contains(&found.length)).ok_or_else(|| BadNetwork(text.to_owned()))
    }
}

impl Network {
    /// The address of endpoint `endpoint` in content number `revision`. Sets of ten follow each other, and in the end
    /// start over: a revision differs from the one before it in every address.
    pub fn address(self, revision: usize, endpoint: usize) -> Ipv4Addr {
        let usable = (1_usize << (32 - self.length)) - 2;
        let sets = usable / ENDPOINTS;
        let offset = 1 + (revision % sets) * ENDPOINTS + endpoint % ENDPOINTS;
        let base = u32::from(self.base) & (u32::MAX << (32 - self.length));
        Ipv4Addr::from(base + u32::try_from(offset).unwrap_or_default())
    }
}

/// How many endpoints a slice has.
pub const ENDPOINTS: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_content_has_no_address_of_the_last() {
        for text in ["198.18.0.0/16", "10.11.0.0/24", "10.0.0.32/27"] {
            let network: Network = text.parse().unwrap();
            let set = |revision| (0..ENDPOINTS).map(move |endpoint| network.address(revision, endpoint));
            for revision in 0..7000 {
                assert!(set(revision).all(|address| !set(revision + 1).any(|next| next == address)));
            }
        }
        let small: Network = "10.11.0.77/24".parse().unwrap();
        assert_eq!(small.address(0, 0), Ipv4Addr::new(10, 11, 0, 1));
        assert_eq!(small.address(24, 9), Ipv4Addr::new(10, 11, 0, 250));
        assert_eq!(small.address(25, 0), small.address(0, 0));
    }

    #[test]
    fn nonsense_is_no_network() {
        for text in ["", "10.0.0.0", "10.0.0.0/28", "10.0.0.0/2", "fd00::/16", "x/16"] {
            assert!(text.parse::<Network>().unwrap_err().to_string().contains(text));
        }
    }

    #[test]
    fn everybody_has_a_namespace_of_their_own() {
        for who in Who::ALL {
            assert_eq!(Who::of(who.namespace()), Some(who));
        }
        assert_eq!(Who::of("default"), None);
    }
}
