//! Who may be picked right now. Made once per change, read for every connection.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::backend::Algorithm;
use crate::maglev::Maglev;

/// How far down the ladder a pool had to go to find a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Healthy ones of this tier.
    Tier(u32),
    /// Healthy ones that should have no share.
    WithoutShare,
    /// Healthy ones that are about to end.
    Draining,
    /// Ones that connections failed to lately.
    Ejected,
    /// Ones that fail their checks: better than nothing.
    Unhealthy,
    /// There is no backend.
    Empty,
}

/// One that may be picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Where it listens.
    pub address: SocketAddr,
    /// Its cluster.
    pub cluster: Arc<str>,
    /// Its part beside the other candidates.
    pub weight: u32,
}

/// Who may be picked, and how. Never changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    level: Level,
    algorithm: Algorithm,
    candidates: Vec<Candidate>,
    table: Maglev,
}

impl Default for Picture {
    fn default() -> Self {
        Self {
            level: Level::Empty,
            algorithm: Algorithm::default(),
            candidates: Vec::new(),
            table: Maglev::default(),
        }
    }
}

impl Picture {
    pub(crate) fn new(level: Level, algorithm: Algorithm, seed: u64, candidates: Vec<Candidate>) -> Self {
        let weighed: Vec<_> = candidates.iter().map(|one| (one.address, one.weight)).collect();
        let table = match algorithm {
            Algorithm::Maglev => Maglev::new(seed, &weighed),
            Algorithm::LeastConnections => Maglev::default(),
        };
        Self { level, algorithm, candidates, table }
    }

    /// How far down the ladder these are.
    pub fn level(&self) -> Level {
        self.level
    }

    /// How one is picked.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// All that may be picked.
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The number of the candidate at this address.
    pub fn number_of(&self, address: SocketAddr) -> Option<usize> {
        self.candidates.iter().position(|one| one.address == address)
    }

    /// The candidate for `hash` that is not among `tried`.
    pub fn pick(&self, hash: u64, tried: &[usize]) -> Option<usize> {
        if tried.is_empty() {
            return self.table.lookup(hash);
        }
        if tried.len() >= self.candidates.len() {
            return None;
        }
        self.table.from(hash).find(|number| !tried.contains(number))
    }

    /// The candidate with the fewest open connections for its weight that is not among `tried`; `hash` decides between equals.
    pub fn least(&self, open: impl Fn(usize) -> usize, hash: u64, tried: &[usize]) -> Option<usize> {
        let count = self.candidates.len();
        let start = usize::try_from((u128::from(hash) * count as u128) >> 64).unwrap_or(0);
        let mut best: Option<(usize, u128, u128)> = None;
        for number in (start..count).chain(0..start).filter(|number| !tried.contains(number)) {
            let (load, weight) = (open(number) as u128 + 1, u128::from(self.candidates[number].weight));
            // load / weight < best load / best weight
            if weight > 0 && best.is_none_or(|(_, least, its)| load * its < least * weight) {
                best = Some((number, load, weight));
            }
        }
        best.map(|(number, ..)| number)
    }
}
