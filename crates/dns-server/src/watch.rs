//! Watches one kind, and knows at every moment whether it is up to date.

use std::fmt::Debug;

use atoll_watch::{Config, Event, Failure, watch};
use futures_util::StreamExt;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;

use crate::live::Live;

/// What is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names say it")]
pub(crate) enum Watched {
    Imports,
    Slices,
    Properties,
    /// Of the cluster's own zone.
    Services,
    ServiceSlices,
}

impl Watched {
    pub(crate) const ALL: [Self; 5] =
        [Self::Imports, Self::Slices, Self::Properties, Self::Services, Self::ServiceSlices];

    /// As kubectl calls it.
    pub(crate) fn plural(self) -> &'static str {
        match self {
            Self::Imports => "serviceimports",
            Self::Slices | Self::ServiceSlices => "endpointslices",
            Self::Services => "services",
            Self::Properties => "clusterproperties",
        }
    }

    /// Only for the cluster's own zone.
    pub(crate) fn of_cluster_zone(self) -> bool {
        matches!(self, Self::Services | Self::ServiceSlices)
    }

    /// Without the cluster's own name only the order of answers suffers.
    pub(crate) fn answers_need_it(self) -> bool {
        match self {
            Self::Imports | Self::Slices | Self::Services | Self::ServiceSlices => true,
            Self::Properties => false,
        }
    }
}

/// Follows a kind for ever. Every event goes through `read` and what it makes of it to `events`; ends when the receiver is gone.
pub(crate) async fn follow<K, E>(
    kind: Watched,
    api: Api<K>,
    labels: Option<&str>,
    live: &Live,
    events: &Sender<E>,
    read: impl Fn(Event<K>) -> Option<E>,
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let config = labels.map_or_else(Config::default, |labels| Config::default().labels(labels));
    let mut stream = std::pin::pin!(watch(api, config));
    while let Some(event) = stream.next().await {
        match &event {
            Event::Following => live.follows(kind),
            // A server that has forgotten where we were answers, and is listed again at once.
            Event::Failed(failure) if !failure.is_expired() => lost(kind, failure, live.lost(kind)),
            Event::ListStarted | Event::Seen(_) | Event::Gone(_) | Event::Listed | Event::Failed(_) => {}
        }
        let Some(event) = read(event) else { continue };
        if events.send(event).await.is_err() {
            return;
        }
    }
}

/// Says why nothing is seen; `first` if something was until now.
fn lost(kind: Watched, failure: &Failure, first: bool) {
    let kind = kind.plural();
    match failure.status() {
        Some(_) if failure.is_absent() => {
            tracing::debug!(kind, "the cluster does not serve this kind yet; `atoll join` installs it");
        }
        Some(status) if failure.is_refused() => {
            tracing::warn!(
                kind,
                why = status.message,
                "not allowed to watch this kind; `atoll dns manifest` prints the required RBAC rules"
            );
        }
        _ if first => tracing::warn!(kind, %failure, "the watch failed; answering from the last known state"),
        _ => tracing::debug!(kind, %failure, "the watch still fails"),
    }
}
