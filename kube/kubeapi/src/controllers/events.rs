//! Events expire after an hour.

use crate::api::ApiState;
use crate::http::encode;
use crate::storage::store::{Key, Object};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;
use std::time::Duration;

/// How long an event stays after it was last written.
const STAYS: SignedDuration = SignedDuration::from_hours(1);
/// How often old events are looked for.
const LOOK_EVERY: Duration = Duration::from_secs(300);

/// Deletes expired events, for ever.
pub(super) async fn run(state: Arc<ApiState>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let registry = state.served.now();
        let Some(resource) = registry.find("", "v1", "events") else { return };
        let page = state.store.list(&Key::resource_prefix("", "events"), None, None, None);
        for object in page.map(|page| page.objects).unwrap_or_default() {
            if is_old(&object, state.environment.now())
                && let Err(error) = state.discard(resource, &object.key, None).await
            {
                tracing::warn!(key = %object.key, %error, "cannot delete an expired event");
            }
        }
    }
}

/// Was it last written longer ago than events stay?
fn is_old(object: &Object, now: Timestamp) -> bool {
    let event = encode::read(&object.body);
    let times = [
        &event["metadata"]["creationTimestamp"],
        &event["lastTimestamp"],
        &event["eventTime"],
        &event["series"]["lastObservedTime"],
    ];
    let last = times.iter().filter_map(|time| time.as_str()?.parse::<Timestamp>().ok()).max();
    last.is_some_and(|last| now.duration_since(last) > STAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_that_happened_again_stays() {
        let event = |last: &str| Object {
            key: Key::new("", "events", "a", "b"),
            revision: 1,
            body: format!(
                r#"{{"metadata":{{"creationTimestamp":"2026-01-01T00:00:00Z"}},"lastTimestamp":{last}}}"#
            )
            .into(),
        };
        let now = "2026-01-01T03:00:00Z".parse().unwrap();
        assert!(is_old(&event("null"), now));
        assert!(!is_old(&event("\"2026-01-01T02:30:00Z\""), now));
    }
}
