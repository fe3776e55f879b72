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
    read(&text).map(Some).map_err(serde::de::Error::custom)
}

fn write(span: Duration) -> String {
    match span.subsec_millis() {
        0 => format!("{}s", span.as_secs()),
        _ => format!("{}ms", span.as_millis()),
    }
}

fn read(text: &str) -> Result<Duration, String> {
    let span = atoll_duration::parse(text).map_err(|error| error.to_string())?;
    if span > LONGEST {
        return Err(format!("invalid duration {text:?}: the longest is 10000h"));
    }
    Ok(span)
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
            assert_eq!(read(text).ok(), want, "{text}");
            assert_eq!(want.and_then(|span| read(&write(span)).ok()), want, "{text}");
        }
    }
}
