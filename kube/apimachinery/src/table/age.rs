//! How long ago, in at most two units.

use jiff::Timestamp;

/// The time from `then` to `now`, as `kubectl get` shows it: `38s`, `5m3s`, `7h12m`, `3d4h`, `2y10d`.
#[must_use]
pub fn human(then: Timestamp, now: Timestamp) -> String {
    human_seconds(now.duration_since(then).as_secs())
}

pub(super) fn human_seconds(seconds: i64) -> String {
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    let two = |first: i64, unit: char, second: i64, lesser: char| match second {
        0 => format!("{first}{unit}"),
        _ => format!("{first}{unit}{second}{lesser}"),
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        // Clocks differ a little.
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => two(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => two(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn two_units_at_most() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (119, "119s"),
            (120, "2m"),
            (303, "5m3s"),
            (600, "10m"),
            (10_799, "179m"),
            (25_920, "7h12m"),
            (100_000, "27h"),
            (273_600, "3d4h"),
            (86_400 * 8, "8d"),
            (86_400 * 740, "2y10d"),
            (86_400 * 365 * 9, "9y"),
        ] {
            assert_eq!(super::human_seconds(seconds), text);
        }
    }
}
