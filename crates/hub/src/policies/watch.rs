//! Watches of the hub's API: any kind, each object as JSON; a list that comes again says by silence what is gone.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use atoll_engine::placement::object::{Kind, ObjectKey};
use futures_util::StreamExt;
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::runtime::watcher::{self, watcher};
use kube::{Client, discovery};
use tokio::sync::mpsc::UnboundedSender;

use super::desk::{Event, Source};
use crate::membership::connect;

/// After a failed watch, or for a kind that is not served.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Watches a kind for as long as somebody listens; waits for it if it is not served.
pub(super) async fn watch(client: Client, kind: Kind, source: Source, events: UnboundedSender<Event>) {
    let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
    let mut known = BTreeSet::new();
    let mut pause = PAUSE;
    while !events.is_closed() {
        match discovery::oneshot::pinned_kind(&client, &gvk).await {
            Ok((resource, _)) => {
                pause = PAUSE;
                follow(Api::all_with(client.clone(), &resource), &kind, &source, &mut known, &events).await;
            }
            Err(error) => tracing::debug!(%kind, %error, "the hub's API does not serve this kind"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Follows a kind until its watch breaks for good. What was known stays known: a kind that is not served says nothing of its objects.
async fn follow(
    api: Api<DynamicObject>,
    kind: &Kind,
    source: &Source,
    known: &mut BTreeSet<ObjectKey>,
    events: &UnboundedSender<Event>,
) {
    let mut stream = pin!(watcher(api, watcher::Config::default().timeout(connect::WATCH)));
    let mut again = BTreeSet::new();
    while let Some(next) = stream.next().await {
        let seen = |key: ObjectKey, object| Event::Seen(source.clone(), key, object);
        match next {
            Ok(watcher::Event::Init) => again.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                let (key, value) = read(kind, object);
                again.insert(key.clone());
                let _ = events.send(seen(key, Some(value)));
            }
            Ok(watcher::Event::InitDone) => {
                let before = std::mem::replace(known, std::mem::take(&mut again));
                for gone in before.difference(known) {
                    let _ = events.send(seen(gone.clone(), None));
                }
                let _ = events.send(Event::Listed(source.clone()));
            }
            Ok(watcher::Event::Apply(object)) => {
                let (key, value) = read(kind, object);
                known.insert(key.clone());
                let _ = events.send(seen(key, Some(value)));
            }
            Ok(watcher::Event::Delete(object)) => {
                let (key, _) = read(kind, object);
                known.remove(&key);
                let _ = events.send(seen(key, None));
            }
            Err(error) => {
                tracing::debug!(%kind, %error, "cannot watch this kind in the hub's API");
                return;
            }
        }
    }
}

fn read(kind: &Kind, object: DynamicObject) -> (ObjectKey, Box<serde_json::Value>) {
    let key = ObjectKey {
        kind: kind.clone(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    };
    let mut value = serde_json::to_value(object).unwrap_or_default();
    // Elements of a list do not say what they are.
    (value["apiVersion"], value["kind"]) = (kind.api_version.as_str().into(), kind.kind.as_str().into());
    (key, Box::new(value))
}
