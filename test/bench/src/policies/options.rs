//! What to measure, and how often.

use serde::{Deserialize, Serialize};

/// A kind of measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Scenario {
    /// Create the policy after the templates.
    Policy,
    /// Create the templates after the policy.
    Templates,
    /// Change one template at a time.
    Change,
}

/// What to measure, and how often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What; empty for all.
    pub only: Vec<Scenario>,
    /// How many templates.
    pub objects: usize,
    /// How many rounds with all of them.
    pub rounds: usize,
    /// How many single changes, each.
    pub samples: usize,
    /// Decides the gaps between single changes.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { only: Vec::new(), objects: 1000, rounds: 5, samples: 300, seed: 1 }
    }
}

impl Options {
    /// What is measured, in the order of the run.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let all = [Scenario::Change, Scenario::Policy, Scenario::Templates];
        all.into_iter().filter(|one| self.only.is_empty() || self.only.contains(one)).collect()
    }
}

/// The same as flags.
#[cfg(feature = "cli")]
#[derive(Debug, Clone, clap::Args)]
pub struct Flags {
    /// Scenarios to run [default: all]. Comma-separated.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub only: Vec<Scenario>,
    /// Number of templates (`ConfigMaps`) in the hub.
    #[arg(long, value_name = "N", default_value_t = Options::default().objects)]
    pub objects: usize,
    /// Number of rounds with all templates.
    #[arg(long, value_name = "N", default_value_t = Options::default().rounds)]
    pub rounds: usize,
    /// Number of single changes, each for Atoll and the floor.
    #[arg(long, value_name = "N", default_value_t = Options::default().samples)]
    pub samples: usize,
    /// Seed of the random gaps between single changes.
    #[arg(long, value_name = "N", default_value_t = Options::default().seed)]
    pub seed: u64,
}

#[cfg(feature = "cli")]
impl Flags {
    /// The options that they come to.
    pub fn options(self) -> Options {
        let Self { only, objects, rounds, samples, seed } = self;
        Options { only, objects, rounds, samples, seed }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_measured_unless_something_is_named_and_small_before_large() {
        let of = |only: &[Scenario]| Options { only: only.to_vec(), ..Options::default() }.scenarios();
        assert_eq!(of(&[]), [Scenario::Change, Scenario::Policy, Scenario::Templates]);
        assert_eq!(of(&[Scenario::Templates, Scenario::Change]), [Scenario::Change, Scenario::Templates]);
    }
}
