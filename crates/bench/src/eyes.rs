//! Watches an importing cluster and tells, with the time, what of whom has arrived there.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use atoll_api::types::ServiceImport;
use futures_util::StreamExt;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::Api;
use kube::runtime::watcher::Event;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::Error;
use crate::floor::watch;
use crate::objects::{self, COPY, ROLE};
use crate::options::Who;

/// What can be seen of a service in an importer.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sight {
    /// Its slice, whose content has this first address.
    Slice(Who, String, Ipv4Addr),
    /// Its ServiceImport, with an address.
    Import(Who, String),
}

/// Eyes on one cluster.
pub(crate) struct Eyes {
    sights: mpsc::UnboundedReceiver<(Sight, Instant)>,
    tasks: [AbortHandle; 2],
}

impl Eyes {
    /// Opens them, and returns when they see everything that is there.
    pub(crate) async fn on(client: &kube::Client) -> Result<Self, Error> {
        let (tell, sights) = mpsc::unbounded_channel();
        let (listed, mut both) = mpsc::channel(2);
        let (tell_import, listed_import) = (tell.clone(), listed.clone());
        let mut slices = Box::pin(watch(Api::<EndpointSlice>::all(client.clone())));
        let of_slices = tokio::spawn(async move {
            while let Some(event) = slices.next().await {
                let at = Instant::now();
                match event {
                    Event::Apply(slice) | Event::InitApply(slice) => {
                        if let Some((who, service, Some(first))) = objects::held(&slice) {
                            let _ = tell.send((Sight::Slice(who, service.to_owned(), first), at));
                        }
                    }
                    Event::InitDone => drop(listed.try_send(())),
                    Event::Init | Event::Delete(_) => {}
                }
            }
        });
        let mut imports = Box::pin(watch(Api::<ServiceImport>::all(client.clone())));
        let of_imports = tokio::spawn(async move {
            while let Some(event) = imports.next().await {
                let at = Instant::now();
                match event {
                    Event::Apply(import) | Event::InitApply(import) => {
                        if let Some(sight) = imported(&import) {
                            let _ = tell_import.send((sight, at));
                        }
                    }
                    Event::InitDone => drop(listed_import.try_send(())),
                    Event::Init | Event::Delete(_) => {}
                }
            }
        });
        let eyes = Self { sights, tasks: [of_slices.abort_handle(), of_imports.abort_handle()] };
        let limit = Duration::from_secs(30);
        let open = async { (both.recv().await, both.recv().await) };
        tokio::time::timeout(limit, open).await.map_err(|_| Error::Deadline {
            what: "the first list of the watched importer".to_owned(),
            seconds: limit.as_secs(),
            missing: "slices or ServiceImports".to_owned(),
        })?;
        Ok(eyes)
    }

    /// Forgets what was seen up to now.
    pub(crate) fn blink(&mut self) {
        while self.sights.try_recv().is_ok() {}
    }

    /// When the last of `awaited` was seen.
    pub(crate) async fn see(
        &mut self,
        what: &str,
        mut awaited: HashSet<Sight>,
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

impl Drop for Eyes {
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
