//! Brings one cluster from nothing to Ready, doing side by side whatever can be.

use crate::cluster::{Cluster, PATIENCE};
use crate::command::run;
use crate::component::Component;
use crate::error::{Doing, Error, Result};
use crate::layout::make_dir;
use crate::progress::Progress;
use crate::spec::Kind;
use crate::until::{Deadline, until};
use k8s_openapi::api::core::v1::{Node, Service, ServiceAccount};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, PostParams};
use serde_json::json;
use std::path::Path;

/// Starts everything that `cluster` consists of and waits until it is of use.
pub(crate) async fn boot(cluster: &Cluster, images: &Path, progress: &Progress) -> Result<()> {
    cluster.start(Component::Etcd)?;
    cluster.start(Component::ApiServer)?;
    if cluster.kind() != Kind::Whole {
        cluster.api_ready().await?;
        progress.reached(cluster.name(), "API ready");
        if cluster.kind() == Kind::ApiWithCleanup {
            cluster.start(Component::ControllerManager)?;
        }
        return Ok(());
    }
    cluster.start(Component::Containerd)?;
    let (api, imported) = tokio::join!(cluster.api_ready(), import_images(cluster, images));
    api?;
    progress.reached(cluster.name(), "API ready");
    for component in [Component::ControllerManager, Component::Scheduler, Component::KubeProxy] {
        cluster.start(component)?;
    }
    imported?;
    make_dir(&cluster.dir().join("pods"))?;
    cluster.start(Component::Kubelet)?;
    cluster.start(Component::CoreDns)?;
    let client = cluster.client().await?;
    serve_dns(cluster, &client).await?;
    node_ready(cluster, &client).await?;
    default_account(&client).await?;
    dns_ready(cluster).await?;
    progress.reached(cluster.name(), "node Ready");
    Ok(())
}

impl Cluster {
    /// Waits until the cluster is of use, starting what has ended on the way: a kubelet, say, ends when it
    /// finds no container runtime, and counts on an init system to start it again.
    pub async fn ready(&self) -> Result<()> {
        let client = self.client().await?;
        until(Deadline::after(PATIENCE, format!("{} is ready", self.name())), async || {
            for component in self.components() {
                if self.process(*component).is_none() {
                    self.start(*component)?;
                }
            }
            Ok(self.healthy(&client).await.map_err(|error| error.to_string()))
        })
        .await
    }

    /// One look at whether the API answers, and the kubelet behind it.
    async fn healthy(&self, client: &kube::Client) -> Result<(), kube::Error> {
        let kubelet = format!("/api/v1/nodes/{}/proxy/healthz", self.name());
        let paths = ["/readyz", &kubelet];
        for path in if self.kind() == Kind::Whole { &paths[..] } else { &paths[..1] } {
            let request = http::Request::get(*path).body(Vec::new()).expect("a plain path is well-formed");
            client.request_text(request).await?;
        }
        Ok(())
    }
}

async fn import_images(cluster: &Cluster, images: &Path) -> Result<()> {
    let socket = "/run/containerd/containerd.sock";
    until(Deadline::after(PATIENCE, "containerd answers"), async || {
        cluster.still_runs(Component::Containerd)?;
        let mut ctr = cluster.machine().command("ctr");
        ctr.args(["-a", socket, "version"]);
        Ok(blocking(move || run(&mut ctr)).await?.map(drop).map_err(|error| error.to_string()))
    })
    .await
    .map_err(|error| cluster.with_log(Component::Containerd, error))?;
    let mut ctr = cluster.machine().command("ctr");
    ctr.args(["-a", socket, "-n", "k8s.io", "images", "import"]).arg(images);
    blocking(move || run(&mut ctr)).await??;
    Ok(())
}

/// CoreDNS runs on the node, outside any pod: a Service without a selector leads to it.
async fn serve_dns(cluster: &Cluster, client: &kube::Client) -> Result<()> {
    let (node, address) = (cluster.addresses().node(), cluster.addresses().service(10));
    let ports = |key: &str| json!([{"name": "dns", "protocol": "UDP", key: 53}, {"name": "dns-tcp", "protocol": "TCP", key: 53}]);
    let service: Service = serde_json::from_value(json!({
        "metadata": {"name": "kube-dns", "namespace": "kube-system"},
        "spec": {
            "clusterIP": address.v4, "clusterIPs": address.both(), "ipFamilyPolicy": "RequireDualStack",
            "ports": ports("port"),
        },
    }))
    .expect("a constant Service is well-formed");
    let services: Api<Service> = Api::namespaced(client.clone(), "kube-system");
    let create = PostParams::default();
    // The API server allocates addresses only after a first pass over what is there.
    until(Deadline::after(PATIENCE, "the DNS Service is made"), async || {
        Ok(match services.create(&create, &service).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
            Err(error) => Err(error.to_string()),
        })
    })
    .await?;
    let slices: Api<EndpointSlice> = Api::namespaced(client.clone(), "kube-system");
    for (family, node) in ["IPv4", "IPv6"].into_iter().zip(node.both()) {
        let slice: EndpointSlice = serde_json::from_value(json!({
            "metadata": {
                "name": format!("kube-dns-{}", family.to_lowercase()), "namespace": "kube-system",
                "labels": {"kubernetes.io/service-name": "kube-dns"},
            },
            "addressType": family,
            "endpoints": [{"addresses": [node], "conditions": {"ready": true}}],
            "ports": ports("port"),
        }))
        .expect("a constant EndpointSlice is well-formed");
        slices.create(&create, &slice).await.doing(|| "make the EndpointSlice of kube-dns".to_owned())?;
    }
    Ok(())
}

async fn node_ready(cluster: &Cluster, client: &kube::Client) -> Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    until(Deadline::after(PATIENCE, format!("the node {} is Ready", cluster.name())), async || {
        cluster.still_runs(Component::Kubelet)?;
        let node = match nodes.get(cluster.name()).await {
            Ok(node) => node,
            Err(error) => return Ok(Err(error.to_string())),
        };
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        Ok(match conditions.into_iter().find(|condition| condition.type_ == "Ready") {
            Some(ready) if ready.status == "True" => Ok(()),
            Some(ready) => Err(ready.message.unwrap_or_default()),
            None => Err("no Ready condition".to_owned()),
        })
    })
    .await
    .map_err(|error| cluster.with_log(Component::Kubelet, error))
}

/// The last to come up, and nothing else waits for it.
async fn dns_ready(cluster: &Cluster) -> Result<()> {
    let ask = "printf 'GET /ready HTTP/1.0\\r\\n\\r\\n' | socat -t 2 - TCP:127.0.0.1:8181 | grep -q '200 OK'";
    until(Deadline::after(PATIENCE, "CoreDNS is ready"), async || {
        for component in cluster.components() {
            cluster.still_runs(*component)?;
        }
        let machine = cluster.machine().clone();
        Ok(blocking(move || machine.shell(ask)).await?.map(drop).map_err(|error| error.to_string()))
    })
    .await
    .map_err(|error| cluster.with_log(Component::CoreDns, error))
}

/// No pod can be made in a namespace before its service account is there.
async fn default_account(client: &kube::Client) -> Result<()> {
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "default");
    until(Deadline::after(PATIENCE, "the default service account exists"), async || {
        Ok(accounts.get("default").await.map(drop).map_err(|error| error.to_string()))
    })
    .await
}

/// Runs something that waits for a process, off the runtime's own threads.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work).await.map_err(|error| {
        Error::refused(format!("a task of the lab broke off: {error}"), "this is a bug of the lab: report it")
    })
}
