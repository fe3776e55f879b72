//! The floor: the writes that the product has to make, with nothing around them.
//!
//! ```text
//!   A: a slice changes ──watch──▶ one PUT per importer, A's own import included
//!   A: a service is "exported" ─▶ in every importer: derived Service, slice, ServiceImport, its status
//!                                 and in A: the export's status
//! ```
//!
//! One kube client per target, 16 requests in flight on each, PUT with the last resourceVersion, POST where there is
//! nothing yet. No merging, no conflicts, no queue, no drift, no checks. Like the product it watches all slices of A:
//! it can't know beforehand which will be exported. Whatever the product takes longer than this, its own work takes.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use atoll_api::types::ServiceImport;
use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::ResourceExt;
use kube::api::{Api, PostParams};
use kube::runtime::{WatchStreamExt, watcher};
use serde::de::DeserializeOwned;
use tokio::sync::Semaphore;
use tokio::task::AbortHandle;

use crate::objects::{self, EXPORT, ROLE, SERVICE, SOURCE};
use crate::options::Who;

/// Requests in flight per target, as many as the product's.
const IN_FLIGHT: usize = 16;

/// A running floor; dropping it ends it.
pub(crate) struct Floor {
    task: AbortHandle,
    jobs: Arc<AtomicUsize>,
}

impl Floor {
    /// Starts the floor from `source` to every importer, the last of which is `source` itself.
    pub(crate) fn start(source: &kube::Client, importers: Vec<kube::Client>) -> Self {
        let targets = importers.into_iter().map(|client| Arc::new(Target::new(client, Who::Floor))).collect();
        let jobs = Arc::new(AtomicUsize::new(0));
        let state = State { targets, services: HashMap::new(), jobs: Arc::clone(&jobs) };
        let task = tokio::spawn(state.run(source.clone())).abort_handle();
        Self { task, jobs }
    }

    /// Whether nothing is being written.
    pub(crate) fn rests(&self) -> bool {
        self.jobs.load(Ordering::Acquire) == 0
    }
}

impl Drop for Floor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A bare one-way copier, for scale: a slice changes in A, one PUT into B.
pub(crate) struct Copier(AbortHandle);

impl Copier {
    /// Starts copying from `source` to `importer`.
    pub(crate) fn start(source: &kube::Client, importer: kube::Client) -> Self {
        let target = Arc::new(Target::new(importer, Who::Copier));
        let mut slices = Box::pin(watch(Api::<EndpointSlice>::all(source.clone())));
        let task = tokio::spawn(async move {
            while let Some(event) = slices.next().await {
                let Some((_, slice, gone)) = of_role(event, Who::Copier, SOURCE) else { continue };
                if gone {
                    target.forget(&slice);
                } else {
                    let target = Arc::clone(&target);
                    tokio::spawn(async move { target.hold(&slice).await });
                }
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.0.abort();
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
    targets: Vec<Arc<Target>>,
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
                for target in &self.targets {
                    let (target, slice) = (Arc::clone(target), Arc::clone(slice));
                    job(&self.jobs, async move { target.hold(&slice).await });
                }
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
        if let Some(slice) = &known.slice {
            self.targets.iter().for_each(|target| target.forget(slice));
        }
    }

    /// The cold sync of one service, once its slice and its export are known.
    fn begin(&mut self, name: &str) {
        let Some(known) = self.services.get_mut(name).filter(|known| !known.begun) else { return };
        let (Some(slice), Some(export)) = (&known.slice, &known.export) else { return };
        known.begun = true;
        for target in &self.targets {
            let (target, slice, name) = (Arc::clone(target), Arc::clone(slice), name.to_owned());
            job(&self.jobs, async move { target.import(&name, &slice).await });
        }
        if let Some(source) = self.targets.last().map(Arc::clone) {
            let said = objects::with_status(export.clone(), &["Valid", "Ready", "Conflict"]);
            job(&self.jobs, async move { source.say(&said).await });
        }
    }
}

/// A cluster that is written to.
struct Target {
    who: Who,
    slices: Api<EndpointSlice>,
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
            slices: Api::namespaced(client.clone(), who.namespace()),
            imports: Api::namespaced(client.clone(), who.namespace()),
            services: Api::namespaced(client, who.namespace()),
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
        let made = if copy.metadata.resource_version.is_some() {
            self.send(self.slices.replace(&name, &PostParams::default(), &copy)).await
        } else {
            self.send(self.slices.create(&PostParams::default(), &copy)).await
        };
        if let Some(version) = made.and_then(|made| made.metadata.resource_version) {
            self.versions.lock().unwrap_or_else(PoisonError::into_inner).insert(name, version);
        }
    }

    fn version(&self, name: &str) -> Option<String> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn forget(&self, source: &EndpointSlice) {
        let copy = objects::copied_slice(self.who, source).and_then(|copy| copy.metadata.name);
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        copy.map(|name| versions.remove(&name));
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

/// Everything of a kind, and its changes.
pub(crate) fn watch<K>(api: Api<K>) -> impl Stream<Item = watcher::Event<K>>
where
    K: kube::Resource + Clone + DeserializeOwned + Debug + Send + 'static,
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
