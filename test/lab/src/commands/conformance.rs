//! `lab conformance`: the official suite of the Multi-Cluster Services API, unmodified, on two fresh clusters.

use anyhow::{Context, bail, ensure};
use atoll_lab::clusterset::beside;
use atoll_lab::naming;
use atoll_lab::{Lab, Progress, Spec};
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

#[derive(Args)]
pub(super) struct Conformance {
    /// The compiled suite (`go test -c` of the suite's own module).
    #[arg(long, value_name = "FILE")]
    suite: PathBuf,
    /// Where the report goes [default: docs/conformance/RESOLVER].
    #[arg(long, value_name = "FOLDER")]
    report: Option<PathBuf>,
    /// The server that answers names of the clusterset.
    #[arg(long, value_enum, default_value_t = Resolver::Atoll)]
    resolver: Resolver,
    /// The lab to start and to remove; one of this name that is up is removed first.
    #[arg(long, default_value = "conformance")]
    name: String,
    /// The `atoll` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    atoll: Option<PathBuf>,
    /// Further arguments of the suite, after `--`: `--ginkgo.v`, say.
    #[arg(last = true)]
    more: Vec<String>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Resolver {
    /// `atoll dns`, and CoreDNS forwards to it.
    Atoll,
    /// CoreDNS, with its option `multicluster`.
    Multicluster,
}

impl Conformance {
    pub(super) async fn run(self) -> anyhow::Result<ExitCode> {
        atoll_lab::requirements::check()?;
        let suite = std::fs::canonicalize(&self.suite).with_context(|| {
            format!(
                "there is no suite at `{}`\n  hint: make conformance SUITE=path/to/compiled/suite",
                self.suite.display()
            )
        })?;
        let spec = Spec::whole(&self.name, 2).with_bystander("hub");
        let lab = Lab::start(&spec, &Progress::to_stderr()).await?;
        let atoll =
            self.atoll.clone().map_or_else(|| std::env::current_exe().map(|program| beside(&program)), Ok)?;
        let (resolver, folder) = match self.resolver {
            Resolver::Atoll => (naming::Resolver::Atoll, "docs/conformance/atoll"),
            Resolver::Multicluster => (naming::Resolver::Multicluster, "docs/conformance/multicluster"),
        };
        let folder = self.report.unwrap_or_else(|| folder.into());
        let (atoll, _hub) = lab.clusterset(&atoll).await?;
        lab.clusterset_names(&atoll, resolver).await?;
        exec_works(&lab).await?;

        let work = lab.layout().dir().join("report");
        std::fs::create_dir_all(&work)?;
        atoll_lab::say(&format!("running {}", suite.display()));
        let status = Command::new(&suite)
            .arg(format!("--kubeconfig={}", lab.layout().kubeconfig().display()))
            .args(["--contexts=member1,member2", "--organization=Atoll", "--project=atoll"])
            .arg(format!("--version={}", env!("CARGO_PKG_VERSION")))
            .args(&self.more)
            .current_dir(&work)
            .status()?;
        let report = work.join("report.yaml");
        ensure!(report.is_file(), "the suite wrote no report: it ended with {status}");
        keep(&report, &folder)?;
        atoll_lab::say(&format!("the report is {}", folder.join("report.yaml").display()));
        Ok(super::code(status))
    }
}

/// The suite swallows errors of exec, so that "cannot be reached" passes where nothing can be run at all.
async fn exec_works(lab: &Lab) -> anyhow::Result<()> {
    for cluster in lab.clusters() {
        cluster.tools("default", "exec-check").await?;
        let said = cluster.exec("default", "exec-check", &["sh", "-c", "echo works"]).await?;
        if said != "works\n" {
            bail!("exec does not work in {}: {said:?}", cluster.name());
        }
    }
    Ok(())
}

fn keep(report: &Path, folder: &Path) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::copy(report, folder.join("report.yaml"))?;
    Ok(())
}
