//! Watches `MultiClusterServices`; a list that comes again says by silence what is gone.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use atoll_api::types::MultiClusterService;
use futures_util::StreamExt;
use kube::core::DeserializeGuard;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::membership::connect;

/// After a failed watch.
const PAUSE: Duration = Duration::from_secs(1);

/// One of them, by namespace and name.
#[derive(Debug)]
pub(crate) enum Seen {
    /// It is there.
    There(Box<MultiClusterService>),
    /// It is gone.
    Gone(String, String),
}

/// Watches for as long as somebody listens.
pub(super) async fn watch(client: Client, seen: UnboundedSender<Seen>) {
    let api = Api::<DeserializeGuard<MultiClusterService>>::all(client);
    let mut stream = pin!(watcher(api, watcher::Config::default().timeout(connect::WATCH)));
    let (mut known, mut again) = (BTreeSet::new(), BTreeSet::new());
    while let Some(next) = stream.next().await {
        match next {
            Ok(watcher::Event::Init) => again.clear(),
            Ok(watcher::Event::InitApply(object)) => {
                again.insert(place(&object));
                there(object, &seen);
            }
            Ok(watcher::Event::InitDone) => {
                let before = std::mem::replace(&mut known, std::mem::take(&mut again));
                for (namespace, name) in before.difference(&known) {
                    let _ = seen.send(Seen::Gone(namespace.clone(), name.clone()));
                }
            }
            Ok(watcher::Event::Apply(object)) => {
                known.insert(place(&object));
                there(object, &seen);
            }
            Ok(watcher::Event::Delete(object)) => {
                let at = place(&object);
                known.remove(&at);
                let _ = seen.send(Seen::Gone(at.0, at.1));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot watch MultiClusterServices in the hub's API");
                tokio::time::sleep(PAUSE).await;
            }
        }
        if seen.is_closed() {
            return;
        }
    }
}

fn place<K: ResourceExt>(object: &K) -> (String, String) {
    (object.namespace().unwrap_or_default(), object.name_any())
}

fn there(object: DeserializeGuard<MultiClusterService>, seen: &UnboundedSender<Seen>) {
    match object.0 {
        Ok(object) => drop(seen.send(Seen::There(Box::new(object)))),
        Err(error) => tracing::warn!(why = %error.error, "cannot read a MultiClusterService"),
    }
}
