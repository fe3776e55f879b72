//! Durations as API fields of format `duration` allow them: as Go writes them, or in words.

/// Nanoseconds of a text such as `1h30m`, `1.5s` or `3 days`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    atoll_duration::nanos(text).or_else(|| worded(text))
}

/// The looser form: whole numbers with words, anything between them ignored.
fn worded(text: &str) -> Option<i64> {
    const UNITS: &[(&[&str], f64)] = &[
        (&["ns", "nano"], 1.0),
        (&["us", "µs", "micro"], 1e3),
        (&["ms", "milli"], 1e6),
        (&["s", "sec"], 1e9),
        (&["m", "min"], 60e9),
        (&["h", "hr", "hour"], 3600e9),
        (&["d", "day"], 86_400e9),
        (&["w", "wk", "week"], 604_800e9),
    ];
    let (mut total, mut found, mut rest) = (0.0, false, text);
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        rest = &rest[start..];
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let number: i64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic() && c != 'µ').unwrap_or(rest.len());
        let unit = rest[..end].to_lowercase();
        rest = &rest[end..];
        for (variants, nanos) in UNITS {
            let (last, earlier) = variants.split_last()?;
            if !unit.is_empty() && (unit.starts_with(last) || earlier.contains(&unit.as_str())) {
                found = true;
                #[expect(clippy::cast_precision_loss, reason = "beyond 2^53 it is out of range anyway")]
                let number = number as f64;
                total += number * nanos;
            }
        }
    }
    if found { atoll_duration::whole(total) } else { None }
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn reads_go_and_words() {
        for (text, nanos) in [
            ("1h30m", Some(5_400_000_000_000)),
            ("-1.5s", Some(-1_500_000_000)),
            ("0", Some(0)),
            (".5s", Some(500_000_000)),
            ("3 days", Some(259_200_000_000_000)),
            ("1 week", Some(604_800_000_000_000)),
            ("", None),
            ("5", None),
            ("x", None),
            ("1.2.3s", Some(3_000_000_000)),
        ] {
            assert_eq!(parse(text), nanos, "{text}");
        }
    }
}
