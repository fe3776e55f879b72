//! Seeds are replayed as they are, and a fixed number of inputs made of them.

use atoll_fuzz::{Mutator, Server, Target, seeds};

/// Inputs per target: a second or two. `cargo run --package atoll-fuzz` looks for longer.
const RUNS: u64 = 400;

#[test]
fn seeds_are_answered() {
    let server = Server::start().unwrap();
    for target in Target::ALL {
        let seeds = seeds(target).unwrap();
        assert!(seeds.len() >= 5, "{} has seeds", target.name());
        for (name, input) in seeds {
            target.check(&server, &input).unwrap_or_else(|wrong| panic!("{}/{name}: {wrong}", target.name()));
        }
    }
}

#[test]
fn what_is_made_of_seeds_is_answered() {
    for target in Target::ALL {
        let (server, seeds) = (Server::start().unwrap(), seeds(target).unwrap());
        let mut mutator = Mutator::new(1);
        for run in 0..RUNS {
            let input = mutator.input(&seeds);
            let shown = String::from_utf8_lossy(&input).into_owned();
            target
                .check(&server, &input)
                .unwrap_or_else(|wrong| panic!("{} {run}: {wrong}\n{shown}", target.name()));
        }
    }
}
