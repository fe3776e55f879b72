//! What came out, for people and programs.

use super::case::Case;
use super::load::Measured;
use super::subject::Subject;
use atoll_bench::stats::percentile;
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    processors: usize,
    /// Of one minute, before and after.
    load_average: [f64; 2],
    seconds: f64,
    clients: usize,
    /// Requests or connections per second, where latency was measured.
    rate: u32,
    rows: Vec<Row>,
}

/// One way of loading one subject, round by round.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    pub(super) subject: Subject,
    pub(super) case: Case,
    rounds: Vec<Round>,
}

#[derive(Serialize, Default)]
#[serde(rename_all = "camelCase")]
struct Round {
    /// Connections, requests or bytes.
    per_second: f64,
    /// Processor seconds per million of them, or per GB: of its process, and of the whole machine.
    process_seconds: f64,
    machine_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    p50_milliseconds: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    p99_milliseconds: Option<f64>,
    failed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

impl Row {
    pub(super) fn new(subject: Subject, case: Case) -> Self {
        Self { subject, case, rounds: Vec::new() }
    }

    #[allow(clippy::cast_precision_loss, reason = "no run carries 2^52 bytes")]
    pub(super) fn add(&mut self, measured: Measured) {
        let done = measured.done.max(1) as f64;
        let unit = match self.case {
            Case::Stream | Case::Streams => 1e9,
            _ => 1e6,
        };
        self.rounds.push(Round {
            per_second: measured.done as f64 / measured.seconds,
            process_seconds: measured.process_seconds / done * unit,
            machine_seconds: measured.machine_seconds / done * unit,
            p50_milliseconds: percentile(&measured.milliseconds, 50.0),
            p99_milliseconds: percentile(&measured.milliseconds, 99.0),
            failed: measured.failed,
            failure: measured.failure,
        });
    }

    /// The middle of all rounds.
    fn middle(&self, of: fn(&Round) -> f64) -> f64 {
        percentile(&self.rounds.iter().map(of).collect::<Vec<_>>(), 50.0).unwrap_or_default()
    }
}

const PER_SECOND: fn(&Round) -> f64 = |round| round.per_second;
const PROCESS: fn(&Round) -> f64 = |round| round.process_seconds;
const MACHINE: fn(&Round) -> f64 = |round| round.machine_seconds;
const P50: fn(&Round) -> f64 = |round| round.p50_milliseconds.unwrap_or_default();
const P99: fn(&Round) -> f64 = |round| round.p99_milliseconds.unwrap_or_default();

impl Report {
    pub(super) fn new(
        load_average: [f64; 2],
        seconds: f64,
        clients: usize,
        rate: u32,
        rows: Vec<Row>,
    ) -> Self {
        Self { processors: super::processors(), load_average, seconds, clients, rate, rows }
    }

    fn row(&self, subject: Subject, case: Case) -> Option<&Row> {
        self.rows.iter().find(|row| row.subject == subject && row.case == case)
    }

    fn value(&self, subject: Subject, case: Case, of: fn(&Round) -> f64) -> Option<f64> {
        Some(self.row(subject, case)?.middle(of))
    }

    /// What one subject takes more than no balancer.
    fn added(&self, subject: Subject, case: Case, of: fn(&Round) -> f64) -> Option<f64> {
        Some(self.value(subject, case, of)? - self.value(Subject::Direct, case, of)?)
    }

    /// How many times as much one has as another: the middle of the ratios round by round, because the machine drifts between rounds.
    fn ratio(&self, one: Subject, other: Subject, case: Case, of: fn(&Round) -> f64) -> Option<f64> {
        let (one, other) = (self.row(one, case)?, self.row(other, case)?);
        let rounds = one.rounds.iter().zip(&other.rounds).map(|(one, other)| (of(one), of(other)));
        let ratios: Vec<f64> =
            rounds.filter(|(_, other)| *other > 0.0).map(|(one, other)| one / other).collect();
        percentile(&ratios, 50.0)
    }

