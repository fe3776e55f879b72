//! How much is measured.

use serde::{Deserialize, Serialize};
use std::ops::Range;

/// How much is measured of servers that are started for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Options {
    /// How many starts of each kind; with none, the servers run already.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 5, value_name = "N"))]
    pub starts: usize,
    /// How long a server is left alone before its memory is read.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 5, value_name = "SECONDS"))]
    pub settle_seconds: u64,
    /// What is asked of them.
    #[serde(flatten)]
    #[cfg_attr(feature = "cli", command(flatten))]
    pub amounts: Amounts,
}

/// How much is asked of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "cli", derive(clap::Args))]
pub struct Amounts {
    /// Number of objects to create and update.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 10_000, value_name = "N"))]
    pub objects: usize,
    /// Number of rounds; the API servers take turns.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 5, value_name = "N"))]
    pub rounds: usize,
    /// Number of concurrent writers.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 16, value_name = "N"))]
    pub clients: usize,
    /// Number of watchers.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 100, value_name = "N"))]
    pub watchers: usize,
    /// Number of changes that the watchers see in each round.
    #[cfg_attr(feature = "cli", arg(long, default_value_t = 100, value_name = "N"))]
    pub changes: usize,
}

impl Amounts {
    /// The objects of one round.
    pub(super) fn objects_of(&self, round: usize) -> Range<usize> {
        let rounds = self.rounds.max(1);
        self.objects * round / rounds..self.objects * (round + 1) / rounds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_of_one_round() {
        let amounts = Amounts { objects: 10, rounds: 3, clients: 1, watchers: 1, changes: 1 };
        let all: Vec<_> = (0..3).flat_map(|round| amounts.objects_of(round)).collect();
        assert_eq!(all, (0..10).collect::<Vec<_>>());
    }
}
