//! The shared clusters with the product on them.

use anyhow::Context;
use atoll_lab::clusterset::{Atoll, beside};
use atoll_lab::naming::Resolver;
use atoll_lab::{Cluster, Lab, Process, Spec, suite};
use std::collections::BTreeMap;
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
    part: Part,
    /// How many of [`HUB_API`] there are.
    of_hub_api: usize,
}

/// Which of the tests run, by `ATOLL_LAB_TESTS`: parts need nothing of each other and can run side by side, under
/// different names (`ATOLL_LAB_NAME`).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    All,
    /// Those on the shared clusters.
    Shared,
    /// Those that start what they need themselves.
    Alone,
    /// Those that lean on the hub's API.
    HubApi,
    /// Those of `make test-long`.
    Long,
}

impl Part {
    fn of_environment() -> Self {
        match std::env::var("ATOLL_LAB_TESTS").as_deref() {
            Err(_) | Ok("") => Self::All,
            Ok("shared") => Self::Shared,
            Ok("alone") => Self::Alone,
            Ok("hub-api") => Self::HubApi,
            Ok("long") => Self::Long,
            Ok(other) => panic!("ATOLL_LAB_TESTS is shared, alone, hub-api or long, not {other}"),
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::All => "lab",
            Self::Shared => "lab-shared",
            Self::Alone => "lab-alone",
            Self::HubApi => "lab-hub-api",
            Self::Long => "lab-long",
        }
    }
}

/// The tests that say the most about the API that a hub keeps its state in: who is a member, what is remembered over a
/// restart, what reaches every cluster. `make test` runs them once more with the hub on its own API.
const HUB_API: &[&str] = &[
    "joining_refuses_bad_input_and_leaves_nothing_half_done",
    "unjoining_takes_away_what_joining_brought",
    "an_exported_service_is_reached_from_every_cluster",
    "a_namespace_that_comes_later_imports_then",
    "a_changed_derived_service_is_repaired",
    "every_conflict_shows_on_all_exports",
    "a_hub_killed_in_a_burst_loses_nothing",
    "a_lost_member_is_withdrawn_where_its_export_asks_for_it",
    "a_hub_started_while_a_member_is_down_changes_nothing",
];

/// The product on the shared clusters.
pub(crate) struct Set {
    pub(crate) atoll: Atoll,
    hub: Mutex<Process>,
    /// `atoll dns` by the number of its cluster; from when the first test needs it.
    dns: OnceCell<Mutex<BTreeMap<u8, Process>>>,
}

impl Set {
    async fn on(lab: &Lab) -> anyhow::Result<Self> {
        let binary = beside(std::path::Path::new(env!("CARGO_BIN_EXE_lab")));
        let (atoll, hub) = lab.clusterset(&binary).await.context("the hub did not start")?;
        Ok(Self { atoll, hub: Mutex::new(hub), dns: OnceCell::new() })
    }

    /// Has names of the clusterset answered in every cluster.
    async fn names(&self, lab: &Lab) -> anyhow::Result<()> {
        let start = async || {
            let servers = lab.clusterset_names(&self.atoll, Resolver::Atoll).await?;
            Ok::<_, atoll_lab::Error>(Mutex::new((1..).zip(servers).collect()))
        };
        self.dns.get_or_try_init(start).await.context("atoll dns did not start")?;
        Ok(())
    }

    /// Ends `atoll dns` of `cluster` and starts it again.
    pub(crate) async fn restart_dns(&self, cluster: &Cluster) -> anyhow::Result<()> {
        let servers = self.dns.get().context("atoll dns runs")?;
        let number = cluster.addresses().number;
        let before = servers.lock().unwrap_or_else(PoisonError::into_inner).get(&number).copied();
        if let Some(before) = before {
            before.kill()?;
        }
        let process = self.atoll.restart_dns(cluster).await?;
        servers.lock().unwrap_or_else(PoisonError::into_inner).insert(number, process);
        Ok(())
    }

    /// The hub's process.
    pub(crate) fn hub(&self) -> Process {
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a hub again, after one was ended.
    pub(crate) fn start_hub(&self) -> atoll_lab::Result<()> {
        let process = self.atoll.start_hub("hub", &[])?;
        *self.hub.lock().unwrap_or_else(PoisonError::into_inner) = process;
        Ok(())
    }
}

impl Suite {
    pub(crate) fn new() -> Self {
        let spec = Spec::whole(&suite::name(""), 3).with_bystander("client").with_bystander("hub");
        let part = Part::of_environment();
        let suite = suite::Suite::new(part.title(), spec, evidence_root()).expect("a runtime can be made");
        Self { suite, set: Arc::default(), part, of_hub_api: 0 }
    }

    /// Whether the test `name`, which belongs to `part`, runs.
    fn takes(&mut self, name: &str, part: Part) -> bool {
        let of_hub_api = HUB_API.contains(&name);
        self.of_hub_api += usize::from(of_hub_api);
        match self.part {
            Part::All => true,
            Part::HubApi => of_hub_api,
            Part::Shared | Part::Alone | Part::Long => self.part == part,
        }
    }

    /// A test on the shared clusters: three whole ones and the bystanders `client` and `hub`.
    pub(crate) fn test(&mut self, name: &'static str, body: impl AsyncFn(&Lab) -> Outcome + Send + 'static) {
        if self.takes(name, Part::Shared) {
            self.suite.test(name, body);
        }
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
        self.test(name, async move |lab| {
            body(lab, set.get_or_try_init(async || Set::on(lab).await).await?).await
        });
    }

    /// As [`Suite::hub_test`], with `atoll dns` in every cluster and CoreDNS leading to it.
    pub(crate) fn dns_test(
        &mut self,
        name: &'static str,
        body: impl AsyncFn(&Lab, &Set) -> Outcome + Send + 'static,
    ) {
        self.hub_test(name, async move |lab, set| {
            set.names(lab).await?;
            body(lab, set).await
        });
    }

    /// A test that starts what it needs itself.
    pub(crate) fn test_alone(
        &mut self,
        name: &'static str,
        body: impl AsyncFn() -> Outcome + Send + 'static,
    ) {
        if self.takes(name, Part::Alone) {
            self.suite.test_alone(name, body);
        }
    }

    /// As [`Suite::test_alone`], for a test that is too long to wait for at every change.
    pub(crate) fn long_test(&mut self, name: &'static str, body: impl AsyncFn() -> Outcome + Send + 'static) {
        if self.takes(name, Part::Long) {
            self.suite.test_alone(name, body);
        }
    }

    pub(crate) fn run(self) -> ExitCode {
        // A test that was renamed must not drop out unseen.
        assert_eq!(self.of_hub_api, HUB_API.len(), "not all of {HUB_API:?} are tests");
        self.suite.run()
    }
}

/// `target/lab-failures` of the workspace.
pub(crate) fn evidence_root() -> PathBuf {
    suite::evidence_root(env!("CARGO_TARGET_TMPDIR"))
}
