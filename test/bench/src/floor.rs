//! The floor: the writes that the product has to make, with nothing around them.
//!
//! ```text
//!   A: a slice changes ──watch──▶ one PUT per importer, then one for A's own import
//!   A: a service is "exported" ─▶ in every importer: derived Service, slice, ServiceImport, its status
//!                                 then the same in A, and the export's status
//! ```
//!
//! One kube client per target, 16 requests in flight on each, PUT with the last resourceVersion, POST where there is
//! nothing yet. No merging, no conflicts, no queue, no drift, no checks. Like the product it watches all slices of A
//! (it can't know beforehand which will be exported), has threads of its own, serves A's own import last, and reads
//! no more of an answer than it needs. A floor that the product beats is no floor: if a ratio is well below 1, look here.
//! [`mcs`] is the floor where the intent is a `MultiClusterService`, [`copies`] that of policies.

mod copies;
mod in_hub;
mod mcs;

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use atoll_api::types::ServiceImport;
use futures_util::future::join_all;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, PostParams, Request};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Resource, ResourceExt};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;

use crate::environment::Cluster;
use crate::error::Error;
use crate::objects::{self, EXPORT, ROLE, SERVICE, SOURCE};
use crate::options::Who;

/// Requests in flight per target, as many as the product's.
const IN_FLIGHT: usize = 16;

/// A running floor; dropping it ends it.
pub(crate) struct Floor {
    threads: Threads,
    jobs: Arc<AtomicUsize>,
}

impl Floor {
    /// Starts the floor from `source` to every importer and, last, to `source` itself.
    pub(crate) async fn start(source: &Cluster, importers: &[Cluster]) -> Result<Self, Error> {
        let threads = Threads::start()?;
        let jobs = Arc::new(AtomicUsize::new(0));
        let (source, importers, of_state) = (source.clone(), importers.to_vec(), Arc::clone(&jobs));
        threads
            .run(async move {
                let mut remote = Vec::new();
                for importer in &importers {
                    remote.push(Arc::new(Target::new(importer.client().await?, Who::Floor)));
                }
                let own = Arc::new(Target::new(source.client().await?, Who::Floor));
                let state = State { remote: remote.into(), own, services: HashMap::new(), jobs: of_state };
                tokio::spawn(state.run(source.client().await?));
                Ok(())
            })
            .await?;
        Ok(Self { threads, jobs })
    }

    /// Whether nothing is being written.
    pub(crate) fn rests(&self) -> bool {
        self.threads.0.is_some() && self.jobs.load(Ordering::Acquire) == 0
    }
}

