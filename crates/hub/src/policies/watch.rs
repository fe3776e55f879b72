//! Watches of the hub's API: any kind, each object as JSON.

use std::pin::pin;
use std::time::Duration;

use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_watch::{Backoff, Change, Config, Known};
use futures_util::StreamExt;
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::{Client, discovery};
use tokio::sync::mpsc::UnboundedSender;

use super::core::{Event, Source};

/// After a failed watch, or for a kind that is not served.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Watches a kind for as long as its events are received; waits for it if it is not served.
pub(super) async fn watch(client: Client, kind: Kind, source: Source, events: UnboundedSender<Event>) {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    let mut known = Known::default();
    let mut backoff = Backoff::new(PAUSE, LONGEST_PAUSE);
    while !events.is_closed() {
        match discovery::oneshot::pinned_kind(&client, &gvk).await {
            Ok((resource, _)) => {
                backoff.reset();
                follow(Api::all_with(client.clone(), &resource), &kind, &source, &mut known, &events).await;
            }
            Err(error) => tracing::debug!(%kind, %error, "the hub's API does not serve this kind"),
        }
        tokio::time::sleep(backoff.pause()).await;
    }
}

/// Follows a kind until its watch fails: it may not be served any more, or by another name. What was known stays known: a kind that is
/// not served says nothing of its objects.
async fn follow(
    api: Api<DynamicObject>,
    kind: &Kind,
    source: &Source,
    known: &mut Known<ObjectKey>,
    events: &UnboundedSender<Event>,
) {
    let mut stream = pin!(atoll_watch::watch(api, Config::default()));
    while let Some(event) = stream.next().await {
        for change in known.take(event, |object| Some(key(kind, object))) {
            let event = match change {
                Change::Seen(key, object) => Event::Seen(source.clone(), key, Some(read(kind, object))),
                Change::Gone(key) => Event::Seen(source.clone(), key, None),
                Change::Listed => Event::Listed(source.clone()),
                Change::Failed(failure) => {
                    tracing::debug!(%kind, %failure, "cannot watch it in the hub's API");
                    return;
                }
            };
            let _ = events.send(event);
        }
    }
}

fn key(kind: &Kind, object: &DynamicObject) -> ObjectKey {
    ObjectKey {
        kind: kind.clone(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    }
}

/// The object as JSON that says what it is.
pub(super) fn read(kind: &Kind, object: DynamicObject) -> Box<serde_json::Value> {
    let mut value = serde_json::to_value(object).unwrap_or_default();
    // Elements of a list do not say what they are.
    (value["apiVersion"], value["kind"]) = (kind.api_version.as_str().into(), kind.kind.as_str().into());
    Box::new(value)
}
