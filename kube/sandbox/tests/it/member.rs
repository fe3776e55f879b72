//! A member for a test: an API in memory, a node on it, and ways to ask.

use atoll_kubeapi::store::Store;
use atoll_sandbox::block::Block;
use atoll_sandbox::network::{Network, Resolve, ServiceRecord};
use atoll_sandbox::node::{Node, NodeOptions, Runtime};
use futures_util::future::BoxFuture;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use std::net::{IpAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Far more than anything here needs: the machine may be busy.
const PATIENCE: Duration = Duration::from_secs(30);

/// A block that nobody else has: neither another test nor another process.
fn claim() -> (Block, TcpListener) {
    let first = u8::try_from(std::process::id() % 100).unwrap();
    let free = (0..150).find_map(|next| {
        let block = Block(100 + (first + next) % 150);
        TcpListener::bind(block.api()).ok().map(|listener| (block, listener))
    });
    free.expect("a block of addresses is free")
}

pub(crate) struct Member {
    pub(crate) block: Block,
    pub(crate) client: Client,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) node: Node,
    pub(crate) network: Network,
    claim: TcpListener,
}

impl Member {
    pub(crate) async fn start() -> Self {
        Self::on(Network::new().unprivileged()).await
    }

    pub(crate) async fn on(network: Network) -> Self {
        let (block, claim) = claim();
        let runtime = Runtime::new();
        let options = atoll_kubeapi::Options::default()
            .pods(runtime.clone())
            .service_network(block.service_cidr())
            .loopback_endpoints(true);
        let api = atoll_kubeapi::Api::start(Store::memory(), options).await.unwrap();
        let client = Client::new(api.admin(), "default");
        let node = Self::node(block, &client, &runtime, &network).await;
        Self { block, client, runtime, node, network, claim }
    }

    async fn node(block: Block, client: &Client, runtime: &Arc<Runtime>, network: &Network) -> Node {
        let mut options =
            NodeOptions::new(format!("m{}", block.0), block, client.clone(), Arc::clone(runtime));
        options.network = network.clone();
        options.resolver = Arc::new(Names);
        options.backoff = Some(Duration::from_millis(50));
        Node::start(options).await.unwrap()
    }

    /// Ends the node with everything on it, and starts it again.
    pub(crate) async fn restart(self) -> Self {
        let Self { block, client, runtime, node, network, claim } = self;
        node.stop().await;
        let node = Self::node(block, &client, &runtime, &network).await;
        Self { block, client, runtime, node, network, claim }
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    pub(crate) async fn apply<K>(&self, object: Value) -> K
    where
        K: kube::Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
            + Clone
            + std::fmt::Debug
            + serde::de::DeserializeOwned
            + serde::Serialize,
    {
        let api: Api<K> = Api::namespaced(self.client.clone(), "default");
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        api.patch(&name, &PatchParams::apply("test").force(), &Patch::Apply(&object)).await.unwrap()
    }

    /// Makes a pod and waits until it is as `like` wants it.
    pub(crate) async fn pod(&self, name: &str, spec: Value, like: impl Fn(&Pod) -> bool) -> Pod {
        let _: Pod = self.apply(pod(name, &spec)).await;
        self.pod_is(name, like).await
    }

    /// Waits until a pod is as `like` wants it.
    pub(crate) async fn pod_is(&self, name: &str, like: impl Fn(&Pod) -> bool) -> Pod {
        let pods = self.pods();
        until(&format!("pod {name}"), async || match pods.get(name).await {
            Ok(pod) if like(&pod) => Ok(pod),
            Ok(pod) => Err(serde_json::to_string_pretty(&pod.status).unwrap()),
            Err(error) => Err(error.to_string()),
        })
        .await
    }

    /// Waits until a pod is gone.
    pub(crate) async fn gone(&self, name: &str) {
        let pods = self.pods();
        until(&format!("pod {name} is gone"), async || match pods.get_opt(name).await.unwrap() {
            None => Ok(()),
            Some(pod) => Err(serde_json::to_string_pretty(&pod).unwrap()),
        })
        .await;
    }

    /// Makes a Service with a slice of its own, whose endpoints these are; its ClusterIP.
    pub(crate) async fn service(
        &self,
        name: &str,
        ports: Value,
        targets: Value,
        endpoints: &[&str],
    ) -> String {
        let service: k8s_openapi::api::core::v1::Service = self
            .apply(json!({
                "apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports},
            }))
            .await;
        self.slice(name, targets, endpoints).await;
        service.spec.unwrap().cluster_ip.unwrap()
    }

    pub(crate) async fn slice(&self, service: &str, ports: Value, endpoints: &[&str]) {
        let endpoints: Vec<Value> = endpoints
            .iter()
            .map(|address| json!({"addresses": [address], "conditions": {"ready": true}}))
            .collect();
        let _: k8s_openapi::api::discovery::v1::EndpointSlice = self
            .apply(json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {"name": format!("{service}-1"), "labels": {"kubernetes.io/service-name": service}},
                "addressType": "IPv4", "endpoints": endpoints, "ports": ports,
            }))
            .await;
    }
}

/// A DNS that knows two names.
struct Names;

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Vec<IpAddr>> {
        let found = match name {
            "web.default.svc.cluster.local" => vec![IpAddr::from([127, 99, 128, 7])],
            "web.shop.svc.clusterset.local" => vec![IpAddr::from([127, 99, 128, 8])],
            _ => Vec::new(),
        };
        Box::pin(std::future::ready(found))
    }

    fn services<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Vec<ServiceRecord>> {
        let record = ServiceRecord { priority: 0, weight: 50, port: 42, target: name.to_owned() };
        let known = name == "web.shop.svc.clusterset.local";
        Box::pin(std::future::ready(if known { vec![record] } else { Vec::new() }))
    }
}

pub(crate) fn pod(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}}, "spec": spec})
}

/// Waits for a condition; what is still wrong is said when it does not come.
pub(crate) async fn until<T>(what: &str, mut look: impl AsyncFnMut() -> Result<T, String>) -> T {
    let start = Instant::now();
    loop {
        match look().await {
            Ok(found) => return found,
            Err(why) => assert!(start.elapsed() < PATIENCE, "{what}: {why}"),
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(crate) fn address(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap_or_default()
}

pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|one| one.type_ == "Ready" && one.status == "True")
}

pub(crate) fn restarts(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    statuses.and_then(|all| all.first()).map_or(0, |one| one.restart_count)
}

/// What a container's state says, as JSON.
pub(crate) fn container(pod: &Pod, name: &str) -> Value {
    let status = pod.status.clone().unwrap_or_default();
    let all = status
        .container_statuses
        .into_iter()
        .flatten()
        .chain(status.init_container_statuses.into_iter().flatten());
    let found = all.into_iter().find(|one| one.name == name);
    serde_json::to_value(found).unwrap_or_default()
}

pub(crate) fn uid(pod: &Pod) -> String {
    pod.uid().unwrap_or_default()
}
