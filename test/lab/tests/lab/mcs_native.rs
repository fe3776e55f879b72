//! `MultiClusterService`: native names over three real clusters, with kubectl on a hub that has an API of its own.
//!
//! The tests share the clusters, and each has a namespace of its own. In the middle of each story the hub is killed and started again,
//! and by the API servers' audit logs nothing is deleted because of that.

mod cases;
mod failover;
mod requests;
mod stories;

use crate::harness::{Outcome, Suite};
use crate::policies::{World, has, kubectl, lacks};
use anyhow::{Context, ensure};
use atoll_lab::audit::Recorder;
use atoll_lab::suite::name;
use atoll_lab::{Cluster, Spec};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use tokio::sync::OnceCell;

pub(crate) fn tests(suite: &mut Suite) {
    let mut shared = Shared { suite, native: Arc::default() };
    cases::tests(&mut shared);
    stories::tests(&mut shared);
    failover::tests(&mut shared);
}

/// The tests that share the clusters, which start when the first of them runs and end with the last.
struct Shared<'a> {
    suite: &'a mut Suite,
    native: Arc<OnceCell<Native>>,
}

impl Shared<'_> {
    fn test(&mut self, name: &'static str, body: impl AsyncFn(&Native) -> Outcome + Send + 'static) {
        let native = Arc::clone(&self.native);
        self.suite.test_alone(name, async move || {
            let native = native.get_or_try_init(Native::start).await?;
            let outcome = body(native).await;
            if outcome.is_err() {
                native.world.keep_evidence(name).await;
            }
            outcome
        });
    }
}

/// Slices that were dispatched.
const OURS: &str = "endpointslice.kubernetes.io/managed-by=endpointslice-dispatch-controller.karmada.io";

/// Where the hub's heartbeat is: in the alphabet after every story, so that it is planned after them.
const BEAT: &str = "zz-beat";

/// Three clusters with a pod `tools` each, joined to a hub.
pub(crate) struct Native {
    world: World,
    beats: AtomicU32,
}

impl Native {
    async fn start() -> anyhow::Result<Self> {
        // A short lease: stories wait for its end.
        let world = World::start_with(Spec::whole(&name("native"), 3), &["--lease-time", "5s"]).await?;
        for number in 1..=3 {
            world.join(number, &[RIGHTS]).await?;
            world.lab.member(number).tools("default", "tools").await?;
        }
        let native = Self { world, beats: AtomicU32::new(0) };
        native.namespace(BEAT).await?;
        native
            .apply(&[service(BEAT, "beat", &json!({"ports": [{"port": 80}]})), mcs(BEAT, "beat", &[], &[])])
            .await?;
        native.beat(3).await?;
        Ok(native)
    }

    fn member(&self, number: usize) -> &Cluster {
        self.world.lab.member(number)
    }

