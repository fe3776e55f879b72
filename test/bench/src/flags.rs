//! The benchmark's flags, for whichever program has them.

use clap::Args;

use crate::options::{Network, Options, Path, Scenario};

/// What to measure, and how often.
#[derive(Debug, Clone, Args)]
pub struct Flags {
    /// How services are exported: by a ServiceExport, or by a `MultiClusterService` in the hub.
    #[arg(long, value_enum, default_value_t)]
    pub path: Path,
    /// Run every scenario once or twice: shows whether it works, not how fast.
    #[arg(long)]
    pub quick: bool,
    /// Scenarios to run [default: all]. Comma-separated.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub only: Vec<Scenario>,
    /// Number of single changes, each for Atoll, the floor and the copier.
    #[arg(long, value_name = "N")]
    pub samples: Option<usize>,
    /// Number of rounds of each burst, cold sync and kind of restart.
    #[arg(long, value_name = "N")]
    pub rounds: Option<usize>,
    /// Sizes of the bursts. Comma-separated.
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub burst: Vec<usize>,
    /// Sizes of the cold syncs. Comma-separated.
    #[arg(long, value_delimiter = ',', value_name = "N")]
    pub cold: Vec<usize>,
    /// Number of services in the scenario `loaded`.
    #[arg(long, value_name = "N")]
    pub loaded: Option<usize>,
    /// Seed of the random gaps between single changes.
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// Network of the endpoints; must be in the pod network of --from, if that is declared [default: 198.18.0.0/16].
    #[arg(long, value_name = "CIDR")]
    pub endpoint_network: Option<Network>,
}

impl Flags {
    /// The options that they come to.
    pub fn options(self) -> Options {
        let base = if self.quick { Options::quick() } else { Options::default() };
        let given = |list: Vec<usize>, default| if list.is_empty() { default } else { list };
        Options {
            path: self.path,
            scenarios: if self.only.is_empty() { base.scenarios } else { self.only },
            samples: self.samples.unwrap_or(base.samples),
            rounds: self.rounds.unwrap_or(base.rounds),
            bursts: given(self.burst, base.bursts),
            colds: given(self.cold, base.colds),
            loaded: self.loaded.unwrap_or(base.loaded),
            seed: self.seed.unwrap_or(base.seed),
            network: self.endpoint_network.unwrap_or(base.network),
            subjects: base.subjects,
            restart_services: base.restart_services,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: Flags,
    }

    #[test]
    fn flags_replace_what_they_name_and_leave_the_rest() {
        let options =
            |line: &str| Program::try_parse_from(line.split(' ')).map(|program| program.flags.options());
        assert_eq!(options("bench").unwrap(), Options::default());
        assert_eq!(options("bench --quick").unwrap(), Options::quick());
        let some =
            options("bench --only idle,burst --burst 20,30 --samples 7 --endpoint-network 10.11.0.0/24");
        let want = Options {
            scenarios: vec![Scenario::Idle, Scenario::Burst],
            bursts: vec![20, 30],
            samples: 7,
            network: "10.11.0.0/24".parse().unwrap(),
            ..Options::default()
        };
        assert_eq!(some.unwrap(), want);
        let by_mcs = Options { path: Path::Mcs, ..Options::default() };
        assert_eq!(options("bench --path mcs").unwrap(), by_mcs);
        for wrong in ["bench --path sea", "bench --only everything", "bench --endpoint-network here"] {
            assert!(options(wrong).is_err(), "{wrong}");
        }
    }
}
