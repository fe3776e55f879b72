//! The stale mark of a ServiceImport: since when which clusters' endpoints may be out of date.
//!
//! One annotation, `paris=2026-01-01T00:00:00Z,tokyo=2026-01-01T00:05:00Z`: cluster ids have no `=` and no comma.

use std::collections::BTreeMap;
use std::sync::Arc;

use atoll_engine::names::ClusterId;
use atoll_engine::plan::StaleMark;
use atoll_engine::time::Time;
use k8s_openapi::jiff::Timestamp;

/// The annotation's value; none if no cluster is stale. `now` is the value that stands there.
pub(crate) fn marks(stale: &BTreeMap<ClusterId, StaleMark>, now: Option<&str>) -> Option<Arc<str>> {
    let standing = |id: &ClusterId| {
        let marks = now.unwrap_or_default().split(',').filter_map(|mark| mark.split_once('='));
        marks.into_iter().find(|(cluster, _)| *cluster == id.as_str()).map(|(_, at)| at.to_owned())
    };
    let marks: Vec<String> = stale
        .iter()
        .filter_map(|(id, mark)| {
            let at = match mark {
                // A hub that was restarted meanwhile knows of a later silence only: the older mark is the truer one.
                StaleMark::Since(at) => {
                    let ours = timestamp(*at);
                    let before = standing(id).and_then(|text| text.parse::<Timestamp>().ok());
                    before.map_or(ours, |before| before.min(ours)).to_string()
                }
                StaleMark::AsItWas => standing(id)?,
            };
            Some(format!("{id}={at}"))
        })
        .collect();
    if marks.is_empty() { None } else { Some(marks.join(",").into()) }
}

/// Since when which sources are stale, to the minute, as a person reads it.
pub(crate) fn times(marks: Option<&str>) -> BTreeMap<ClusterId, String> {
    let marks = marks.unwrap_or_default().split(',').filter_map(|mark| mark.split_once('='));
    let read = |(cluster, at): (&str, &str)| {
        let at = at.parse::<Timestamp>().ok()?;
        Some((ClusterId::parse(cluster).ok()?, at.strftime("%Y-%m-%d %H:%M UTC").to_string()))
    };
    marks.filter_map(read).collect()
}

/// A time as Kubernetes writes it, to the second.
pub(crate) fn rfc3339(time: Time) -> String {
    timestamp(time).to_string()
}

/// To the second: Kubernetes keeps no more.
pub(crate) fn timestamp(time: Time) -> Timestamp {
    Timestamp::from_second(time.0.div_euclid(1000)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_names_cluster_and_time_and_stays_when_told_to() {
        let id = |text: &str| ClusterId::parse(text).unwrap();
        let stale = BTreeMap::from([
            (id("paris"), StaleMark::Since(Time(1_767_225_600_999))),
            (id("tokyo"), StaleMark::AsItWas),
        ]);
        assert_eq!(marks(&stale, None).as_deref(), Some("paris=2026-01-01T00:00:00Z"));
        let before = "lima=x,tokyo=2025-12-31T00:00:00Z";
        let want = "paris=2026-01-01T00:00:00Z,tokyo=2025-12-31T00:00:00Z";
        assert_eq!(marks(&stale, Some(before)).as_deref(), Some(want));
        assert_eq!(marks(&stale, Some(want)).as_deref(), Some(want), "writing twice changes nothing");
        assert_eq!(marks(&BTreeMap::new(), Some(before)), None);
        let times = times(Some(want));
        assert_eq!(times[&id("paris")], "2026-01-01 00:00 UTC");
        assert_eq!(
            (times.len(), super::times(Some("paris=long ago")).len(), super::times(None).len()),
            (2, 0, 0)
        );
    }

    #[test]
    fn a_later_silence_does_not_make_an_older_mark_younger() {
        let paris = ClusterId::parse("paris").unwrap();
        let stale = BTreeMap::from([(paris, StaleMark::Since(Time(1_767_225_600_000)))]);
        for (standing, want) in [
            ("paris=2025-12-31T00:00:00Z", "paris=2025-12-31T00:00:00Z"),
            ("paris=2026-01-02T00:00:00Z", "paris=2026-01-01T00:00:00Z"),
            ("paris=long ago", "paris=2026-01-01T00:00:00Z"),
        ] {
            assert_eq!(marks(&stale, Some(standing)).as_deref(), Some(want), "{standing}");
        }
    }
}
