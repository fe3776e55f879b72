//! Watches clusters and tells, with the time, what of whom has arrived there.

use std::collections::HashSet;
use std::fmt::Debug;
use std::hash::Hash;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use atoll_api::types::ServiceImport;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::Resource;
use kube::api::Api;
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::Error;
use crate::floor::watch;
use crate::objects::{self, COPY, ROLE};
use crate::options::{Path, Who};

/// What can be seen of a service in an importer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sight {
    /// Its slice, whose content has this first address.
    Slice(Who, String, Ipv4Addr),
    /// Its ServiceImport, with an address.
    Import(Who, String),
    /// Its Service, by its own name.
    Service(Who, String),
}

/// Watchers of some kinds in some clusters; `S` is what can be seen.
pub(crate) struct Watchers<S> {
    sights: mpsc::UnboundedReceiver<(S, Instant)>,
    tell: mpsc::UnboundedSender<(S, Instant)>,
    listed: (mpsc::UnboundedSender<()>, mpsc::UnboundedReceiver<()>),
    tasks: Vec<AbortHandle>,
}

impl Watchers<Sight> {
    /// Watches an importer, and returns when everything that is there has been seen.
    pub(crate) async fn on(client: &kube::Client, path: Path) -> Result<Self, Error> {
        let mut watchers = Self::new();
        watchers.watch(Api::<EndpointSlice>::all(client.clone()), |slice| {
            let (who, service, first) = objects::held(slice)?;
            Some(Sight::Slice(who, service.to_owned(), first?))
        });
        match path {
            Path::Export => watchers.watch(Api::<ServiceImport>::all(client.clone()), imported),
            Path::Mcs => watchers.watch(Api::<Service>::all(client.clone()), |service| {
                let who = Who::of(service.metadata.namespace.as_deref()?)?;
                Some(Sight::Service(who, service.metadata.name.clone()?))
            }),
        }
        watchers.listed().await
    }
}

impl<S: Debug + Eq + Hash + Send + 'static> Watchers<S> {
    /// None yet.
    pub(crate) fn new() -> Self {
        let (tell, sights) = mpsc::unbounded_channel();
        Self { sights, tell, listed: mpsc::unbounded_channel(), tasks: Vec::new() }
    }

    /// Watches everything of a kind; `sight` says what is worth telling.
    pub(crate) fn watch<K>(&mut self, api: Api<K>, sight: impl Fn(&K) -> Option<S> + Send + 'static)
    where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        let (tell, listed) = (self.tell.clone(), self.listed.0.clone());
        let mut events = Box::pin(watch(api));
        let watcher = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                let at = Instant::now();
                match event {
                    Event::Apply(object) | Event::InitApply(object) => {
                        if let Some(sight) = sight(&object) {
                            let _ = tell.send((sight, at));
                        }
                    }
                    Event::InitDone => drop(listed.send(())),
                    Event::Init | Event::Delete(_) => {}
                }
            }
        });
        self.tasks.push(watcher.abort_handle());
    }

    /// Returns when everything that is there has been seen.
    pub(crate) async fn listed(mut self) -> Result<Self, Error> {
        let limit = Duration::from_secs(30);
        for done in 0..self.tasks.len() {
            let listed = tokio::time::timeout(limit, self.listed.1.recv()).await;
            listed.map_err(|_| Error::Deadline {
                what: "the first lists of what is watched".to_owned(),
                seconds: limit.as_secs(),
                missing: format!("{} of {}", self.tasks.len() - done, self.tasks.len()),
            })?;
        }
        Ok(self)
    }

    /// Forgets what was seen up to now.
    pub(crate) fn forget(&mut self) {
        while self.sights.try_recv().is_ok() {}
    }

    /// When the last of `awaited` was seen.
    pub(crate) async fn wait_for(
        &mut self,
        what: &str,
        mut awaited: HashSet<S>,
        limit: Duration,
    ) -> Result<Instant, Error> {
        let mut last = Instant::now();
        let seen = tokio::time::timeout(limit, async {
            while !awaited.is_empty() {
                let Some((sight, at)) = self.sights.recv().await else { break };
                if awaited.remove(&sight) {
                    last = at;
                }
            }
        })
        .await;
        if seen.is_ok() && awaited.is_empty() {
            return Ok(last);
        }
        let some: Vec<_> = awaited.iter().take(3).map(|sight| format!("{sight:?}")).collect();
        let missing = format!("{} in all, such as {}", awaited.len(), some.join(", "));
        Err(Error::Deadline { what: what.to_owned(), seconds: limit.as_secs(), missing })
    }
}

impl<S> Drop for Watchers<S> {
    fn drop(&mut self) {
        self.tasks.iter().for_each(AbortHandle::abort);
    }
}

fn imported(import: &ServiceImport) -> Option<Sight> {
    let who = Who::of(import.metadata.namespace.as_deref()?)?;
    let role = import.metadata.labels.as_ref().and_then(|labels| labels.get(ROLE));
    if import.spec.ips.is_empty() || (who != Who::Ours && role.is_none_or(|role| role != COPY)) {
        return None;
    }
    Some(Sight::Import(who, import.metadata.name.clone()?))
}
