//! What a process takes, read off `/proc`.

use serde::{Deserialize, Serialize};

/// Memory now, and processor time since the process started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Resident memory in MB (10^6 bytes).
    pub rss_mb: f64,
    /// The most it ever was.
    pub peak_mb: f64,
    /// Processor seconds, of user and system together.
    pub cpu_seconds: f64,
}

impl Usage {
    /// Of process `pid`; none when it is gone.
    pub fn of(pid: u32) -> Option<Self> {
        let read = |file| std::fs::read_to_string(format!("/proc/{pid}/{file}")).ok();
        Self::parse(&read("status")?, &read("stat")?, rustix::param::clock_ticks_per_second())
    }

    /// What was used between `earlier` and now; the processor time of a process that was restarted counts from its start.
    pub fn since(self, earlier: Self) -> Self {
        let spent = self.cpu_seconds - earlier.cpu_seconds;
        Self { cpu_seconds: if spent < 0.0 { self.cpu_seconds } else { spent }, ..self }
    }

    #[allow(clippy::cast_precision_loss, reason = "ticks and kilobytes are far below 2^52")]
    fn parse(status: &str, stat: &str, ticks_per_second: u64) -> Option<Self> {
        let kilobytes = |key: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'))?;
            line.split_whitespace().next()?.parse::<f64>().ok()
        };
        // The program's name stands in brackets and may hold anything, brackets too.
        let fields: Vec<_> = stat[stat.rfind(')')? + 1..].split_whitespace().collect();
        let ticks = |field: usize| fields.get(field)?.parse::<u64>().ok();
        Some(Self {
            rss_mb: kilobytes("VmRSS")? * 1024.0 / 1e6,
            peak_mb: kilobytes("VmHWM")? * 1024.0 / 1e6,
            cpu_seconds: (ticks(11)? + ticks(12)?) as f64 / ticks_per_second as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_and_processor_time_are_read_off_the_kernels_texts() {
        let status = "Name:\tatoll\nVmHWM:\t  60000 kB\nVmRSS:\t  50000 kB\n";
        let stat = "7 (a) b) S 1 7 7 0 -1 4 0 0 0 0 150 50 9 9 20 0 1 0 4242 0 0";
        let usage = Usage::parse(status, stat, 100).unwrap();
        assert_eq!(usage, Usage { rss_mb: 51.2, peak_mb: 61.44, cpu_seconds: 2.0 });
        let before = Usage { cpu_seconds: 1.5, ..usage };
        assert!((usage.since(before).cpu_seconds - 0.5).abs() < 1e-9);
        assert!((before.since(usage).cpu_seconds - 1.5).abs() < 1e-9, "restarted");
        assert_eq!(Usage::parse("", stat, 100), None);
    }

    #[test]
    fn this_process_uses_something() {
        assert!(Usage::of(std::process::id()).unwrap().rss_mb > 1.0);
    }
}