    /// A namespace in the hub, and by the hub in every member.
    async fn namespace(&self, namespace: &str) -> Outcome {
        self.apply(&[json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})])
            .await?;
        for cluster in self.world.lab.clusters() {
            has(cluster, &["-n", namespace, "serviceaccount", "default"], "the namespace is there", |_| true)
                .await?;
        }
        Ok(())
    }

    /// Applies objects to the hub.
    async fn apply(&self, objects: &[Value]) -> Outcome {
        self.world.apply(&json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string()).await
    }

    /// A slice changes in the first of `members` clusters from the end, and the others get it: the hub is at work.
    async fn beat(&self, members: usize) -> Outcome {
        let number = self.beats.fetch_add(1, Ordering::Relaxed);
        let address = format!("10.13.{}.{}", 100 + number / 250, 1 + number % 250);
        let slice = slice(BEAT, "beat", "beat-1", &[&address]);
        self.member(3).apply(&[slice]).await?;
        for number in (1..=2).rev().take(members - 1) {
            let is = |found: &Value| found["endpoints"][0]["addresses"][0] == address.as_str();
            has(
                self.member(number),
                &["-n", BEAT, "endpointslice", "member3-beat-1"],
                "the hub is at work",
                is,
            )
            .await?;
        }
        Ok(())
    }

    /// Kills the hub and starts it again; nothing is lost by that.
    async fn restart_hub(&self) -> Outcome {
        self.restart_hub_among(3).await
    }

    /// As [`Native::restart_hub`], where only so many clusters from the end can be reached.
    async fn restart_hub_among(&self, members: usize) -> Outcome {
        let reached = || (1..=3).rev().take(members).map(|number| self.member(number));
        let recorders = reached().map(Recorder::of).collect::<atoll_lab::Result<Vec<_>>>()?;
        self.world.restart().await?;
        self.beat(members).await?;
        for (cluster, recorder) in reached().zip(&recorders) {
            let mut deleted = recorder.requests().await?;
            deleted.retain(|recorded| {
                recorded.request.verb.starts_with("delete")
                    && recorded.user.starts_with("system:serviceaccount:atoll-system:")
                    && recorded.code < 300
            });
            ensure!(deleted.is_empty(), "a restart of the hub deleted in {}: {deleted:?}", cluster.name());
        }
        Ok(())
    }

    /// Waits until the `MultiClusterService` is so.
    async fn becomes(
        &self,
        namespace: &str,
        name: &str,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> anyhow::Result<Value> {
        self.world.hub_has(&["-n", namespace, "mcs", name], &format!("{namespace}/{name}: {what}"), is).await
    }

    async fn is_fine(&self, namespace: &str, name: &str) -> Outcome {
        self.becomes(namespace, name, "both conditions are True", fine).await.map(drop)
    }

    /// Waits until an event of this reason is told on the object.
    async fn told(&self, namespace: &str, kind: &str, name: &str, reason: &str) -> Outcome {
        let is = |found: &Value| {
            found["items"].as_array().into_iter().flatten().any(|event| {
                event["reason"] == reason
                    && event["involvedObject"]["kind"] == kind
                    && event["involvedObject"]["name"] == name
            })
        };
        self.world.hub_has(&["-n", namespace, "events"], &format!("{reason} is told"), is).await.map(drop)
    }

    /// Deletes a `MultiClusterService`: its slices go everywhere, the Service stays.
    async fn delete(&self, namespace: &str, name: &str) -> Outcome {
        self.world.kubectl(&["-n", namespace, "delete", "mcs", name], "").await?;
        for cluster in self.world.lab.clusters() {
            let its = format!("{OURS},kubernetes.io/service-name={name}");
            lacks(cluster, &["-n", namespace, "endpointslices", "-l", &its]).await?;
        }
        Ok(())
    }
}

/// What the hub may bring to members beside what services need.
const RIGHTS: &str = "--allow-propagation=namespaces,services,serviceexports.multicluster.x-k8s.io,serviceimports.multicluster.x-k8s.io";

