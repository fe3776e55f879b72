//! Who is measured: the same questions, four ways to answer them.

use super::data::Questions;
use super::report::Memory;
use anyhow::Context;
use atoll_bench::Usage;
use atoll_lab::naming::ZONE;
use atoll_lab::{Cluster, Deadline, Process, until};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subject {
    /// `atoll dns` itself.
    Atoll,
    /// CoreDNS's option `multicluster`, without its cache.
    CoreDns,
    /// CoreDNS's cache before `atoll dns`.
    CachedAtoll,
    /// CoreDNS's cache before its own option.
    CachedCoreDns,
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Atoll => "atoll dns",
            Self::CoreDns => "CoreDNS",
            Self::CachedAtoll => "CoreDNS cache, atoll dns",
            Self::CachedCoreDns => "CoreDNS cache, CoreDNS",
        })
    }
}

impl Subject {
    pub(super) const ALL: [Self; 4] = [Self::Atoll, Self::CoreDns, Self::CachedAtoll, Self::CachedCoreDns];

    pub(super) fn port(self) -> u16 {
        match self {
            Self::Atoll => 8053,
            Self::CoreDns => 1053,
            Self::CachedAtoll => 1054,
            Self::CachedCoreDns => 1055,
        }
    }
}

/// All of them, running.
pub(super) struct Subjects {
    cluster: Cluster,
    processes: [Process; 4],
}

impl Subjects {
    /// Starts them on the loopback of `cluster`.
    pub(super) async fn start(cluster: &Cluster, binary: &Path) -> anyhow::Result<Self> {
        let kubeconfig = cluster.dir().join("kubeconfig").display().to_string();
        let start = |subject: Subject| -> anyhow::Result<Process> {
            let port = subject.port();
            let option = format!(
                "kubernetes {ZONE} {{\n        kubeconfig {kubeconfig} {}\n        multicluster {ZONE}\n        ttl 5\n    }}",
                cluster.name()
            );
            let plugins = match subject {
                Subject::Atoll => {
                    let argv = [
                        binary.display().to_string(),
                        "dns".to_owned(),
                        format!("--kubeconfig={kubeconfig}"),
                        format!("--listen=127.0.0.1:{port}"),
                    ];
                    return Ok(cluster.machine().spawn("atoll-dns", &argv)?);
                }
                Subject::CoreDns => option,
                Subject::CachedAtoll => {
                    format!("cache 30\n    forward . 127.0.0.1:{}", Subject::Atoll.port())
                }
                Subject::CachedCoreDns => format!("cache 30\n    {option}"),
            };
            let corefile = cluster.dir().join(format!("Corefile-{port}"));
            std::fs::write(&corefile, format!(".:{port} {{\n    bind 127.0.0.1\n    {plugins}\n}}\n"))?;
            let argv = [
                cluster.programs().coredns.display().to_string(),
                "-conf".to_owned(),
                corefile.display().to_string(),
            ];
            Ok(cluster.machine().spawn(&format!("coredns-{port}"), &argv)?)
        };
        let processes = [
            start(Subject::Atoll)?,
            start(Subject::CoreDns)?,
            start(Subject::CachedAtoll)?,
            start(Subject::CachedCoreDns)?,
        ];
        Ok(Self { cluster: cluster.clone(), processes })
    }

    fn process(&self, subject: Subject) -> Process {
        self.processes[subject as usize]
    }

    /// Waits until `subject` answers an example as it should.
    pub(super) async fn answers(&self, subject: Subject, questions: &Questions) -> anyhow::Result<()> {
        let ask = format!("@127.0.0.1 -p {} +short +tries=1 +time=1 A {}", subject.port(), questions.example);
        let what = format!("{subject} answers {}", questions.example);
        until(Deadline::after(Duration::from_secs(60), what), async || {
            Ok(match self.cluster.dig(&ask).await {
                Ok(said) if said.lines().count() == questions.records => Ok(()),
                Ok(said) => Err(said),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
        .context("a server does not answer")
    }

    /// Processor seconds so far, of every process that takes part in an answer.
    pub(super) fn cpu_seconds(&self, subject: Subject) -> f64 {
        let behind = (subject == Subject::CachedAtoll).then_some(Subject::Atoll);
        let of = |subject| Usage::of(self.process(subject).pid()).map_or(0.0, |usage| usage.cpu_seconds);
        of(subject) + behind.map_or(0.0, of)
    }

    /// Resident memory in MB, and what of it is the process's own: not its program's file, which all processes share.
    pub(super) fn memory(&self, subject: Subject) -> Memory {
        let pid = self.process(subject).pid();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let kilobytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        let megabytes = |key: &str| kilobytes(key).unwrap_or_default() * 1024.0 / 1e6;
        Memory { subject, resident: megabytes("VmRSS:"), own: megabytes("RssAnon:") }
    }
}
