//! Runs every case on a real kube-apiserver and on the embedded one.

use std::cell::Cell;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::{Arc, Once};

use anyhow::Context;
use atoll_lab::times::Times;
use atoll_lab::{Lab, Progress, Spec, suite};
use libtest_mimic::{Arguments, Failed, Trial};
use tokio::sync::OnceCell;

use crate::embedded::Embedded;
use crate::target::{Target, Way};

/// A case: its name and what it does.
pub(crate) type Case = (&'static str, fn(Target) -> Pin<Box<dyn Future<Output = ()> + Send>>);

/// Lists a file's cases: `cases! { a_thing_is_refused, another_is_not }`.
macro_rules! cases {
    ($($name:ident),* $(,)?) => {
        pub(crate) const CASES: &[$crate::suite::Case] = &[
            $((stringify!($name), |target| Box::pin($name(target)))),*
        ];
    };
}
pub(crate) use cases;

/// Cases wait for their server most of the time.
const SIDE_BY_SIDE: usize = 8;

/// The cases, and the servers that they share.
pub(crate) struct Suite {
    shared: Arc<Shared>,
    trials: Vec<Trial>,
}

struct Shared {
    runtime: tokio::runtime::Runtime,
    run: String,
    real: OnceCell<(Option<Lab>, Target)>,
    embedded: OnceCell<(Embedded, Target)>,
    times: Times,
}

impl Suite {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
        let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis());
        let run = format!("r{:07x}", since % 0x1000_0000);
        let (real, embedded) = (OnceCell::new(), OnceCell::new());
        Self {
            shared: Arc::new(Shared { runtime, run, real, embedded, times: Times::default() }),
            trials: Vec::new(),
        }
    }

    /// Adds the cases of one file.
    pub(crate) fn add(&mut self, file: &str, cases: &[Case]) {
        self.add_on(&[Server::Real, Server::Embedded], file, cases);
    }

    /// Adds the cases of one file that are for the embedded server only.
    pub(crate) fn add_embedded(&mut self, file: &str, cases: &[Case]) {
        self.add_on(&[Server::Embedded], file, cases);
    }

    fn add_on(&mut self, servers: &[Server], file: &str, cases: &[Case]) {
        for (name, body) in cases.iter().copied() {
            let case = format!("{file}::{name}");
            for server in servers.iter().copied() {
                let (shared, case) = (self.shared.clone(), case.clone());
                let trial = Trial::test(case.clone(), move || {
                    let target = shared.runtime.block_on(shared.target(server));
                    let target = target.map_err(|error| Failed::from(format!("{error:#}")))?;
                    let title = format!("{case} ({})", server.name());
                    let case_on = || shared.runtime.block_on(body(target.for_case(&case)));
                    let run = || shared.times.of(&title, case_on);
                    match server {
                        Server::Embedded if left_out(&case) => return fails(run),
                        Server::Embedded | Server::Real => run(),
                    }
                    Ok(())
                });
                self.trials.push(trial.with_kind(server.name()));
            }
        }
    }

    pub(crate) fn run(mut self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        arguments.test_threads.get_or_insert(SIDE_BY_SIDE);
        let only = std::env::var("ATOLL_CONTRACT_ONLY").unwrap_or_default();
        if !only.is_empty() {
            self.trials.retain(|trial| trial.kind() == only);
        }
        for (case, _) in crate::embedded::LEFT_OUT {
            let known = self.trials.iter().any(|trial| trial.name() == *case);
            assert!(known || !only.is_empty(), "{case} is left out, and there is no such case");
        }
        let mut skipped = None;
        if real_elsewhere().is_none() && !arguments.list {
            skipped = suite::skipped("kubeapi", "the contract did not run on a real kube-apiserver");
        }
        if skipped.is_some() {
            self.trials.retain(|trial| trial.kind() != Server::Real.name());
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        let mut code = conclusion.exit_code();
        self.shared.times.report("kubeapi", &suite::times_root(env!("CARGO_TARGET_TMPDIR")));
        let shared = Arc::into_inner(self.shared).expect("every trial is over");
        if let Some((Some(lab), _)) = shared.real.into_inner()
            && let Err(error) = lab.down()
        {
            println!("kubeapi: could not take the cluster down: {error}");
            code = ExitCode::FAILURE;
        }
        match skipped {
            Some(verdict) if code == ExitCode::SUCCESS => verdict,
            Some(_) | None => code,
        }
    }
}

thread_local! {
    /// Whether a panic of this thread is what should happen.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// What the embedded server does not do on purpose must not pass: then it does it, and the list is wrong.
fn fails(run: impl FnOnce()) -> Result<(), Failed> {
    // What is expected is not printed: it would look like a failure.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !EXPECTED.get() {
                loud(panic);
            }
        }));
    });
    EXPECTED.set(true);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
    EXPECTED.set(false);
    match outcome {
        Ok(()) => Err(Failed::from(
            "it passes: take it off the list of what is left out, here and in docs/kubeapi.md",
        )),
        Err(_) => Ok(()),
    }
}

fn left_out(case: &str) -> bool {
    crate::embedded::LEFT_OUT.iter().any(|(name, _)| *name == case)
}

#[derive(Clone, Copy)]
enum Server {
    Real,
    Embedded,
}

impl Server {
    fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Embedded => "embedded",
        }
    }
}

impl Shared {
    async fn target(&self, server: Server) -> anyhow::Result<&Target> {
        Ok(match server {
            Server::Real => &self.real.get_or_try_init(|| real(&self.run)).await?.1,
            Server::Embedded => {
                let start = async || {
                    let embedded = Embedded::start().await?;
                    let target = Target::new(false, embedded.way(), &self.run)?;
                    anyhow::Ok((embedded, target))
                };
                &self.embedded.get_or_try_init(start).await.context("the embedded server did not start")?.1
            }
        })
    }
}

/// The name of a lab that is up already: cases are written faster on one that stays.
fn real_elsewhere() -> Option<String> {
    std::env::var("ATOLL_CONTRACT_LAB").ok().filter(|name| !name.is_empty())
}

async fn real(run: &str) -> anyhow::Result<(Option<Lab>, Target)> {
    let (lab, owned) = match real_elsewhere() {
        Some(name) => (Lab::find(&name)?.with_context(|| format!("no lab `{name}` is up"))?, false),
        None => {
            let spec = Spec { audit: false, ..Spec::api_with_cleanup(&suite::name("kubeapi"), 1) };
            (Lab::start(&spec, &Progress::to_stderr()).await.context("the cluster did not start")?, true)
        }
    };
    let cluster = lab.member(1);
    let way = Way {
        server: cluster.server(),
        ca: cluster.ca().to_owned(),
        token: cluster.token().to_owned(),
        kubeconfig: cluster.dir().join("kubeconfig"),
    };
    let target = Target::new(true, way, run)?;
    Ok((owned.then_some(lab), target))
}
