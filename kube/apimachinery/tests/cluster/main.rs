//! Records on a real API server what the replays compare with.
//!
//! Every file of scenarios is played on the server and compared with what was recorded; with `ATOLL_RECORD=1` the
//! recording is replaced instead. Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a
//! failure.

mod record;
#[path = "../shared/scenario.rs"]
mod scenario;

use atoll_lab::suite::{Suite, evidence_root, name};
use std::process::ExitCode;

fn main() -> ExitCode {
    let spec = atoll_lab::Spec::api_only(&name("apimachinery"), 1);
    let evidence = evidence_root(env!("CARGO_TARGET_TMPDIR"));
    let mut suite = Suite::new("apimachinery", spec, evidence).expect("a runtime can be made");
    for (file, scenarios) in scenario::load() {
        suite.test(format!("recorded_{file}_are_what_a_real_server_does"), async move |lab| {
            record::compare(lab.member(1), &file, &scenarios).await
        });
    }
    suite.run()
}
