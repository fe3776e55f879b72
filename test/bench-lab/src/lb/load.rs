//! The load: a process in the client's network that loads one balancer in one way, and prints the result as JSON.

mod flood;
mod paced;

use super::case::Case;
use super::cpu;
use anyhow::{Context, bail};
use clap::Args;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Before anything is counted, so that buffers have grown and connections are there.
const WARM_UP: Duration = Duration::from_millis(500);
/// For a balancer to come up.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Args)]
pub(crate) struct Load {
    /// In which way.
    #[arg(value_enum)]
    case: Case,
    /// Where to connect to, in turn.
    #[arg(long, value_delimiter = ',', required = true)]
    to: Vec<SocketAddr>,
    /// How many clients at once.
    #[arg(long)]
    clients: usize,
    /// How many a second, where latency is measured.
    #[arg(long)]
    rate: u32,
    /// For how long.
    #[arg(long)]
    seconds: f64,
    /// The process whose processor time is wanted.
    #[arg(long)]
    pid: Option<u32>,
}

/// What came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Measured {
    pub(super) seconds: f64,
    /// Connections, requests or bytes.
    pub(super) done: u64,
    pub(super) failed: u64,
    /// The first failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) failure: Option<String>,
    /// Processor seconds of the balancer's process, and of the whole machine.
    pub(super) process_seconds: f64,
    pub(super) machine_seconds: f64,
    /// Milliseconds of each request or connection, where that is what is measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) milliseconds: Vec<f64>,
}

impl Load {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        for target in &self.to {
            await_answer(*target)?;
        }
        let span = Duration::try_from_secs_f64(self.seconds).context("--seconds")?;
        let watch = |wait: &dyn Fn()| -> (f64, f64, f64) {
            let now = || (Instant::now(), self.pid.map_or(0.0, cpu::of_process), cpu::of_machine());
            let before = now();
            wait();
            let after = now();
            ((after.0 - before.0).as_secs_f64(), after.1 - before.1, after.2 - before.2)
        };
        let measured = if self.case.is_paced() {
            paced::measure(&self, span, watch)
        } else {
            flood::measure(&self, span, watch)
        };
        println!("{}", serde_json::to_string(&measured)?);
        Ok(())
    }
}

/// Waits until whoever is at `target` answers.
fn await_answer(target: SocketAddr) -> anyhow::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match paced::connection(target) {
            Ok(()) => return Ok(()),
            Err(error) if Instant::now() > deadline => bail!("no answer at {target}: {error}"),
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// What one thread has done so far. Each has its own, so that they don't wait for each other's memory.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Tally {
    done: AtomicU64,
    failed: AtomicU64,
    failure: Mutex<Option<String>>,
}

impl Tally {
    fn fail(&self, error: &std::io::Error) {
        self.failed.fetch_add(1, Relaxed);
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| error.to_string());
    }
}

/// The sum of what was done, and of what failed.
fn sum(tallies: &[std::sync::Arc<Tally>]) -> (u64, u64) {
    let add = |of: fn(&Tally) -> &AtomicU64| tallies.iter().map(|tally| of(tally).load(Relaxed)).sum();
    (add(|tally| &tally.done), add(|tally| &tally.failed))
}

fn first_failure(tallies: &[std::sync::Arc<Tally>]) -> Option<String> {
    tallies.iter().find_map(|tally| tally.failure.lock().unwrap_or_else(PoisonError::into_inner).clone())
}
