//! Durations as Go writes them, and as API fields of format `duration` allow them.

/// Nanoseconds of a text such as `1h30m`, `1.5s` or `3 days`.
pub(crate) fn parse(text: &str) -> Option<i64> {
    go(text).or_else(|| worded(text))
}

/// Go's own form: `[-+]` then numbers with units, or a bare 0.
fn go(text: &str) -> Option<i64> {
    let (sign, mut rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) if text.starts_with('-') => (-1.0, rest),
        Some(rest) => (1.0, rest),
        None => (1.0, text),
    };
    if rest == "0" {
        return Some(0);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total = 0.0;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(end);
        if number.is_empty() || number == "." || number.matches('.').count() > 1 {
            return None;
        }
        let number = if number.ends_with('.') { format!("{number}0") } else { format!("0{number}") };
        let end = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, left) = after.split_at(end);
        total += number.parse::<f64>().ok()? * unit_nanos(unit)?;
        rest = left;
    }
    limited(sign * total)
}

fn unit_nanos(unit: &str) -> Option<f64> {
    Some(match unit {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        _ => return None,
    })
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
    if found { limited(total) } else { None }
}

#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
fn limited(nanos: f64) -> Option<i64> {
    (nanos.abs() < 9.2e18).then_some(nanos.round() as i64)
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