fn mcs(namespace: &str, name: &str, providers: &[&str], consumers: &[&str]) -> Value {
    let named = |names: &[&str]| names.iter().map(|name| json!({"name": name})).collect::<Vec<_>>();
    json!({"apiVersion": "networking.karmada.io/v1alpha1", "kind": "MultiClusterService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"types": ["CrossCluster"], "providerClusters": named(providers), "consumerClusters": named(consumers)}})
}

/// The same with annotations.
fn annotated(mut object: Value, key: &str, value: &str) -> Value {
    object["metadata"]["annotations"][key] = value.into();
    object
}

/// A Service before [`serve`], or with another spec.
fn service(namespace: &str, name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": namespace}, "spec": spec})
}

fn web(namespace: &str) -> Value {
    service(namespace, "web", &serving())
}

/// Before the pods of [`serve`], over TCP and UDP.
fn serving() -> Value {
    json!({"selector": {"app": "web"}, "ports": [
        {"name": "http", "port": 80, "targetPort": 8080}, {"name": "udp", "port": 81, "targetPort": 8081, "protocol": "UDP"}]})
}

/// Runs pods `app: web` that answer with their cluster's name.
async fn serve(cluster: &Cluster, namespace: &str, replicas: u32) -> Outcome {
    serve_until(cluster, namespace, replicas, "0").await
}

/// The same; when they are told to go, they answer on for so many seconds.
async fn serve_until(cluster: &Cluster, namespace: &str, replicas: u32, seconds: &str) -> Outcome {
    let mut deployment = crate::mcs::deployment(cluster, namespace, "web", replicas);
    let container = &mut deployment["spec"]["template"]["spec"]["containers"][0];
    container["lifecycle"] = json!({"preStop": {"exec": {"command": ["sleep", seconds]}}});
    cluster.apply(&[deployment]).await?;
    cluster.pods_ready(namespace, "app=web", replicas as usize).await?;
    Ok(())
}

/// A slice that was written by hand.
fn slice(namespace: &str, service: &str, name: &str, addresses: &[&str]) -> Value {
    let endpoints: Vec<_> = addresses
        .iter()
        .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
        .collect();
    json!({"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service}},
        "endpoints": endpoints, "ports": [{"name": "", "port": 8080, "protocol": "TCP"}]})
}

fn fine(found: &Value) -> bool {
    let conditions = found["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let current = |one: &Value| one["observedGeneration"] == found["metadata"]["generation"];
    conditions.len() == 2 && conditions.iter().all(|one| one["status"] == "True" && current(one))
}

fn endpoints(slice: &Value) -> usize {
    slice["endpoints"].as_array().map_or(0, Vec::len)
}

/// The names and the endpoints of slices in a cluster, by label.
async fn slices(cluster: &Cluster, namespace: &str, labels: &str) -> anyhow::Result<Vec<(String, usize)>> {
    let said =
        kubectl(cluster, &["-n", namespace, "get", "endpointslices", "-l", labels, "-o", "json"]).await?;
    let found: Value = serde_json::from_str(&said)?;
    let each = found["items"].as_array().into_iter().flatten();
    Ok(each
        .map(|one| (one["metadata"]["name"].as_str().unwrap_or_default().to_owned(), endpoints(one)))
        .collect())
}

/// Karmada's own check: every slice of a provider has a slice with as many endpoints in the consumer.
async fn dispatched(provider: &Cluster, consumer: &Cluster, namespace: &str, service: &str) -> Outcome {
    let of_service = format!("kubernetes.io/service-name={service}");
    let ask = ["-n", namespace, "endpointslices", "-l", &of_service];
    let own = |slice: &Value| {
        slice["metadata"]["labels"]["endpointslice.kubernetes.io/managed-by"]
            != "endpointslice-dispatch-controller.karmada.io"
    };
    let any = |found: &Value| found["items"].as_array().is_some_and(|all| all.iter().any(own));
    let theirs = has(provider, &ask, "its slices", any).await?;
    for slice in theirs["items"].as_array().into_iter().flatten().filter(|slice| own(slice)) {
        let copy = format!("{}-{}", provider.name(), slice["metadata"]["name"].as_str().context("a name")?);
        let count = endpoints(slice);
        let what = format!("{copy} with {count} endpoints");
        has(consumer, &["-n", namespace, "endpointslice", &copy], &what, |found| endpoints(found) == count)
            .await?;
    }
    Ok(())
}

/// Waits until a pod of `client` that calls the Service by its native name, over TCP and over UDP, is answered by `from`.
async fn answers(client: &Cluster, native: &str, from: &str) -> Outcome {
    for ask in [
        format!("workload fetch --timeout=2s --address={native}:80"),
        format!("workload fetch --timeout=2s --udp=true --address={native}:81"),
    ] {
        client.exec_until("default", "tools", &ask, |said| said.starts_with(from)).await?;
    }
    Ok(())
}
