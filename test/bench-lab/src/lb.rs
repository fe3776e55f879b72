//! `bench lb`: `atoll lb` beside `HAProxy`, nginx, a bare rule of nftables and no balancer at all.
//!
//! ```text
//!   stage per subject:  client (load) ── balancer (subject) ── backends      three network namespaces in a row
//!   round by round, case by case, each stage in turn ─▶ report
//! ```

mod backend;
mod case;
mod cpu;
mod load;
mod report;
mod stage;
mod subject;
mod wish;

pub(super) use backend::serve;
pub(super) use load::Load;
pub(super) use report::Report;

use super::environment::product;
use anyhow::{Context, anyhow, ensure};
use atoll_lab::Progress;
use atoll_lab::cli::Format;
use case::Case;
use clap::Args;
use report::Row;
use stage::Stage;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use subject::Subject;

/// What is measured beside ours, and what the stages are made with.
const PACKAGES: [(&str, &str); 5] = [
    ("/usr/sbin/haproxy", "haproxy"),
    ("/usr/sbin/nginx", "nginx"),
    ("/usr/lib/nginx/modules/ngx_stream_module.so", "libnginx-mod-stream"),
    ("/usr/sbin/nft", "nftables"),
    ("/bin/ip", "iproute2"),
];

#[derive(Args)]
pub(super) struct Lb {
    /// Seconds of each run.
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    /// How many times each; the middle one counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// How many clients at once.
    #[arg(long, default_value_t = 64, value_name = "N")]
    clients: usize,
    /// Requests or connections per second at which latency is measured.
    #[arg(long, default_value_t = 1000, value_name = "N")]
    rate: u32,
    /// Only these cases.
    #[arg(long, value_enum, value_delimiter = ',', value_name = "CASES")]
    only: Vec<Case>,
    /// The `atoll` binary [default: the one beside this program].
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Lb {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        ensure!(self.rounds > 0 && self.clients > 0 && self.rate > 0, "there is nothing to measure");
        ensure!(self.seconds > 0.0 && self.seconds < 3600.0, "--seconds must be above 0 and below 3600");
        let binary = product(self.binary.clone())?;
        atoll_lab::install_packages(&PACKAGES, &Progress::to_stderr())?;
        stage::sweep();
        let output = self.output;
        let folder = Folder::make()?;
        // Ctrl-C removes the stages.
        let stopped = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&stopped);
        tokio::spawn(async move {
            if tokio::signal::ctrl_c().await.is_ok() {
                stop.store(true, Relaxed);
            }
        });
        let report =
            tokio::task::spawn_blocking(move || self.measure(&binary, &folder.0, &stopped)).await??;
        Ok(output.print(&report, Report::text)?)
    }

    fn measure(&self, binary: &Path, folder: &Path, stopped: &AtomicBool) -> anyhow::Result<Report> {
        let mut stages = Subject::ALL
            .into_iter()
            .map(|subject| Stage::open(subject, binary, folder))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let before = load_average();
        let cases: Vec<Case> =
            Case::ALL.into_iter().filter(|case| self.only.is_empty() || self.only.contains(case)).collect();
        let mut rows: Vec<Row> = Vec::new();
        for round in 1..=self.rounds {
            for case in &cases {
                for stage in &stages {
                    ensure!(!stopped.load(Relaxed), "interrupted");
                    atoll_lab::say(&format!(
                        "{}, {}, round {round} of {}",
                        case.name(),
                        stage.subject,
                        self.rounds
                    ));
                    let measured = stage.measure(*case, self.clients, self.rate, self.seconds)?;
                    let known = rows.iter().position(|row| row.subject == stage.subject && row.case == *case);
                    let place = known.unwrap_or_else(|| {
                        rows.push(Row::new(stage.subject, *case));
                        rows.len() - 1
                    });
                    rows[place].add(measured);
                }
            }
            // Another one begins the next round, and another one follows whom.
            stages.rotate_left(1);
        }
        rows.sort_by_key(|row| (row.case, row.subject));
        Ok(Report::new([before, load_average()], self.seconds, self.clients, self.rate, rows))
    }
}

/// Configurations and logs, while it lives.
struct Folder(PathBuf);

impl Folder {
    fn make() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("atoll-bench-lb-{}", std::process::id()));
        std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn load_average() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or_default()
}

fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `work` in a thread per processor, each with a runtime of its own, and gives back the first error.
fn on_every_processor<F>(work: impl Fn(usize) -> F + Send + Sync + 'static) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<()>>,
{
    let work = Arc::new(work);
    let start = |number| {
        let work = Arc::clone(&work);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(work(number))
        })
    };
    let threads: Vec<_> = (0..processors()).map(start).collect();
    threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?)
}
