//! The shared clusters with the product on them.

use anyhow::Context;
use lab::clusterset::{Atoll, beside};
use lab::{Lab, Process, Spec, suite};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OnceCell;

/// What a test returns.
pub(crate) type Outcome = anyhow::Result<()>;

/// The tests, the clusters that they share, and the product on those; it starts when the first test needs it.
pub(crate) struct Suite {
    suite: suite::Suite,
    set: Arc<OnceCell<Set>>,
}

/// The product on the shared clusters.
pub(crate) struct Set {
    pub(crate) atoll: Atoll,
    hub: Mutex<Process>,
}

impl Set {
    async fn on(lab: &Lab) -> anyhow::Result<Self> {
        let binary = beside(std::path::Path::new(env!("CARGO_BIN_EXE_lab")));
        let (atoll, hub) = lab.clusterset(&binary).await.context("the hub did not start")?;
        Ok(Self { atoll, hub: Mutex::new(hub) })
    }

    /// The hub's process.
    pub(crate) fn hub(&self) -> Process {
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner)
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
        let spec = Spec::whole(&suite::name(""), 3).with_bystander("client").with_bystander("hub");
        let suite = suite::Suite::new("lab", spec, evidence_root()).expect("a runtime can be made");
        Self { suite, set: Arc::default() }
    }

    /// A test on the shared clusters: three whole ones and the bystanders `client` and `hub`.
    pub(crate) fn test(&mut self, name: &'static str, body: impl AsyncFn(&Lab) -> Outcome + Send + 'static) {
        self.suite.test(name, body);
    }

    /// A test on the shared clusters with a hub running and every cluster joined.
    pub(crate) fn set_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab) -> Outcome + Send + 'static,
    ) {
        self.hub_test(name, async move |lab, _| body(lab).await);
    }

    /// As [`Suite::set_test`], for a test that breaks the hub and mends it.
    pub(crate) fn hub_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab, &Set) -> Outcome + Send + 'static,
    ) {
        let set = self.set.clone();
        self.suite.test(name, async move |lab| {
            body(lab, set.get_or_try_init(async || Set::on(lab).await).await?).await
        });
    }

    /// A test that starts what it needs itself.
    pub(crate) fn test_alone(
        &mut self,
        name: &'static str,
        body: impl AsyncFn() -> Outcome + Send + 'static,
    ) {
        self.suite.test_alone(name, body);
    }

    pub(crate) fn run(self) -> ExitCode {
        self.suite.run()
    }
}

/// `target/lab-failures` of the workspace.
pub(crate) fn evidence_root() -> PathBuf {
    suite::evidence_root(env!("CARGO_TARGET_TMPDIR"))
}
