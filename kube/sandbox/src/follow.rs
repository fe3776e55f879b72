//! Lists and watches one kind, for as long as somebody waits.

use futures_util::StreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::time::Duration;

/// The API is in this process: it is away only while it starts or ends.
const AGAIN: Duration = Duration::from_millis(200);

/// What happens to the objects of a kind.
pub(crate) enum Change<K> {
    /// Everything is about to be told from the beginning.
    ListStarted,
    /// It is there, as it is now.
    Seen(K),
    /// It is gone; this was its last state.
    Gone(K),
    /// What was not told since the start of the list is gone.
    Listed,
}

/// Tells `hear` of every change.
pub(crate) async fn follow<K>(api: Api<K>, mut hear: impl FnMut(Change<K>))
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, watcher::Config::default()));
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => hear(Change::ListStarted),
            Ok(Event::InitApply(object) | Event::Apply(object)) => hear(Change::Seen(object)),
            Ok(Event::InitDone) => hear(Change::Listed),
            Ok(Event::Delete(object)) => hear(Change::Gone(object)),
            Err(error) => {
                tracing::debug!(%error, "a watch is begun anew");
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
