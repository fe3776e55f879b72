//! The form of the file, before anything is checked.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use serde::{Deserialize, Deserializer};

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct File {
    /// None is a mistake: a file that was cut off must not look like one without listeners.
    pub(super) listeners: Option<Vec<ListenerEntry>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct ListenerEntry {
    pub(super) name: String,
    pub(super) address: SocketAddr,
    pub(super) interface: Option<String>,
    #[serde(default)]
    pub(super) protocol: ProtocolEntry,
    #[serde(default)]
    pub(super) algorithm: AlgorithmEntry,
    /// For how long a client comes back to the same backend.
    #[serde(default, deserialize_with = "some_span")]
    pub(super) affinity: Option<Duration>,
    #[serde(default)]
    pub(super) clusters: BTreeMap<String, ClusterEntry>,
    pub(super) health: Option<HealthEntry>,
    #[serde(default = "yes")]
    pub(super) ejection: bool,
    #[serde(default, deserialize_with = "some_span")]
    pub(super) drain: Option<Duration>,
    #[serde(default)]
    pub(super) seed: u64,
    #[serde(default)]
    pub(super) proxy_protocol: bool,
    /// Who backends see, where the kernel carries connections.
    #[serde(default)]
    pub(super) source: SourceEntry,
    #[serde(default)]
    pub(super) limits: LimitsEntry,
    #[serde(default, deserialize_with = "some_span")]
    pub(super) connect_timeout: Option<Duration>,
    #[serde(default, deserialize_with = "some_span")]
    pub(super) idle_timeout: Option<Duration>,
    #[serde(default)]
    pub(super) backends: Vec<BackendEntry>,
}

#[derive(Deserialize, Default, Clone, Copy)]
pub(super) enum ProtocolEntry {
    #[default]
    #[serde(rename = "TCP")]
    Tcp,
    #[serde(rename = "UDP")]
    Udp,
}

#[derive(Deserialize, Default, Clone, Copy)]
pub(super) enum AlgorithmEntry {
    #[default]
    Maglev,
    LeastConnections,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct SourceEntry {
    #[serde(default)]
    pub(super) keep: bool,
    pub(super) first: Option<IpAddr>,
    pub(super) last: Option<IpAddr>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
pub(super) struct ClusterEntry {
    pub(super) weight: Option<u32>,
    #[serde(default)]
    pub(super) tier: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct HealthEntry {
    #[serde(default, deserialize_with = "some_span")]
    pub(super) interval: Option<Duration>,
    #[serde(default, deserialize_with = "some_span")]
    pub(super) timeout: Option<Duration>,
    pub(super) rise: Option<u32>,
    pub(super) fall: Option<u32>,
    pub(super) port: Option<u16>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct LimitsEntry {
    pub(super) connections: Option<usize>,
    pub(super) per_client: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BackendEntry {
    pub(super) address: SocketAddr,
    #[serde(default)]
    pub(super) cluster: String,
    #[serde(default = "one")]
    pub(super) weight: u32,
    #[serde(default)]
    pub(super) draining: bool,
}

/// Nobody means more; times can be added to it.
const LONGEST: Duration = Duration::from_hours(10_000);

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn some_span<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    span(&text).map(Some).ok_or_else(|| {
        serde::de::Error::custom(format!(
            "invalid duration `{text}`: use a number and a unit, such as 500ms, 10s, 2m or 3h (up to 10000h)"
        ))
    })
}

fn span(text: &str) -> Option<Duration> {
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
            assert_eq!(span(text), want, "{text}");
        }
    }
}