    pub(crate) fn text(&self) -> String {
        let rounds = self.rows.first().map_or(0, |row| row.rounds.len());
        let mut text =
            format!(
            "{} processors for client, balancer and backends together; load average {:.1} before, {:.1} after
the middle of {rounds} rounds of {} s, {} clients; latency at {} per second\n\n",
            self.processors, self.load_average[0], self.load_average[1], self.seconds, self.clients, self.rate
        );
        self.rates(&mut text);
        self.costs(&mut text);
        self.latencies(&mut text);
        self.bars(&mut text);
        for row in &self.rows {
            let failed: u64 = row.rounds.iter().map(|round| round.failed).sum();
            if failed > 0 {
                let why = row.rounds.iter().find_map(|round| round.failure.as_deref()).unwrap_or("?");
                let _ = writeln!(text, "{failed} failed: {}, {}: {why}", row.subject, row.case.name());
            }
        }
        text
    }

    fn rates(&self, text: &mut String) {
        line(
            text,
            "per second",
            &["connections", "requests", "GB, 1 stream", &format!("GB, {} streams", self.clients)],
        );
        for subject in Subject::ALL {
            let value = |case, scale: f64, digits| {
                show(self.value(subject, case, PER_SECOND).map(|value| value / scale), digits)
            };
            line(
                text,
                subject,
                &[
                    &value(Case::Connections, 1.0, 0),
                    &value(Case::Requests, 1.0, 0),
                    &value(Case::Stream, 1e9, 2),
                    &value(Case::Streams, 1e9, 2),
                ],
            );
        }
    }

    /// A process pays for what the kernel does in its name. What has none is seen only in what the whole machine uses more than
    /// without a balancer, and that is said of all.
    fn costs(&self, text: &mut String) {
        let columns = ["million conn.", "(machine)", "million req.", "(machine)", "GB", "(machine)"];
        line(text, "\nCPU seconds per", &columns);
        for subject in Subject::ALL.into_iter().filter(|subject| *subject != Subject::Direct) {
            let mut cells = Vec::new();
            for (case, digits) in [(Case::Connections, 1), (Case::Requests, 2), (Case::Streams, 3)] {
                let own = self.value(subject, case, PROCESS).filter(|_| subject.is_a_process());
                cells.push(show(own, digits));
                cells.push(show(self.added(subject, case, MACHINE), digits));
            }
            line(text, subject, &cells);
        }
        let _ = writeln!(
            text,
            "(of its process; in brackets of the whole machine, less what it takes without a balancer)"
        );
    }

    fn latencies(&self, text: &mut String) {
        line(text, "\nmilliseconds", &["request p50", "p99", "added", "", "conn. p50", "p99", "added", ""]);
        for subject in Subject::ALL {
            let mut cells = Vec::new();
            for case in [Case::RequestLatency, Case::ConnectionLatency] {
                cells.extend([P50, P99].map(|of| show(self.value(subject, case, of), 3)));
                cells.extend([P50, P99].map(|of| show(self.added(subject, case, of), 3)));
            }
            line(text, subject, &cells);
        }
    }

