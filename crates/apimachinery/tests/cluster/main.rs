//! Records on a real API server what the replays compare with.
//!
//! Every file of scenarios is played on the server and compared with what was recorded; with `ATOLL_RECORD=1` the
//! recording is replaced instead. Where real clusters can't run it says SKIPPED and why; with `CI=true` that is a
//! failure.

mod record;
#[path = "../scenario/mod.rs"]
mod scenario;

use lab::{Lab, Progress, Spec, requirements};
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// One cluster for all tests, up when the first needs it.
struct Shared {
    runtime: tokio::runtime::Runtime,
    lab: OnceLock<Lab>,
}

impl Shared {
    fn lab(&self) -> anyhow::Result<&Lab> {
        if self.lab.get().is_none() {
            // A lab that is up under the name asked for is used and left as it is.
            let name = std::env::var("ATOLL_LAB_NAME").unwrap_or_else(|_| "test-apimachinery".to_owned());
            let lab = match Lab::find(&name)? {
                Some(lab) => lab,
                None => {
                    self.runtime.block_on(Lab::start(&Spec::api_only(&name, 1), &Progress::to_stderr()))?
                }
            };
            let _ = self.lab.set(lab);
        }
        Ok(self.lab.get().expect("it was just started"))
    }
}

fn main() -> ExitCode {
    let mut arguments = Arguments::from_args();
    arguments.test_threads = Some(1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
    let shared = Arc::new(Shared { runtime, lab: OnceLock::new() });
    let mut trials = Vec::new();
    for (file, scenarios) in scenario::load() {
        let shared = shared.clone();
        trials.push(Trial::test(format!("recorded_{file}_are_what_a_real_server_does"), move || {
            let run = || {
                let lab = shared.lab()?;
                shared.runtime.block_on(record::compare(lab.member(1), &file, &scenarios))
            };
            run().map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
        }));
    }
    let for_facts = shared.clone();
    trials.push(Trial::test("facts_about_built_in_kinds_are_current", move || {
        let run = || {
            let lab = for_facts.lab()?;
            for_facts.runtime.block_on(record::facts(lab))
        };
        run().map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
    }));
    if let Some(missing) = requirements::missing()
        && !arguments.list
    {
        println!("apimachinery: SKIPPED, {} tests on a real API server did not run: {missing}", trials.len());
        let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
        return if in_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    }
    let code = libtest_mimic::run(&arguments, trials).exit_code();
    let shared = Arc::into_inner(shared).expect("every trial is over");
    match shared.lab.into_inner().filter(Lab::is_owned).map(Lab::down) {
        Some(Err(error)) => {
            println!("apimachinery: could not take the cluster down: {error}");
            ExitCode::FAILURE
        }
        Some(Ok(())) | None => code,
    }
}
