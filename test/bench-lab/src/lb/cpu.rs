//! Processor time: of a process with its children, and of the whole machine.

use atoll_bench::Usage;

/// Seconds that process `pid` and its children have used so far; nothing if there is none.
pub(super) fn of_process(pid: u32) -> f64 {
    let own = Usage::of(pid).map_or(0.0, |usage| usage.cpu_seconds);
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    own + children.split_whitespace().filter_map(|child| child.parse().ok()).map(of_process).sum::<f64>()
}

/// Seconds in which any processor of this machine was busy so far.
pub(super) fn of_machine() -> f64 {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    busy(&text, rustix::param::clock_ticks_per_second()).unwrap_or_default()
}

/// user, nice, system, then idle and waiting, which are not counted, then interrupts of two kinds.
#[allow(clippy::cast_precision_loss, reason = "ticks are far below 2^52")]
fn busy(stat: &str, ticks_per_second: u64) -> Option<f64> {
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let ticks: u64 =
        [0, 1, 2, 5, 6].iter().map(|field| fields.get(*field).copied().unwrap_or_default()).sum();
    Some(ticks as f64 / ticks_per_second as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_not_being_busy() {
        let stat = "cpu  100 20 300 5000 600 7 80 9 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(busy(stat, 100), Some(5.07));
        assert_eq!(busy("", 100), None);
    }
}
