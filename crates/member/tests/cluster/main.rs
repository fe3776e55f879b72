//! Two members of real clusters and a tiny hub, on the API only.
//!
//! One process owns the clusters, starts them when the first test needs them and takes them down at the end.
//! Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a failure.

mod harness;
mod hub;
mod stories;

fn main() -> std::process::ExitCode {
    let mut suite = harness::Suite::new();
    stories::tests(&mut suite);
    suite.run()
}
