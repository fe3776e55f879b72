//! The clusters while they are measured on: whose services are there, and how they are made, changed and deleted.

mod mcs;

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use atoll_api::names::label;
use atoll_api::types::{ServiceExport, ServiceImport};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, PostParams};

use crate::error::{Doing, Error};
use crate::floor::{Copier, Floor};
use crate::objects::{self, service_name, slice_name};
use crate::options::{Network, Path, Who};
use crate::sweep::delete;
use crate::watchers::{Sight, Watchers};
pub(crate) use mcs::HubSide;

/// The benchmark's own requests in flight.
pub(crate) const IN_FLIGHT: usize = 16;
/// How long anything may take. Far more than it needs: the machine may be busy.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);
/// After something large: time for writes that no scenario waits for, such as statuses.
pub(crate) const REST: Duration = Duration::from_secs(1);

/// A cluster that is written to.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) client: kube::Client,
}

/// The clusters, and what is on them.
pub(crate) struct Stage {
    pub(crate) network: Network,
    /// The hub's API, where the intent lies there; then services cross by `MultiClusterServices`.
    pub(crate) hub: Option<HubSide>,
    /// Every cluster that imports: the watched one first, the source last.
    pub(crate) members: Vec<Member>,
    /// The API that explains, where there is one.
    pub(crate) questions: Option<kube::Client>,
    /// The benchmark's own client of the source.
    pub(crate) source: kube::Client,
    pub(crate) watchers: Watchers<Sight>,
    pub(crate) floor: Option<Floor>,
    pub(crate) _copier: Option<Copier>,
    /// The number of the content that each service has.
    pub(crate) revisions: BTreeMap<Who, Vec<usize>>,
}

impl Stage {
    fn path(&self) -> Path {
        if self.hub.is_some() { Path::Mcs } else { Path::Export }
    }

    /// How many services of `who` there are.
    pub(crate) fn count(&self, who: Who) -> usize {
        self.revisions.get(&who).map_or(0, Vec::len)
    }

    /// Makes `who` have at least `count` services; how long the last to arrive took from the first export, if any
    /// was missing.
    pub(crate) async fn grow(&mut self, who: Who, count: usize) -> Result<Option<Duration>, Error> {
        let have = self.count(who);
        if have >= count {
            return Ok(None);
        }
        let names: Vec<_> = (have..count).map(service_name).collect();
        if who != Who::Copier {
            self.make_sources(who, &names).await?;
        }
        self.watchers.forget();
        let awaited = names.iter().flat_map(|name| self.sights_of_new(who, name)).collect();
        let from = Instant::now();
        self.release(who, &names).await?;
        let at = self.watchers.wait_for(&format!("{count} services of {who:?}"), awaited, PATIENCE).await?;
        self.revisions.entry(who).or_default().resize(count, 0);
        self.settle(who).await?;
        Ok(Some(at.saturating_duration_since(from)))
    }

    fn sights_of_new(&self, who: Who, name: &str) -> Vec<Sight> {
        let slice = Sight::Slice(who, name.to_owned(), self.network.address(0, 0));
        match (who, self.path()) {
            (Who::Ours | Who::Floor, Path::Export) => vec![slice, Sight::Import(who, name.to_owned())],
            (Who::Ours | Who::Floor, Path::Mcs) => vec![slice, Sight::Service(who, name.to_owned())],
            (Who::Copier, _) => vec![slice],
        }
    }

    /// The Services and slices that intents will speak of. A `MultiClusterService` brings the Service from the hub.
    async fn make_sources(&self, who: Who, names: &[String]) -> Result<(), Error> {
        let home = self.hub.as_ref().map_or(&self.source, |hub| &hub.client);
        let services: Api<Service> = Api::namespaced(home.clone(), who.namespace());
        let slices: Api<EndpointSlice> = Api::namespaced(self.source.clone(), who.namespace());
        let (services, slices, post) = (&services, &slices, PostParams::default());
        let post = &post;
        in_flight(names, |name| async move {
            services.create(post, &objects::source_service(who, name)).await?;
            slices.create(post, &objects::source_slice(who, name, self.network, 0)).await.map(drop)
        })
        .await
        .doing(|| format!("make the services of {who:?}"))
    }

    /// Lets go of what was prepared.
    async fn release(&self, who: Who, names: &[String]) -> Result<(), Error> {
        if let Some(hub) = self.hub.as_ref().filter(|_| who != Who::Copier) {
            return hub.intend(who, names).await;
        }
        let client = self.source.clone();
        let post = &PostParams::default();
        let made = match who {
            Who::Ours => {
                let api: &Api<ServiceExport> = &Api::namespaced(client, who.namespace());
                in_flight(names, |name| async { api.create(post, &objects::export(name)).await.map(drop) })
                    .await
            }
            Who::Floor => {
                let api: &Api<ServiceImport> = &Api::namespaced(client, who.namespace());
                let stand_in = objects::stand_in_export;
                in_flight(names, |name| async { api.create(post, &stand_in(name)).await.map(drop) }).await
            }
            Who::Copier => {
                let api: &Api<EndpointSlice> = &Api::namespaced(client, who.namespace());
                let slice = |name| objects::source_slice(who, name, self.network, 0);
                in_flight(names, |name| async { api.create(post, &slice(name)).await.map(drop) }).await
            }
        };
        made.doing(|| format!("export the services of {who:?}"))
    }

