//! Lists and watches one kind, and knows at every moment whether it is up to date.
//!
//! kube's own watcher does not say when a broken watch is back, and that is what the age of the snapshot is about.

use std::fmt::Debug;
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt};
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::Sender;

use crate::live::Live;

/// How many seconds the server keeps a watch. A connection that was cut silently is noticed at most ten seconds later.
pub(crate) const LIFETIME: u32 = 50;
/// How many objects are in memory at once while a kind is listed.
const PAGE: u32 = 200;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const ABSENT_DELAY: Duration = Duration::from_millis(400);
const LONGEST_DELAY: Duration = Duration::from_secs(2);

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

/// What happens to the objects of a kind.
pub(crate) enum Change<K> {
    ListStarted,
    Seen(K),
    Gone(K),
    Listed,
}

/// Follows a kind for ever. Every change goes through `read` and what it makes of it to `events`; ends when nobody listens any more.
pub(crate) async fn follow<K, E>(
    kind: Watched,
    api: Api<K>,
    labels: Option<&str>,
    live: &Live,
    events: Sender<E>,
    read: impl Fn(Change<K>) -> Option<E>,
) where
    K: Clone + Debug + DeserializeOwned + kube::ResourceExt + Send + 'static,
{
    let mut delay = FIRST_DELAY;
    let follower = Follower { kind, api, labels, live, events, read };
    let mut version = None;
    loop {
        let end = match version.take() {
            None => follower.list().await,
            Some(version) => follower.watch(version, &mut delay).await,
        };
        match end {
            Ok(next) => version = Some(next),
            Err(End::NobodyListens) => return,
            // Not at once: a server that forgets faster than we read must not keep us both busy.
            Err(End::Expired) => tokio::time::sleep(FIRST_DELAY).await,
            Err(End::Failed(error, last)) => {
                follower.lost(&error);
                tokio::time::sleep(delay).await;
                // A kind that is not there yet comes with joining, and then names are wanted at once.
                let absent = matches!(&error, kube::Error::Api(status) if status.code == 404);
                delay = (delay * 2).min(if absent { ABSENT_DELAY } else { LONGEST_DELAY });
                version = last;
            }
        }
    }
}

enum End {
    NobodyListens,
    /// What we knew is too old to go on from: list again.
    Expired,
    /// Go on from the version, if there is one.
    Failed(kube::Error, Option<String>),
}

struct Follower<'a, K, E, R> {
    kind: Watched,
    api: Api<K>,
    labels: Option<&'a str>,
    live: &'a Live,
    events: Sender<E>,
    read: R,
}

impl<K, E, R> Follower<'_, K, E, R>
where
    K: Clone + Debug + DeserializeOwned + kube::ResourceExt + Send + 'static,
    R: Fn(Change<K>) -> Option<E>,
{
    /// Lists everything, a page at a time, and returns the version to watch from.
    async fn list(&self) -> Result<String, End> {
        self.pass(Change::ListStarted).await?;
        let mut params =
            ListParams { label_selector: self.labels.map(str::to_owned), ..ListParams::default() }
                .limit(PAGE);
        loop {
            let page = self.api.list(&params).await.map_err(|error| failed(error, None))?;
            for object in page.items {
                self.pass(Change::Seen(object)).await?;
            }
            params.continue_token = page.metadata.continue_.filter(|token| !token.is_empty());
            if params.continue_token.is_none() {
                self.pass(Change::Listed).await?;
                return Ok(page.metadata.resource_version.unwrap_or_default());
            }
        }
    }

    /// Watches until the server ends it, and returns the version to go on from.
    async fn watch(&self, mut version: String, delay: &mut Duration) -> Result<String, End> {
        let params = WatchParams { label_selector: self.labels.map(str::to_owned), ..WatchParams::default() }
            .timeout(LIFETIME);
        let stream =
            self.api.watch(&params, &version).await.map_err(|error| failed(error, Some(version.clone())))?;
        let mut stream = stream.boxed();
        self.live.follows(self.kind);
        *delay = FIRST_DELAY;
        loop {
            let event = match stream.try_next().await {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(version),
                Err(error) => return Err(failed(error, Some(version))),
            };
            match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                    version = object.resource_version().unwrap_or(version);
                    self.pass(Change::Seen(object)).await?;
                }
                WatchEvent::Deleted(object) => {
                    version = object.resource_version().unwrap_or(version);
                    self.pass(Change::Gone(object)).await?;
                }
                WatchEvent::Bookmark(bookmark) => version = bookmark.metadata.resource_version,
                WatchEvent::Error(status) => return Err(failed(kube::Error::Api(status), Some(version))),
            }
        }
    }

    async fn pass(&self, change: Change<K>) -> Result<(), End> {
        let Some(event) = (self.read)(change) else { return Ok(()) };
        self.events.send(event).await.map_err(|_| End::NobodyListens)
    }

    fn lost(&self, error: &kube::Error) {
        let (kind, first) = (self.kind.plural(), self.live.lost(self.kind));
        match error {
            kube::Error::Api(status) if status.code == 404 => {
                tracing::debug!(kind, "the cluster does not serve this kind yet; `atoll join` installs it");
            }
            kube::Error::Api(status) if [401, 403].contains(&status.code) => {
                tracing::warn!(
                    kind,
                    why = status.message,
                    "not allowed to watch this kind; `atoll dns manifest` prints the required RBAC rules"
                );
            }
            _ if first => {
                tracing::warn!(kind, %error, "the watch failed; answering from the last known state")
            }
            _ => tracing::debug!(kind, %error, "the watch still fails"),
        }
    }
}

fn failed(error: kube::Error, version: Option<String>) -> End {
    match &error {
        // The version is gone, or the list took so long that its next page is.
        kube::Error::Api(status) if status.code == 410 => End::Expired,
        // The version is one of a future that a restored server does not remember.
        kube::Error::Api(status) if status.code == 504 => End::Failed(error, None),
        _ => End::Failed(error, version),
    }
}
