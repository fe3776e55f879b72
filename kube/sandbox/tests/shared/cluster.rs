//! A cluster that is an API and its controllers; the test's own kubelet says that pods run.

use atoll_kubeapi::store::Store;
use atoll_kubeapi::{Api as Server, Options};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// A pod with this label never gets ready.
pub(crate) const SICK: &str = "sick";
/// How a pod with this annotation ends: an exit code.
pub(crate) const EXIT: &str = "test/exit";
/// The node that all pods are on, and its zone.
pub(crate) const NODE: &str = "here";
pub(crate) const ZONE: &str = "attic";

/// How often it is looked whether something is so, every few milliseconds.
const LOOKS: usize = 12_000;

/// The objects of a cluster, in its default namespace.
pub(crate) struct Objects(pub(crate) Client);

/// A cluster.
pub(crate) struct Cluster {
    objects: Objects,
    pub(crate) counts: Arc<Mutex<Counts>>,
    _server: Server,
    _tasks: JoinSet<()>,
}

/// The most pods that were there, and the fewest that were ready, since somebody asked.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pods: BTreeMap<String, bool>,
    pub(crate) most: usize,
    pub(crate) fewest: usize,
}

/// A clock that goes with tokio's.
#[derive(Clone, Copy)]
struct Clock(Timestamp, Instant);

impl Clock {
    fn now(self) -> Timestamp {
        self.0 + SignedDuration::try_from(self.1.elapsed()).unwrap()
    }
}

impl Cluster {
    pub(crate) async fn start() -> Self {
        let server = Server::start(Store::memory(), Options::default()).await.unwrap();
        let client = Client::new(server.admin(), "default");
        let clock = Clock(Timestamp::now(), Instant::now());
        let counts = Arc::default();
        let mut tasks = JoinSet::new();
        let controllers = atoll_sandbox::controllers::run_with_clock(
            client.clone(),
            move || clock.now(),
            std::future::pending(),
        );
        tasks.spawn(controllers);
        tasks.spawn(kubelet(client.clone(), clock, Arc::clone(&counts)));
        let cluster = Self { objects: Objects(client), counts, _server: server, _tasks: tasks };
        let zone = json!({"topology.kubernetes.io/zone": ZONE});
        cluster.create("v1", "Node", json!({"metadata": {"name": NODE, "labels": zone}})).await;
        cluster
    }

    /// Counts pods from now on.
    pub(crate) fn count(&self) {
        let mut counts = self.counts.lock().unwrap();
        counts.most = 0;
        counts.fewest = usize::MAX;
    }
}

impl std::ops::Deref for Cluster {
    type Target = Objects;

    fn deref(&self) -> &Objects {
        &self.objects
    }
}

impl Objects {
    pub(crate) fn api(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let gvk = kube::core::GroupVersionKind::gvk(group, version, kind);
        let resource = ApiResource::from_gvk(&gvk);
        if matches!(kind, "Node" | "Namespace") {
            return Api::all_with(self.0.clone(), &resource);
        }
        Api::default_namespaced_with(self.0.clone(), &resource)
    }

    pub(crate) async fn create(&self, api_version: &str, kind: &str, mut object: Value) -> Value {
        object["apiVersion"] = api_version.into();
        object["kind"] = kind.into();
        let object = serde_json::from_value(object).unwrap();
        let made = self.api(api_version, kind).create(&PostParams::default(), &object).await.unwrap();
        serde_json::to_value(made).unwrap()
    }

