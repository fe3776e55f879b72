//! The lab's own end-to-end tests, on real clusters.
//!
//! One process owns the clusters, starts them when the first test needs them and takes them down at the end.
//! Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a failure.

mod check;
mod components;
mod cuts;
mod dns;
mod dns_wire;
mod explain;
mod exports;
mod harness;
mod hot_path;
mod joining;
mod lb;
mod lifecycle;
mod mcs;
mod mcs_native;
mod policies;
mod recorder;
mod relays;
mod sandbox;
mod survival;
mod traffic;
mod versions;

fn main() -> std::process::ExitCode {
    let mut suite = harness::Suite::new();
    traffic::tests(&mut suite);
    recorder::tests(&mut suite);
    relays::tests(&mut suite);
    cuts::tests(&mut suite);
    components::tests(&mut suite);
    exports::tests(&mut suite);
    explain::tests(&mut suite);
    dns::tests(&mut suite);
    dns_wire::tests(&mut suite);
    check::tests(&mut suite);
    hot_path::tests(&mut suite);
    survival::tests(&mut suite);
    sandbox::tests(&mut suite);
    joining::tests(&mut suite);
    policies::tests(&mut suite);
    mcs_native::tests(&mut suite);
    lb::tests(&mut suite);
    versions::tests(&mut suite);
    lifecycle::tests(&mut suite);
    suite.run()
}
