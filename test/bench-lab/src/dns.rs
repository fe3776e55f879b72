//! `bench dns`: `atoll dns` beside CoreDNS with its own option, on the same objects of one real API, by dnsperf.

mod change;
mod data;
mod load;
mod report;
mod subject;

pub(super) use change::await_answer;
pub(super) use report::Report;

use super::environment::{install_crds, product};
use atoll_lab::cli::Format;
use atoll_lab::{Lab, Progress, Spec};
use clap::Args;
use data::Questions;
use report::Row;
use std::path::PathBuf;
use subject::{Subject, Subjects};

#[derive(Args)]
pub(super) struct Dns {
    /// How many services; a tenth of them is headless, with 50 endpoints each.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    services: usize,
    /// Seconds of each run.
    #[arg(long, default_value_t = 5)]
    seconds: u32,
    /// How many times each; the middle one counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Questions per second at which latency is measured.
    #[arg(long, default_value_t = 2000, value_name = "N")]
    rate: u32,
    /// How many changes of a slice are timed.
    #[arg(long, default_value_t = 100, value_name = "N")]
    changes: usize,
    /// The `atoll` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The lab to start and to remove; one of this name that is up is removed first.
    #[arg(long, default_value = "bench-dns")]
    name: String,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Dns {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        let binary = product(self.binary.clone())?;
        let lab = Lab::start(&Spec::api_only(&self.name, 1), &Progress::to_stderr()).await?;
        install_crds(&lab).await?;
        let cluster = lab.member(1);
        atoll_lab::say(&format!("making {} services", self.services));
        let data = data::make(cluster, self.services).await?;
        let subjects = Subjects::start(cluster, &binary).await?;
        let mut rows = Vec::new();
        for questions in [&data.cluster_set_ip, &data.headless] {
            for subject in Subject::ALL {
                subjects.answers(subject, questions).await?;
            }
            rows.extend(self.measure(cluster, &subjects, questions).await?);
        }
        atoll_lab::say("timing changes");
        let changes = change::measure(cluster, &subjects, self.changes).await?;
        let memory = Subject::ALL.map(|subject| subjects.memory(subject));
        let report = Report::new(self.services, rows, &changes, memory.into());
        Ok(self.output.print(&report, Report::text)?)
    }

    /// Every subject in turn, round by round, so that a busy moment of the machine hits all alike.
    async fn measure(
        &self,
        cluster: &atoll_lab::Cluster,
        subjects: &Subjects,
        questions: &Questions,
    ) -> anyhow::Result<Vec<Row>> {
        let mut rows: Vec<Row> = Subject::ALL.map(|subject| Row::new(questions.what, subject)).into();
        for round in 1..=self.rounds {
            for row in &mut rows {
                atoll_lab::say(&format!(
                    "{}, {}, round {round} of {}",
                    questions.what, row.subject, self.rounds
                ));
                let before = subjects.cpu_seconds(row.subject);
                let load =
                    load::as_fast_as_possible(cluster, row.subject.port(), questions, self.seconds).await?;
                let spent = subjects.cpu_seconds(row.subject) - before;
                let latency =
                    load::latency(cluster, row.subject.port(), questions, self.seconds, self.rate).await?;
                row.add(&load, spent, &latency);
            }
        }
        Ok(rows)
    }
}