    pub(crate) async fn patch(&self, api_version: &str, kind: &str, name: &str, patch: Value) {
        let api = self.api(api_version, kind);
        api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    pub(crate) async fn get(&self, api_version: &str, kind: &str, name: &str) -> Value {
        let found = self.api(api_version, kind).get_opt(name).await.unwrap();
        found.map_or(Value::Null, |found| serde_json::to_value(found).unwrap())
    }

    pub(crate) async fn list(&self, api_version: &str, kind: &str) -> Vec<Value> {
        let found = self.api(api_version, kind).list(&ListParams::default()).await.unwrap();
        found.items.into_iter().map(|found| serde_json::to_value(found).unwrap()).collect()
    }

    pub(crate) async fn pods(&self) -> Vec<Value> {
        self.list("v1", "Pod").await
    }

    pub(crate) async fn delete(&self, api_version: &str, kind: &str, name: &str) {
        let background = DeleteParams::background();
        self.api(api_version, kind).delete(name, &background).await.unwrap();
    }

    /// Waits until an object is as it should be, and gives it. With the clock paused no time passes.
    pub(crate) async fn until(
        &self,
        (api_version, kind, name): (&str, &str, &str),
        is: impl Fn(&Value) -> bool,
    ) -> Value {
        let mut last = Value::Null;
        for _ in 0..LOOKS {
            last = self.get(api_version, kind, name).await;
            if is(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{kind} {name} never was as it should be; last seen: {last:#}");
    }

    /// Waits until something about all objects of a kind is so.
    pub(crate) async fn until_all(
        &self,
        (api_version, kind): (&str, &str),
        are: impl Fn(&[Value]) -> bool,
    ) -> Vec<Value> {
        let mut last = Vec::new();
        for _ in 0..LOOKS {
            last = self.list(api_version, kind).await;
            if are(&last) {
                return last;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        panic!("{kind} never were as they should be; last seen: {}", Value::from(last));
    }
}

/// Says that pods run, and takes away those that go.
async fn kubelet(client: Client, clock: Clock, counts: Arc<Mutex<Counts>>) {
    use futures_util::StreamExt;
    let pods: Api<Pod> = Api::all(client.clone());
    let mut events = std::pin::pin!(watcher(pods, watcher::Config::default()).default_backoff());
    let mut address = 0_u8;
    while let Some(event) = events.next().await {
        let pod = match event {
            Ok(watcher::Event::Apply(pod) | watcher::Event::InitApply(pod)) => pod,
            Ok(watcher::Event::Delete(pod)) => {
                counts.lock().unwrap().pods.remove(&pod.name_any());
                continue;
            }
            _ => continue,
        };
        note(&counts, &pod);
        let (name, own) = (pod.name_any(), Api::<Pod>::namespaced(client.clone(), &pod.namespace().unwrap()));
        if pod.metadata.deletion_timestamp.is_some() {
            drop(own.delete(&name, &DeleteParams::default().grace_period(0)).await);
            continue;
        }
        let phase = pod.status.as_ref().and_then(|status| status.phase.clone());
        if phase.as_deref() != Some("Pending") {
            continue;
        }
        address += 1;
        let placed = Patch::Merge(json!({"spec": {"nodeName": NODE}}));
        drop(own.patch(&name, &PatchParams::default(), &placed).await);
        let (now, ip) = (clock.now().to_string(), format!("10.1.0.{address}"));
        let condition = |ready: bool| {
            let status = if ready { "True" } else { "False" };
            json!([{"type": "Ready", "status": status, "lastTransitionTime": now}])
        };
        let status = match pod.annotations().get(EXIT) {
            Some(code) => {
                let phase = if code == "0" { "Succeeded" } else { "Failed" };
                let ended = json!({"exitCode": code.parse::<i32>().unwrap(), "finishedAt": now});
                let container = json!({"name": "main", "image": "web", "imageID": "", "ready": false, "restartCount": 0, "state": {"terminated": ended}});
                json!({"phase": phase, "conditions": condition(false), "containerStatuses": [container]})
            }
            None => json!({"phase": "Running", "podIP": ip, "podIPs": [{"ip": ip}],
                "conditions": condition(!pod.labels().contains_key(SICK))}),
        };
        let status = Patch::Merge(json!({"status": status}));
        drop(own.patch_status(&name, &PatchParams::default(), &status).await);
    }
}

fn note(counts: &Mutex<Counts>, pod: &Pod) {
    let mut counts = counts.lock().unwrap();
    let conditions = pod.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let ready = conditions.into_iter().any(|one| one.type_ == "Ready" && one.status == "True");
    if pod.metadata.deletion_timestamp.is_some() {
        counts.pods.remove(&pod.name_any());
    } else {
        counts.pods.insert(pod.name_any(), ready);
    }
    counts.most = counts.most.max(counts.pods.len());
    counts.fewest = counts.fewest.min(counts.pods.values().filter(|ready| **ready).count());
}
