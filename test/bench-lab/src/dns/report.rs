//! What came out, for people and programs.

use super::load::Load;
use super::subject::Subject;
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    services: usize,
    rows: Vec<Row>,
    /// Resident memory in MB, after everything.
    memory: Vec<Memory>,
    /// Milliseconds from a watch's event to a changed answer.
    change_p50: f64,
    change_p99: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Memory {
    pub(super) subject: Subject,
    pub(super) resident: f64,
    pub(super) own: f64,
}

/// One kind of question to one server, over all rounds.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    what: &'static str,
    pub(super) subject: Subject,
    per_cpu_second: Vec<f64>,
    per_second: Vec<f64>,
    p50_milliseconds: Vec<f64>,
    p99_milliseconds: Vec<f64>,
    lost: Vec<f64>,
}

impl Row {
    pub(super) fn new(what: &'static str, subject: Subject) -> Self {
        let (per_cpu_second, per_second, lost) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            what,
            subject,
            per_cpu_second,
            per_second,
            p50_milliseconds: Vec::new(),
            p99_milliseconds: Vec::new(),
            lost,
        }
    }

    pub(super) fn add(&mut self, load: &Load, cpu_seconds: f64, latency: &[f64]) {
        self.per_cpu_second.push(load.answered / cpu_seconds.max(0.01));
        self.per_second.push(load.per_second);
        self.lost.push(load.lost);
        self.p50_milliseconds.push(percentile(latency, 50));
        self.p99_milliseconds.push(percentile(latency, 99));
    }
}

impl Report {
    pub(super) fn new(services: usize, rows: Vec<Row>, changes: &[f64], memory: Vec<Memory>) -> Self {
        let (change_p50, change_p99) = (percentile(changes, 50), percentile(changes, 99));
        Self { services, rows, memory, change_p50, change_p99 }
    }

    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "{} services; the middle of {} rounds\n",
            self.services,
            self.rows.first().map_or(0, |row| row.lost.len())
        );
        let _ = writeln!(
            text,
            "{:<14}{:<26}{:>14}{:>12}{:>10}{:>10}{:>8}",
            "question", "server", "per CPU second", "per second", "p50 ms", "p99 ms", "lost"
        );
        for row in &self.rows {
            let _ = writeln!(
                text,
                "{:<14}{:<26}{:>14.0}{:>12.0}{:>10.3}{:>10.3}{:>8.0}",
                row.what,
                row.subject,
                middle(&row.per_cpu_second),
                middle(&row.per_second),
                middle(&row.p50_milliseconds),
                middle(&row.p99_milliseconds),
                middle(&row.lost)
            );
        }
        for memory in &self.memory {
            let _ = writeln!(
                text,
                "memory of {:<26}{:>8.1} MB, its own {:>6.1} MB",
                memory.subject, memory.resident, memory.own
            );
        }
        let _ = writeln!(
            text,
            "a changed slice is answered {:.2} ms after a watch sees it (p50), {:.2} ms (p99)",
            self.change_p50, self.change_p99
        );
        text
    }
}

fn middle(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, 50)
}

/// Of values in order.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_values_that_were_there() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((percentile(&hundred, 50), percentile(&hundred, 99)), (50.0, 99.0));
        assert_eq!(percentile(&[3.0], 99), 3.0);
        assert_eq!(middle(&[3.0, 1.0, 2.0]), 2.0);
    }
}