/// A bare one-way copier, for scale: a slice changes in A, one PUT into B.
pub(crate) struct Copier(#[expect(dead_code, reason = "dropping it ends the copier")] Threads);

impl Copier {
    /// Starts copying from `source` to `importer`.
    pub(crate) async fn start(source: &Cluster, importer: &Cluster) -> Result<Self, Error> {
        let threads = Threads::start()?;
        let (source, importer) = (source.clone(), importer.clone());
        threads
            .run(async move {
                let target = Arc::new(Target::new(importer.client().await?, Who::Copier));
                let slices = watch(Api::<EndpointSlice>::all(source.client().await?));
                tokio::spawn(copy(slices, target));
                Ok(())
            })
            .await?;
        Ok(Self(threads))
    }
}

async fn copy(slices: impl Stream<Item = watcher::Event<EndpointSlice>>, target: Arc<Target>) {
    let mut slices = std::pin::pin!(slices);
    while let Some(event) = slices.next().await {
        let Some((service, slice, gone)) = of_role(event, Who::Copier, SOURCE) else { continue };
        if gone {
            target.forget(&service);
        } else {
            let target = Arc::clone(&target);
            tokio::spawn(async move { target.hold(&slice).await });
        }
    }
}

/// Threads of its own, as the product has them: shared with whoever makes the changes, they would be had for less.
struct Threads(Option<tokio::runtime::Runtime>);

impl Threads {
    fn start() -> Result<Self, Error> {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Error::Hook { action: "start threads for the floor", why: error.to_string() })?;
        Ok(Self(Some(runtime)))
    }

    /// Runs `work` to its end on these threads; what it spawns stays there.
    async fn run(&self, work: impl Future<Output = Result<(), Error>> + Send + 'static) -> Result<(), Error> {
        let Some(runtime) = &self.0 else { return Ok(()) };
        let ended = runtime.spawn(work).await;
        ended.map_err(|error| Error::Hook { action: "start the floor", why: error.to_string() })?
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What the floor knows of a service.
#[derive(Default)]
struct Known {
    slice: Option<Arc<EndpointSlice>>,
    export: Option<ServiceImport>,
    begun: bool,
}

struct State {
    remote: Arc<[Arc<Target>]>,
    own: Arc<Target>,
    services: HashMap<String, Known>,
    jobs: Arc<AtomicUsize>,
}

impl State {
    async fn run(mut self, source: kube::Client) {
        let mut slices = Box::pin(watch(Api::<EndpointSlice>::all(source.clone())));
        let mut exports = Box::pin(watch(Api::<ServiceImport>::all(source)));
        loop {
            tokio::select! {
                Some(event) = slices.next() => {
                    if let Some((name, slice, gone)) = of_role(event, Who::Floor, SOURCE) {
                        self.slice(&name, (!gone).then_some(slice));
                    }
                }
                Some(event) = exports.next() => {
                    if let Some((name, export, gone)) = of_role(event, Who::Floor, EXPORT) {
                        self.export(&name, (!gone).then_some(export));
                    }
                }
                else => return,
            }
        }
    }

    fn slice(&mut self, name: &str, slice: Option<EndpointSlice>) {
        let known = self.services.entry(name.to_owned()).or_default();
        known.slice = slice.map(Arc::new);
        match &known.slice {
            Some(slice) if known.begun => {
                let (remote, own, slice) =
                    (Arc::clone(&self.remote), Arc::clone(&self.own), Arc::clone(slice));
                job(&self.jobs, async move {
                    join_all(remote.iter().map(|target| target.hold(&slice))).await;
                    own.hold(&slice).await;
                });
            }
            Some(_) => self.begin(name),
            None => {}
        }
    }

    fn export(&mut self, name: &str, export: Option<ServiceImport>) {
        let known = self.services.entry(name.to_owned()).or_default();
        known.export = export;
        if known.export.is_some() {
            return self.begin(name);
        }
        known.begun = false;
        self.remote.iter().chain([&self.own]).for_each(|target| target.forget(name));
    }

    /// The cold sync of one service, once its slice and its export are known.
    fn begin(&mut self, name: &str) {
        let Some(known) = self.services.get_mut(name).filter(|known| !known.begun) else { return };
        let (Some(slice), Some(export)) = (&known.slice, &known.export) else { return };
        known.begun = true;
        let (remote, own) = (Arc::clone(&self.remote), Arc::clone(&self.own));
        let (slice, name) = (Arc::clone(slice), name.to_owned());
        let said = objects::with_status(export.clone(), &["Valid", "Ready", "Conflict"]);
        job(&self.jobs, async move {
            join_all(remote.iter().map(|target| target.import(&name, &slice))).await;
            own.import(&name, &slice).await;
            own.say(&said).await;
        });
    }
}

/// What the floor needs of an answer.
#[derive(Deserialize)]
struct Made {
    metadata: Version,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version {
    resource_version: Option<String>,
}

/// A cluster that is written to.
struct Target {
    who: Who,
    client: kube::Client,
    /// Builds requests; of what they answer, [`Made`] is enough.
    slices: Request,
    imports: Api<ServiceImport>,
    services: Api<Service>,
    permits: Semaphore,
    /// The resourceVersion of every slice held.
    versions: Mutex<HashMap<String, String>>,
}

impl Target {
    fn new(client: kube::Client, who: Who) -> Self {
        Self {
            who,
            slices: Request::new(EndpointSlice::url_path(&(), Some(who.namespace()))),
            imports: Api::namespaced(client.clone(), who.namespace()),
            services: Api::namespaced(client.clone(), who.namespace()),
            client,
            permits: Semaphore::new(IN_FLIGHT),
            versions: Mutex::default(),
        }
    }

    async fn import(&self, name: &str, slice: &EndpointSlice) {
        let derived = objects::derived_service(name);
        let made = self.send(self.services.create(&PostParams::default(), &derived)).await;
        let ips = made.and_then(|service| service.spec?.cluster_ips).unwrap_or_default();
        self.hold(slice).await;
        let import = objects::import(name, &ips);
        let Some(made) = self.send(self.imports.create(&PostParams::default(), &import)).await else {
            return;
        };
        self.say(&objects::with_status(made, &["Ready"])).await;
    }

    async fn say(&self, object: &ServiceImport) {
        let name = object.metadata.name.as_deref().unwrap_or_default();
        self.send(self.imports.replace_status(name, &PostParams::default(), object)).await;
    }

    /// Makes the target hold what the source's slice says.
    async fn hold(&self, source: &EndpointSlice) {
        let Some(mut copy) = objects::copied_slice(self.who, source) else { return };
        let name = copy.metadata.name.clone().unwrap_or_default();
        copy.metadata.resource_version = self.version(&name);
        let Ok(body) = serde_json::to_vec(&copy) else { return };
        let put = PostParams::default();
        let request = match copy.metadata.resource_version {
            Some(_) => self.slices.replace(&name, &put, body),
            None => self.slices.create(&put, body),
        };
        let Ok(request) = request else { return };
        let made = self.send(self.client.request::<Made>(request)).await;
        if let Some(version) = made.and_then(|made| made.metadata.resource_version) {
            self.versions.lock().unwrap_or_else(PoisonError::into_inner).insert(name, version);
        }
    }

    fn version(&self, name: &str) -> Option<String> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn forget(&self, service: &str) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.remove(&objects::copied_name(&objects::slice_name(service)));
    }

    /// One request of the 16. What fails is said and not repeated: whoever waits for it sees that it is missing.
    async fn send<T>(&self, request: impl Future<Output = kube::Result<T>>) -> Option<T> {
        let _permit = self.permits.acquire().await.ok()?;
        request.await.inspect_err(|error| eprintln!("bench: a write of {:?} failed: {error}", self.who)).ok()
    }
}

fn job(jobs: &Arc<AtomicUsize>, work: impl Future<Output = ()> + Send + 'static) {
    jobs.fetch_add(1, Ordering::AcqRel);
    let jobs = Arc::clone(jobs);
    tokio::spawn(async move {
        work.await;
        jobs.fetch_sub(1, Ordering::AcqRel);
    });
}

/// Everything of a kind, and its changes: by kube's own watcher and not by the product's, since what is measured must not be part of the measure.
pub(crate) fn watch<K>(api: Api<K>) -> impl Stream<Item = watcher::Event<K>>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    watcher(api, watcher::Config::default()).default_backoff().filter_map(async |event| event.ok())
}

/// The service, the object and whether it is gone, of an event that is about `who`'s objects of `role`.
fn of_role<K: ResourceExt>(event: watcher::Event<K>, who: Who, role: &str) -> Option<(String, K, bool)> {
    let (object, gone) = match event {
        watcher::Event::Apply(object) | watcher::Event::InitApply(object) => (object, false),
        watcher::Event::Delete(object) => (object, true),
        watcher::Event::Init | watcher::Event::InitDone => return None,
    };
    let its = object.meta().namespace.as_deref() == Some(who.namespace())
        && object.labels().get(ROLE).is_some_and(|is| is == role);
    let service = object.labels().get(SERVICE).filter(|_| its)?.clone();
    Some((service, object, gone))
}
