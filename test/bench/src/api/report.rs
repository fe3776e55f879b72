//! What was measured: a value for programs, and a table of it for people.

use super::{Amounts, Options};
use crate::stats::{Summary, percentile};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// What was measured. The first server is compared with the others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How much was measured.
    pub options: Options,
    /// One per server.
    pub servers: Vec<Row>,
}

/// Everything about one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// Which.
    pub name: String,
    /// Milliseconds from start to ready, with no objects.
    pub start_empty_ms: Vec<f64>,
    /// Milliseconds from start to ready, with all objects.
    pub start_full_ms: Vec<f64>,
    /// Resident memory with no objects.
    pub rss_empty_mb: Option<f64>,
    /// Resident memory with all objects.
    pub rss_full_mb: Option<f64>,
    /// Creates.
    pub creates: Rate,
    /// Updates.
    pub updates: Rate,
    /// Milliseconds from a change to each watcher's line, in short.
    pub watch: Option<Summary>,
    /// How often the server ended a watch before the benchmark was done with it.
    pub watches_ended: usize,
    /// Every sample of that.
    #[serde(skip)]
    pub(super) watch_ms: Vec<f64>,
}

/// How fast writes went.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// Writes per second, by round.
    pub per_second: Vec<f64>,
    /// Milliseconds that one write took, in short.
    pub latency: Option<Summary>,
    /// Every sample of that.
    #[serde(skip)]
    times: Vec<f64>,
}

impl Rate {
    #[allow(clippy::cast_precision_loss, reason = "there are not that many writes")]
    pub(super) fn of(times: Vec<f64>, took: Duration) -> Self {
        let per_second = vec![times.len() as f64 / took.as_secs_f64()];
        Self { per_second, latency: None, times }
    }

    pub(super) fn add(&mut self, round: Self) {
        self.per_second.extend(round.per_second);
        self.times.extend(round.times);
    }
}

impl Row {
    pub(super) fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            start_empty_ms: Vec::new(),
            start_full_ms: Vec::new(),
            rss_empty_mb: None,
            rss_full_mb: None,
            creates: Rate::default(),
            updates: Rate::default(),
            watch: None,
            watches_ended: 0,
            watch_ms: Vec::new(),
        }
    }
}

impl Report {
    pub(super) fn new(options: &Options, mut servers: Vec<Row>) -> Self {
        for row in &mut servers {
            row.watch = Summary::of(&row.watch_ms);
            row.creates.latency = Summary::of(&row.creates.times);
            row.updates.latency = Summary::of(&row.updates.times);
        }
        Self { options: options.clone(), servers }
    }
}

/// One line of the table.
struct Line {
    title: String,
    unit: &'static str,
    of: fn(&Row) -> Option<f64>,
    /// More is better.
    more: bool,
}

impl Report {
    fn lines(&self) -> Vec<Line> {
        let Amounts { objects, clients, watchers, .. } = self.options.amounts;
        let line = |title: &str, unit, of| Line { title: title.to_owned(), unit, of, more: false };
        let rate = |title: String, of| Line { title, unit: "/s", of, more: true };
        vec![
            line("start to ready, empty", "ms", |row| middle(&row.start_empty_ms)),
            line(&format!("start to ready, {objects} objects"), "ms", |row| middle(&row.start_full_ms)),
            line("memory, empty", "MB", |row| row.rss_empty_mb),
            line(&format!("memory, {objects} objects"), "MB", |row| row.rss_full_mb),
            rate(format!("creates, {clients} clients"), |row| middle(&row.creates.per_second)),
            line("  one create, p50", "ms", |row| Some(row.creates.latency?.p50)),
            line("  one create, p99", "ms", |row| Some(row.creates.latency?.p99)),
            rate(format!("updates, {clients} clients"), |row| middle(&row.updates.per_second)),
            line("  one update, p50", "ms", |row| Some(row.updates.latency?.p50)),
            line("  one update, p99", "ms", |row| Some(row.updates.latency?.p99)),
            line(&format!("change to {watchers} watchers, p50"), "ms", |row| Some(row.watch?.p50)),
            line(&format!("change to {watchers} watchers, p99"), "ms", |row| Some(row.watch?.p99)),
            line("  watches that the server ended", "", ended),
        ]
    }
}

#[allow(clippy::cast_precision_loss, reason = "there are not that many watches")]
fn ended(row: &Row) -> Option<f64> {
    Some(row.watches_ended as f64)
}

fn middle(samples: &[f64]) -> Option<f64> {
    percentile(samples, 50.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<34} {:>3}", "", "")?;
        for row in &self.servers {
            write!(f, "  {:>22}", row.name)?;
        }
        let Some((first, others)) = self.servers.split_first() else { return writeln!(f) };
        writeln!(f, "{}", if others.is_empty() { "" } else { "   better by" })?;
        for line in self.lines() {
            write!(f, "{:<34} {:>3}", line.title, line.unit)?;
            for row in &self.servers {
                match (line.of)(row) {
                    Some(value) => write!(f, "  {value:>22.1}")?,
                    None => write!(f, "  {:>22}", "-")?,
                }
            }
            for row in others {
                match (line.of)(first)
                    .zip((line.of)(row))
                    .and_then(|(ours, theirs)| better(ours, theirs, line.more))
                {
                    Some(times) => write!(f, "  {times:>9.1}×")?,
                    None => write!(f, "  {:>10}", "-")?,
                }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// How many times as good; below one is worse.
fn better(ours: f64, theirs: f64, more: bool) -> Option<f64> {
    let (over, under) = if more { (ours, theirs) } else { (theirs, ours) };
    (under > 0.0).then(|| over / under)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_says_who_is_better_and_by_how_much() {
        let amounts = Amounts { objects: 10, rounds: 1, clients: 16, watchers: 100, changes: 1 };
        let options = Options { starts: 1, settle_seconds: 0, amounts };
        let row = |name: &str, start: f64, rate: f64| Row {
            start_empty_ms: vec![start, start * 2.0, start * 9.0],
            creates: Rate { per_second: vec![rate], ..Rate::default() },
            ..Row::new(name)
        };
        let mut report = Report::new(&options, vec![row("ours", 20.0, 900.0), row("theirs", 400.0, 300.0)]);
        report.servers[0].watch = Summary::of(&[3.0]);
        let text = report.to_string();
        let line = |title: &str| text.lines().find(|line| line.starts_with(title)).unwrap();
        assert!(
            line("start to ready, empty").ends_with("40.0                   800.0       20.0×"),
            "{text}"
        );
        assert!(line("creates, 16 clients").ends_with("900.0                   300.0        3.0×"), "{text}");
        assert!(
            line("change to 100 watchers, p50").ends_with("3.0                       -           -"),
            "{text}"
        );
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["servers"][1]["startEmptyMs"][0], 400.0);
    }
}
