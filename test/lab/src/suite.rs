//! Runs tests on shared clusters, one at a time, and keeps what is needed to see why one failed.

use crate::progress::Progress;
use crate::spec::Spec;
use crate::times::Times;
use crate::{Lab, fault, requirements};
use libtest_mimic::{Arguments, Failed, Trial};
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::OnceCell;

/// Tests, and the clusters that they share.
pub struct Suite {
    shared: Arc<Shared>,
    trials: Vec<Trial>,
}

struct Shared {
    title: &'static str,
    spec: Spec,
    evidence: PathBuf,
    runtime: tokio::runtime::Runtime,
    lab: OnceCell<Lab>,
    times: Times,
}

/// What tests call a lab of their own, so that two runs of them can be told apart by `ATOLL_LAB_NAME`.
pub fn name(own: &str) -> String {
    let run = std::env::var("ATOLL_LAB_NAME").unwrap_or_else(|_| "test".to_owned());
    if own.is_empty() { run } else { format!("{run}-{own}") }
}

/// Where failed tests leave what is needed: `lab-failures` in the workspace's `target`, beside the folder that cargo
/// gives to tests.
pub fn evidence_root(cargo_target_tmpdir: &str) -> PathBuf {
    Path::new(cargo_target_tmpdir).with_file_name("lab-failures")
}

/// Where the times of tests are kept: `test-times`, beside that folder.
pub fn times_root(cargo_target_tmpdir: &str) -> PathBuf {
    Path::new(cargo_target_tmpdir).with_file_name("test-times")
}

/// Where real clusters can't run: says that `what` is so for `title`, and why. In CI that is a failure.
pub fn skipped(title: &str, what: &str) -> Option<ExitCode> {
    let missing = requirements::missing()?;
    println!("{title}: SKIPPED, {what}: {missing}");
    let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
    Some(if in_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Suite {
    /// A suite called `title` on a lab of `spec`, which starts when the first test needs it.
    ///
    /// # Errors
    /// Where no runtime can be made.
    pub fn new(title: &'static str, spec: Spec, evidence: PathBuf) -> std::io::Result<Self> {
        let runtime = tokio::runtime::Runtime::new()?;
        let shared = Shared { title, spec, evidence, runtime, lab: OnceCell::new(), times: Times::default() };
        Ok(Self { shared: Arc::new(shared), trials: Vec::new() })
    }

    /// A test on the shared clusters.
    pub fn test<E: Display>(
        &mut self,
        name: impl Into<String>,
        body: impl AsyncFn(&Lab) -> Result<(), E> + Send + 'static,
    ) {
        let (shared, name) = (self.shared.clone(), name.into());
        self.trials.push(Trial::test(name.clone(), move || {
            let run = || {
                shared.runtime.block_on(async {
                    let lab = shared.lab().await?;
                    body(lab).await.map_err(|error| format!("{error:#}"))
                })
            };
            let broken_before = fault::not_healed();
            let timed = || shared.times.of(&name, run);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(timed));
            let failure = match outcome {
                Ok(Ok(())) if fault::not_healed() > broken_before => "a fault did not heal".to_owned(),
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(panic) => said(&*panic),
            };
            Err(Failed::from(format!("{failure}\n{}", shared.keep_evidence(&name))))
        }));
    }

    /// A test that starts what it needs itself.
    pub fn test_alone<E: Display>(
        &mut self,
        name: &'static str,
        body: impl AsyncFn() -> Result<(), E> + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.trials.push(Trial::test(name, move || {
            let run = || shared.runtime.block_on(body());
            shared.times.of(name, run).map_err(|error| Failed::from(format!("{error:#}")))
        }));
    }

    /// Runs what the command line chooses, and takes the clusters down. Where real clusters can't run it says SKIPPED
    /// and why; with `CI=true` that is a failure.
    pub fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // The tests break things that they share.
        arguments.test_threads = Some(1);
        let title = self.shared.title;
        if !arguments.list
            && let Some(code) =
                skipped(title, &format!("{} tests on real clusters did not run", self.trials.len()))
        {
            return code;
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        let mut code = conclusion.exit_code();
        self.shared.times.report(title, &self.shared.evidence.with_file_name("test-times"));
        let lab = Arc::into_inner(self.shared).and_then(|shared| shared.lab.into_inner());
        if let Some(Err(error)) = lab.map(Lab::down) {
            println!("{title}: could not take the clusters down: {error}");
            code = ExitCode::FAILURE;
        }
        code
    }
}

impl Shared {
    async fn lab(&self) -> Result<&Lab, String> {
        let start = async || {
            let since = Instant::now();
            let lab = Lab::start(&self.spec, &Progress::to_stderr()).await?;
            let seconds = since.elapsed().as_secs_f32();
            eprintln!("{}: {} clusters up in {seconds:.1} s", self.title, self.spec.clusters);
            Ok::<_, crate::Error>(lab)
        };
        let started = self.lab.get_or_try_init(start).await;
        started.map_err(|error| format!("the clusters did not start: {error}"))
    }

    /// Keeps logs and objects of all clusters, and says where.
    fn keep_evidence(&self, test: &str) -> String {
        let Some(lab) = self.lab.get() else { return String::new() };
        let folder = self.evidence.join(test);
        let _ = std::fs::remove_dir_all(&folder);
        match self.runtime.block_on(lab.collect(&folder)) {
            Ok(()) => format!("logs and objects of every cluster: {}", folder.display()),
            Err(error) => format!("could not keep logs and objects: {error}"),
        }
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}
