//! Which files a log has, and which of the old ones go. Pure: time is an argument.

use jiff::{SignedDuration, Timestamp};

/// As part of a file's name: sorted by name is sorted by time.
const FORMAT: &str = "%Y-%m-%dT%H-%M-%S.%3f";

/// How many old files are kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// At most so many; 0: any number.
    pub(crate) backups: usize,
    /// At most for so many days; 0: for ever.
    pub(crate) days: u32,
}

/// The name that a file of this name gets when it is full: `audit.log` becomes `audit-2026-11-16T10-00-00.000.log`.
pub(crate) fn backup_name(name: &str, now: Timestamp) -> String {
    let (stem, ending) = split(name);
    format!("{stem}-{}{ending}", now.strftime(FORMAT))
}

/// The old files among `found`, in order of their age, that go.
pub(crate) fn doomed(name: &str, found: &[String], keep: Keep, now: Timestamp) -> Vec<String> {
    let mut old: Vec<(Timestamp, &String)> =
        found.iter().filter_map(|file| Some((made(name, file)?, file))).collect();
    old.sort();
    let too_many = if keep.backups == 0 { 0 } else { old.len().saturating_sub(keep.backups) };
    let oldest = SignedDuration::from_hours(24 * i64::from(keep.days));
    let expired =
        |made: Timestamp| keep.days > 0 && now.checked_sub(oldest).is_ok_and(|oldest| made < oldest);
    let gone = old.iter().enumerate().filter(|(at, (made, _))| *at < too_many || expired(*made));
    gone.map(|(_, (_, file))| (*file).clone()).collect()
}

/// When an old file of `name` was put aside; none if it is another file.
fn made(name: &str, file: &str) -> Option<Timestamp> {
    let (stem, ending) = split(name);
    let time = file.strip_prefix(stem)?.strip_prefix('-')?.strip_suffix(ending)?;
    let time = jiff::civil::DateTime::strptime("%Y-%m-%dT%H-%M-%S%.f", time).ok()?;
    time.to_zoned(jiff::tz::TimeZone::UTC).ok().map(|time| time.timestamp())
}

fn split(name: &str) -> (&str, &str) {
    match name.rfind('.') {
        Some(at) if at > 0 => name.split_at(at),
        _ => (name, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_first_and_nobody_elses_files() {
        let now: Timestamp = "2026-11-16T10:00:00Z".parse().unwrap();
        let file = |hours: i64| {
            backup_name("audit.log", now.checked_sub(SignedDuration::from_hours(hours)).unwrap())
        };
        assert_eq!(file(0), "audit-2026-11-16T10-00-00.000.log");
        let mut found: Vec<String> = [1, 50, 3, 2].into_iter().map(file).collect();
        let others = ["audit.log", "audit-other.log", "audit-2026.log", "notes-2026-11-16T10-00-00.000.log"];
        found.extend(others.map(str::to_owned));
        for (backups, days, gone) in [
            (0, 0, vec![]),
            (3, 0, vec![file(50)]),
            (2, 0, vec![file(50), file(3)]),
            (0, 2, vec![file(50)]),
            (2, 2, vec![file(50), file(3)]),
        ] {
            assert_eq!(doomed("audit.log", &found, Keep { backups, days }, now), gone, "{backups} {days}");
        }
    }
}
