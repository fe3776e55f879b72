//! Durations as Go writes them and as kubectl's users know them: in flags, in files, and in API objects.
//!
//! ```
//! use std::time::Duration;
//!
//! assert_eq!(atoll_duration::parse("1m30s"), Ok(Duration::from_secs(90)));
//! assert_eq!(atoll_duration::parse("10").unwrap_err().to_string(), "invalid duration \"10\": use a number and a unit, such as 500ms, 10s or 2m");
//! ```

use std::time::Duration;

/// A text that is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid duration {text:?}: use a number and a unit, such as 500ms, 10s or 2m")]
pub struct InvalidDuration {
    /// What came.
    pub text: String,
}

/// A duration that is not negative.
///
/// # Errors
/// It is negative, or not in Go's form.
pub fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let nanos = nanos(text).and_then(|nanos| u64::try_from(nanos).ok());
    nanos.map(Duration::from_nanos).ok_or_else(|| InvalidDuration { text: text.to_owned() })
}

/// Nanoseconds of a text in Go's form: `[-+]`, then numbers with units, or a bare 0.
pub fn nanos(text: &str) -> Option<i64> {
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
    whole(sign * total)
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

/// Whole nanoseconds, if there is room for them.
#[expect(clippy::cast_possible_truncation, reason = "checked to be in range")]
pub fn whole(nanos: f64) -> Option<i64> {
    (nanos.abs() < 9.2e18).then_some(nanos.round() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_a_unit_and_are_not_negative() {
        for (text, want) in [
            ("500ms", Some(500)),
            ("10s", Some(10_000)),
            ("2m", Some(120_000)),
            ("3h", Some(10_800_000)),
            ("1h30m", Some(5_400_000)),
            ("1.5s", Some(1500)),
            (".5s", Some(500)),
            ("0", Some(0)),
            ("10", None),
            ("s", None),
            ("", None),
            ("-1s", None),
            ("1.2.3s", None),
            ("1 s", None),
            ("18446744073709551615s", None),
        ] {
            assert_eq!(parse(text).ok(), want.map(Duration::from_millis), "{text}");
        }
        assert_eq!(nanos("-1.5s"), Some(-1_500_000_000));
    }
}
