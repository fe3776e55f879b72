//! `fuzz <target>`: mutates seeds and feeds them until one finds something, which is kept as a seed.

use atoll_fuzz::{Mutator, Server, Target, seeds};
use clap::Parser;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Feed the embedded API with hostile input.
#[derive(Parser)]
struct Arguments {
    /// What is fed.
    target: Target,
    /// How many inputs.
    #[arg(long, default_value_t = 100_000)]
    runs: u64,
    /// Which inputs: the same number makes the same ones.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> anyhow::Result<()> {
    let Arguments { target, runs, seed } = Arguments::parse();
    let seeds = seeds(target)?;
    let mut mutator = Mutator::new(seed);
    let mut server = Server::start()?;
    for run in 0..runs {
        // What inputs leave behind is dropped now and then.
        if run % 10_000 == 9_999 {
            server = Server::start()?;
            eprintln!("fuzz: {} of {runs}", run + 1);
        }
        let input = mutator.input(&seeds);
        let wrong = match catch_unwind(AssertUnwindSafe(|| target.check(&server, &input))) {
            Ok(Ok(())) => continue,
            Ok(Err(wrong)) => wrong,
            Err(_) => "a panic".to_owned(),
        };
        let path = target.keep(&input, run)?;
        anyhow::bail!("run {run} of seed {seed}: {wrong}\nthe input is kept in {}", path.display());
    }
    println!("{}: {runs} inputs, nothing found", target.name());
    Ok(())
}
