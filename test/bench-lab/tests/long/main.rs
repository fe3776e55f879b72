//! The benchmarks at a size that shows whether they work and not how fast: `bench` starts what it measures.
//!
//! Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a failure.

mod hub;
mod lb;

use atoll_lab::suite::{Suite, evidence_root, name};
use std::process::ExitCode;

fn main() -> ExitCode {
    // Every test starts clusters of its own, so these are never started.
    let spec = atoll_lab::Spec::api_only(&name("bench"), 1);
    let evidence = evidence_root(env!("CARGO_TARGET_TMPDIR"));
    let mut suite = Suite::new("bench", spec, evidence).expect("a runtime can be made");
    hub::tests(&mut suite);
    lb::tests(&mut suite);
    suite.run()
}