    /// What was asked for, and how it stands.
    fn bars(&self, text: &mut String) {
        let cases = [Case::Connections, Case::Requests, Case::Stream, Case::Streams];
        line(text, "\ntimes as much per second", &cases.map(Case::name));
        for (one, other) in [
            (Subject::AtollUserSpace, Subject::HaProxy),
            (Subject::AtollUserSpace, Subject::HaProxySplicing),
            (Subject::AtollUserSpace, Subject::Nginx),
            (Subject::AtollKernel, Subject::BareRule),
        ] {
            let cells = cases.map(|case| show(self.ratio(one, other, case, PER_SECOND), 2));
            line(text, format!("{one} / {other}"), &cells);
        }
        line(text, "\ntimes as much CPU", &["connections", "requests", "GB"]);
        for other in [Subject::HaProxy, Subject::HaProxySplicing, Subject::Nginx] {
            let cells = [Case::Connections, Case::Requests, Case::Streams]
                .map(|case| show(self.ratio(Subject::AtollUserSpace, other, case, PROCESS), 2));
            line(text, format!("{} / {other}", Subject::AtollUserSpace), &cells);
        }
    }
}

fn line<C: AsRef<str>>(text: &mut String, first: impl std::fmt::Display, cells: &[C]) {
    let _ = write!(text, "{:<40}", first.to_string());
    for cell in cells {
        let _ = write!(text, "{:>15}", cell.as_ref());
    }
    let trimmed = text.trim_end_matches(' ').len();
    text.truncate(trimmed);
    text.push('\n');
}

fn show(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(done: u64, process_seconds: f64, milliseconds: &[f64]) -> Measured {
        Measured {
            seconds: 2.0,
            done,
            process_seconds,
            machine_seconds: 4.0,
            milliseconds: milliseconds.to_vec(),
            ..Measured::default()
        }
    }

    fn row(subject: Subject, case: Case, rounds: &[Measured]) -> Row {
        let mut row = Row::new(subject, case);
        rounds.iter().for_each(|measured| row.add(measured.clone()));
        row
    }

    #[test]
    fn rates_costs_and_ratios_are_of_the_middle_round() {
        let report = Report::new(
            [0.5, 2.0],
            2.0,
            64,
            1000,
            vec![
                row(Subject::Direct, Case::Connections, &[measured(40_000, 0.0, &[])]),
                row(
                    Subject::AtollUserSpace,
                    Case::Connections,
                    &[measured(10_000, 1.0, &[]), measured(20_000, 1.0, &[]), measured(90_000, 1.0, &[])],
                ),
                row(
                    Subject::HaProxy,
                    Case::Connections,
                    &[measured(8_000, 1.0, &[]), measured(10_000, 2.0, &[]), measured(100_000, 1.0, &[])],
                ),
                row(Subject::Direct, Case::RequestLatency, &[measured(3, 0.0, &[0.1, 0.2, 0.3])]),
                row(Subject::Nginx, Case::RequestLatency, &[measured(3, 0.0, &[0.5, 0.6, 0.9])]),
                row(Subject::Nginx, Case::Streams, &[measured(4_000_000_000, 3.0, &[])]),
            ],
        );
        let us = Subject::AtollUserSpace;
        let close = |value: Option<f64>, want: f64| (value.unwrap() - want).abs() < 1e-9;
        assert!(close(report.value(us, Case::Connections, PER_SECOND), 10_000.0));
        assert!(close(report.value(us, Case::Connections, PROCESS), 50.0));
        assert!(close(report.added(us, Case::Connections, MACHINE), 100.0));
        // 1.25, 2 and 0.9 round by round; 2 of the middles.
        assert!(close(report.ratio(us, Subject::HaProxy, Case::Connections, PER_SECOND), 1.25));
        assert!(close(report.added(Subject::Nginx, Case::RequestLatency, P50), 0.4));
        assert!(close(report.value(Subject::Nginx, Case::Streams, PROCESS), 0.75));
        let text = report.text();
        assert!(text.contains("atoll lb, user space / HAProxy"), "{text}");
        assert!(!text.contains("failed"), "{text}");
    }

    #[test]
    fn failures_are_told_with_the_first_reason() {
        let failing = Measured { failed: 3, failure: Some("refused".into()), ..measured(1, 0.0, &[]) };
        let rows = vec![row(Subject::Nginx, Case::Requests, &[failing.clone(), failing])];
        let text = Report::new([0.0, 0.0], 2.0, 64, 1000, rows).text();
        assert!(text.ends_with("6 failed: nginx stream, requests: refused\n"), "{text}");
    }
}