    /// Waits until also those are there that were not timed.
    pub(crate) async fn settle(&self, who: Who) -> Result<(), Error> {
        rest(who, async || match who {
            Who::Ours => match &self.hub {
                None => self.importers_without(self.count(who)).await,
                Some(hub) => hub.lacks(&self.members, self.count(who)).await,
            },
            Who::Floor if self.floor.as_ref().is_some_and(|floor| !floor.rests()) => {
                Ok(Some("the floor's own writes".to_owned()))
            }
            Who::Floor | Who::Copier => Ok(None),
        })
        .await
    }

    /// What is missing where, if not exactly `count` services of ours are held and spoken of everywhere: what is still to be written
    /// would be borne by the next measurement.
    async fn importers_without(&self, count: usize) -> Result<Option<String>, Error> {
        let (namespace, all) = (Who::Ours.namespace(), ListParams::default());
        for Member { name, client } in &self.members {
            let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), namespace);
            let imports: Api<ServiceImport> = Api::namespaced(client.clone(), namespace);
            let ours = ListParams::default().labels(label::MCS_SERVICE_NAME);
            let doing = || format!("list what {name} holds");
            let held = slices.list_metadata(&ours).await.doing(doing)?.items.len();
            let known = imports.list(&all).await.doing(doing)?.items;
            let said = known.iter().filter(|import| import.status.is_some()).count();
            if (held, known.len(), said) != (count, count, count) {
                let known = known.len();
                return Ok(Some(format!(
                    "{name}: {held} slices, {known} imports, {said} statuses of {count}"
                )));
            }
        }
        let exports: Api<ServiceExport> = Api::namespaced(self.source.clone(), namespace);
        let exports = exports.list(&all).await.doing(|| "list the exports".to_owned())?.items;
        let said = exports.iter().filter(|export| export.status.is_some()).count();
        Ok((said != count).then(|| format!("{said} exports of {count} have a status")))
    }

    /// Changes the slices of some services; what will be seen of it, and when the source had acknowledged the last.
    pub(crate) async fn change(
        &mut self,
        who: Who,
        indices: impl Iterator<Item = usize>,
    ) -> Result<(HashSet<Sight>, Instant), Error> {
        let mut slices = Vec::new();
        let mut awaited = HashSet::new();
        for index in indices {
            let Some(revision) = self.revisions.get_mut(&who).and_then(|all| all.get_mut(index)) else {
                continue;
            };
            *revision += 1;
            let name = service_name(index);
            slices.push(objects::source_slice(who, &name, self.network, *revision));
            awaited.insert(Sight::Slice(who, name, self.network.address(*revision, 0)));
        }
        let api: &Api<EndpointSlice> = &Api::namespaced(self.source.clone(), who.namespace());
        let put = &PostParams::default();
        in_flight(&slices, |slice| async {
            let name = slice.metadata.name.as_deref().unwrap_or_default();
            api.replace(name, put, slice).await.map(drop)
        })
        .await
        .doing(|| format!("change slices of {who:?}"))?;
        Ok((awaited, Instant::now()))
    }

    /// Leaves `who` no more than `count` services.
    pub(crate) async fn shrink(&mut self, who: Who, count: usize) -> Result<(), Error> {
        let have = self.count(who);
        if have <= count {
            return Ok(());
        }
        self.settle(who).await?; // The floor's last write may be on its way: it must not come after the deletion.
        let names: Vec<_> = (count..have).map(service_name).collect();
        let namespace = who.namespace();
        let source = &self.source;
        self.revisions.entry(who).or_default().truncate(count);
        if let Some(hub) = &self.hub {
            hub.withdraw(who, &names, &self.members).await?;
            let sources = names.iter().map(|name| slice_name(name)).collect();
            delete::<EndpointSlice>(source, namespace, sources).await?;
            return self.settle(who).await;
        }
        match who {
            Who::Ours => delete::<ServiceExport>(source, namespace, names.clone()).await?,
            Who::Floor => {
                let stand_ins = names.iter().map(|name| format!("export-{name}")).collect();
                delete::<ServiceImport>(source, namespace, stand_ins).await?;
            }
            Who::Copier => {}
        }
        let sources: Vec<_> = names.iter().map(|name| slice_name(name)).collect();
        if who == Who::Ours {
            self.settle(who).await?;
        } else {
            let copies: Vec<_> = sources.iter().map(|name| objects::copied_name(name)).collect();
            for Member { client, .. } in &self.members {
                delete::<EndpointSlice>(client, namespace, copies.clone()).await?;
                delete::<ServiceImport>(client, namespace, names.clone()).await?;
                let derived = names.iter().map(|name| format!("derived-{name}")).collect();
                delete::<Service>(client, namespace, derived).await?;
            }
        }
        delete::<EndpointSlice>(source, namespace, sources).await?;
        delete::<Service>(source, namespace, names).await?;
        self.settle(who).await
    }
}

/// Waits until nothing of `who`'s is `missing`, and a moment more.
pub(crate) async fn rest(
    who: Who,
    missing: impl AsyncFn() -> Result<Option<String>, Error>,
) -> Result<(), Error> {
    let deadline = Instant::now() + PATIENCE;
    while let Some(missing) = missing().await? {
        if Instant::now() > deadline {
            let what = format!("rest for {who:?}");
            return Err(Error::Deadline { what, seconds: PATIENCE.as_secs(), missing });
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    tokio::time::sleep(REST).await;
    Ok(())
}

/// Sends a request for each item, 16 at a time.
pub(crate) async fn in_flight<'a, T: 'a, F>(items: &'a [T], request: impl Fn(&'a T) -> F) -> kube::Result<()>
where
    F: Future<Output = kube::Result<()>>,
{
    stream::iter(items).map(request).buffer_unordered(IN_FLIGHT).try_collect().await
}
