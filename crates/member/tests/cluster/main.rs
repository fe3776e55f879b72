//! Two members of real clusters and a tiny hub, on the API only.
//!
//! One process owns the clusters, starts them when the first test needs them and takes them down at the end.
//! Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a failure.

mod hub;
mod stories;

use lab::suite::{Suite, evidence_root, name};

fn main() -> std::process::ExitCode {
    let spec = lab::Spec::api_only(&name("member"), 2);
    let evidence = evidence_root(env!("CARGO_TARGET_TMPDIR"));
    let mut suite = Suite::new("member", spec, evidence).expect("a runtime can be made");
    stories::tests(&mut suite);
    suite.run()
}
