//! Runs tests on shared clusters, one at a time.

use std::process::ExitCode;
use std::sync::Arc;

use lab::{Lab, Progress, Spec, requirements};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::sync::OnceCell;

/// What a test returns.
pub(crate) type Outcome = anyhow::Result<()>;

/// The tests, and the clusters that they share.
pub(crate) struct Suite {
    shared: Arc<Shared>,
    trials: Vec<Trial>,
}

struct Shared {
    runtime: tokio::runtime::Runtime,
    lab: OnceCell<Lab>,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
        Self { shared: Arc::new(Shared { runtime, lab: OnceCell::new() }), trials: Vec::new() }
    }

    /// A test on two clusters that are only an API.
    pub(crate) fn test(&mut self, name: &'static str, body: impl AsyncFn(&Lab) -> Outcome + Send + 'static) {
        let shared = self.shared.clone();
        self.trials.push(Trial::test(name, move || {
            let run = || {
                shared.runtime.block_on(async {
                    let spec = Spec::api_only("test-member", 2);
                    let start = async || Lab::start(&spec, &Progress::to_stderr()).await;
                    let lab = shared.lab.get_or_try_init(start).await?;
                    body(lab).await
                })
            };
            run().map_err(|error: anyhow::Error| Failed::from(format!("{error:#}")))
        }));
    }

    pub(crate) fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // The tests share clusters.
        arguments.test_threads = Some(1);
        if let Some(missing) = requirements::missing()
            && !arguments.list
        {
            println!("member: SKIPPED, {} tests on real clusters did not run: {missing}", self.trials.len());
            let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
            return if in_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        let code = conclusion.exit_code();
        let shared = Arc::into_inner(self.shared).expect("every trial is over");
        match shared.lab.into_inner().map(Lab::down) {
            Some(Err(error)) => {
                println!("member: could not take the clusters down: {error}");
                ExitCode::FAILURE
            }
            Some(Ok(())) | None => code,
        }
    }
}
