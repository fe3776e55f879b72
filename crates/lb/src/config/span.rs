//! A span of time as it is written: `500ms`, `10s`, `2m`, `3h`.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest that can be meant; times can be added to it.
const LONGEST: Duration = Duration::from_hours(10_000);

pub(super) fn serialize<S: Serializer>(span: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
    span.map(write).serialize(serializer)
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    read(&text).map(Some).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "invalid duration `{text}`: write a number and a unit, such as 500ms, 10s, 2m or 3h (up to 10000h)"
        ))
    })
}

fn write(span: Duration) -> String {
    match span.subsec_millis() {
        0 => format!("{}s", span.as_secs()),
        _ => format!("{}ms", span.as_millis()),
    }
}

fn read(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let span = match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3600).map(Duration::from_secs),
        _ => None,
    };
    span.filter(|span| *span <= LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_have_a_unit() {
        for (text, want) in [
            ("500ms", Some(Duration::from_millis(500))),
            ("10s", Some(Duration::from_secs(10))),
            ("3h", Some(Duration::from_secs(10_800))),
            ("10", None),
            ("s", None),
            ("-1s", None),
            ("10001h", None),
            ("18446744073709551615s", None),
            ("", None),
        ] {
            assert_eq!(read(text), want, "{text}");
            assert_eq!(want.and_then(|span| read(&write(span))), want, "{text}");
        }
    }
}
