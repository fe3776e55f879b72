//! Runs tests on shared clusters, one at a time, and keeps what is needed to see why one failed.

use anyhow::Context;
use lab::clusterset::{Atoll, beside};
use lab::naming::Resolver;
use lab::{Cluster, Lab, Process, Progress, Spec, requirements};
use libtest_mimic::{Arguments, Failed, Trial};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
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
    /// The product on those clusters; started when the first test needs it.
    set: OnceCell<Set>,
    /// Names of the clusterset are answered; from when the first test needs it.
    names: OnceCell<()>,
}

/// The product on the shared clusters.
pub(crate) struct Set {
    pub(crate) atoll: Atoll,
    hub: Mutex<Process>,
    /// `atoll dns` by the number of its cluster.
    dns: Mutex<BTreeMap<u32, Process>>,
}

impl Set {
    /// The hub's process.
    pub(crate) fn hub(&self) -> Process {
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends `atoll dns` of `cluster` and starts it again.
    pub(crate) async fn restart_dns(&self, cluster: &Cluster) -> lab::Result<()> {
        let number = cluster.addresses().number.into();
        let before = self.dns.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied();
        if let Some(before) = before {
            before.kill()?;
        }
        let process = self.atoll.restart_dns(cluster).await?;
        self.dns.lock().unwrap_or_else(PoisonError::into_inner).insert(number, process);
        Ok(())
    }

    /// Starts a hub again, after one was ended.
    pub(crate) fn start_hub(&self) -> lab::Result<()> {
        let process = self.atoll.start_hub("hub", &[])?;
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner) = process;
        Ok(())
    }
}

impl Suite {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Runtime::new().expect("a runtime can be made");
        Self {
            shared: Arc::new(Shared {
                runtime,
                lab: OnceCell::new(),
                set: OnceCell::new(),
                names: OnceCell::new(),
            }),
            trials: Vec::new(),
        }
    }

    /// A test on the shared clusters: three whole ones and the bystanders `client` and `hub`.
    pub(crate) fn test(&mut self, name: &'static str, body: impl AsyncFn(&Lab) -> Outcome + Send + 'static) {
        let shared = self.shared.clone();
        self.trials.push(Trial::test(name, move || {
            let run = || {
                shared.runtime.block_on(async {
                    let lab = shared.lab().await?;
                    body(lab).await
                })
            };
            let broken_before = lab::fault::not_healed();
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            let failure = match outcome {
                Ok(Ok(())) if lab::fault::not_healed() > broken_before => "a fault did not heal".to_owned(),
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => format!("{error:#}"),
                Err(panic) => said(&*panic),
            };
            Err(Failed::from(format!("{failure}\n{}", shared.keep_evidence(name))))
        }));
    }

    /// A test on the shared clusters with a hub running and every cluster joined.
    pub(crate) fn set_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab) -> Outcome + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.test(name, async move |lab| {
            shared.set(lab).await?;
            body(lab).await
        });
    }

    /// As [`Suite::set_test`], for a test that breaks the hub and mends it.
    pub(crate) fn hub_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab, &Set) -> Outcome + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.test(name, async move |lab| body(lab, shared.set(lab).await?).await);
    }

    /// As [`Suite::hub_test`], with `atoll dns` in every cluster and CoreDNS leading to it.
    pub(crate) fn dns_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab, &Set) -> Outcome + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.test(name, async move |lab| {
            let set = shared.set(lab).await?;
            shared.names(lab, set).await?;
            body(lab, set).await
        });
    }

    /// A test that starts what it needs itself.
    pub(crate) fn test_alone(
        &mut self,
        name: &'static str,
        body: impl AsyncFn() -> Outcome + Send + 'static,
    ) {
        let shared = self.shared.clone();
        self.trials.push(Trial::test(name, move || {
            shared.runtime.block_on(body()).map_err(|error| Failed::from(format!("{error:#}")))
        }));
    }

    pub(crate) fn run(self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        // The tests break things that they share.
        arguments.test_threads = Some(1);
        if let Some(missing) = requirements::missing()
            && !arguments.list
        {
            println!("lab: SKIPPED, {} tests on real clusters did not run: {missing}", self.trials.len());
            let in_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty() && value != "false");
            return if in_ci { ExitCode::FAILURE } else { ExitCode::SUCCESS };
        }
        let conclusion = libtest_mimic::run(&arguments, self.trials);
        let mut code = conclusion.exit_code();
        let shared = Arc::into_inner(self.shared).expect("every trial is over");
        if let Some(lab) = shared.lab.into_inner()
            && let Err(error) = lab.down()
        {
            println!("lab: could not take the clusters down: {error}");
            code = ExitCode::FAILURE;
        }
        code
    }
}

impl Shared {
    async fn lab(&self) -> anyhow::Result<&Lab> {
        let start = async || {
            let since = Instant::now();
            let lab = Lab::start(&spec(), &Progress::to_stderr()).await?;
            eprintln!("lab: three whole clusters up in {:.1} s", since.elapsed().as_secs_f32());
            Ok::<_, lab::Error>(lab)
        };
        self.lab.get_or_try_init(start).await.context("the clusters did not start")
    }

    async fn set(&self, lab: &Lab) -> anyhow::Result<&Set> {
        let binary = beside(std::path::Path::new(env!("CARGO_BIN_EXE_lab")));
        let start = async || {
            let (atoll, hub) = lab.clusterset(&binary).await?;
            Ok::<_, lab::Error>(Set { atoll, hub: Mutex::new(hub), dns: Mutex::default() })
        };
        self.set.get_or_try_init(start).await.context("the hub did not start")
    }

    async fn names(&self, lab: &Lab, set: &Set) -> anyhow::Result<()> {
        let start = async || {
            let servers = lab.clusterset_names(&set.atoll, Resolver::Atoll).await?;
            *set.dns.lock().unwrap_or_else(PoisonError::into_inner) = (1..).zip(servers).collect();
            Ok::<_, lab::Error>(())
        };
        self.names.get_or_try_init(start).await.context("atoll dns did not start")?;
        Ok(())
    }

    /// Keeps logs and objects of all clusters, and says where.
    fn keep_evidence(&self, test: &str) -> String {
        let Some(lab) = self.lab.get() else { return String::new() };
        let folder = evidence_root().join(test);
        let _ = std::fs::remove_dir_all(&folder);
        match self.runtime.block_on(lab.collect(&folder)) {
            Ok(()) => format!("logs and objects of every cluster: {}", folder.display()),
            Err(error) => format!("could not keep logs and objects: {error}"),
        }
    }
}

fn spec() -> Spec {
    let name = std::env::var("ATOLL_LAB_NAME").unwrap_or_else(|_| "test".to_owned());
    Spec::whole(&name, 3).with_bystander("client").with_bystander("hub")
}

/// `target/lab-failures` of the workspace.
pub(crate) fn evidence_root() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
        .parent()
        .expect("it lies in the target folder")
        .join("lab-failures")
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without a message").to_owned()
}
