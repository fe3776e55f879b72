//! Names of the clusterset in the lab: `atoll dns` beside each cluster's CoreDNS, or CoreDNS's own option.

use crate::boot::blocking;
use crate::cluster::Cluster;
use crate::clusterset::Atoll;
use crate::command::{failure, stdout_of};
use crate::config::{self, Access};
use crate::error::{Doing, Error, Result};
use crate::lab::Lab;
use crate::layout::{read, write_private};
use crate::process::Process;
use crate::until::{Deadline, until};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use serde_json::json;
use std::time::Duration;

/// The zone of the clusterset.
pub const ZONE: &str = "clusterset.local";
/// The port of `atoll dns` on a node.
pub const PORT: u16 = 8053;
/// The port of its health and metrics, on the node's loopback.
pub const METRICS_PORT: u16 = 9153;
/// The namespace of the product in a member.
const SYSTEM: &str = "atoll-system";
/// How long a server may take to start, or CoreDNS to read a new configuration.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who answers names of the clusterset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resolver {
    /// `atoll dns`, and CoreDNS forwards to it.
    Atoll,
    /// CoreDNS, with its option `multicluster`.
    Multicluster,
}

impl Cluster {
    /// CoreDNS's configuration as it is now.
    pub fn corefile(&self) -> Result<String> {
        read(&self.dir().join("Corefile"))
    }

    /// Gives CoreDNS another configuration; it reads it within seconds.
    pub fn write_corefile(&self, text: &str) -> Result<()> {
        write_private(&self.dir().join("Corefile"), text)
    }

    /// Gives CoreDNS the configuration that it had at the start.
    pub fn reset_corefile(&self) -> Result<()> {
        self.write_corefile(&config::corefile(self.dir(), self.name(), &self.addresses()))
    }

    /// The Corefile as the cluster's `ConfigMap` has it.
    pub async fn offered_corefile(&self) -> Result<String> {
        let maps: Api<ConfigMap> = Api::namespaced(self.client().await?, "kube-system");
        let map = maps.get("coredns").await.doing(|| "read CoreDNS's ConfigMap".to_owned())?;
        Ok(map.data.unwrap_or_default().remove("Corefile").unwrap_or_default())
    }

    /// Runs `dig` on the node and returns what it printed.
    pub async fn dig(&self, arguments: &str) -> Result<String> {
        let mut dig = self.machine().command("dig");
        dig.args(arguments.split_whitespace());
        blocking(move || stdout_of(&mut dig)).await?
    }

    /// Runs `dig` on the node against `atoll dns` itself.
    pub async fn dig_atoll(&self, arguments: &str) -> Result<String> {
        self.dig(&format!("@{} -p {PORT} {arguments}", self.addresses().node().v4)).await
    }

    /// Lets CoreDNS itself serve the zone, and waits until it does.
    pub async fn use_multicluster(&self) -> Result<()> {
        let plain = config::corefile(self.dir(), self.name(), &self.addresses());
        self.write_corefile(&config::with_multicluster(&plain, ZONE))?;
        // It calls its schema the one of cluster.local.
        self.schema_version_is("\"1.1.0\"").await
    }

    /// Waits until CoreDNS says that names of the clusterset follow this schema.
    async fn schema_version_is(&self, want: &str) -> Result<()> {
        let ask = format!("@{} +short +tries=1 +time=1 TXT dns-version.{ZONE}", self.addresses().node().v4);
        until(Deadline::after(PATIENCE, format!("CoreDNS of {} serves {ZONE}", self.name())), async || {
            Ok(match self.dig(&ask).await {
                Ok(said) if said.trim() == want => Ok(()),
                Ok(said) => Err(said),
                Err(error) => Err(error.to_string()),
            })
        })
        .await
    }

    /// A page of `atoll dns` on this cluster's node: `/metrics`, say.
    pub async fn dns_page(&self, path: &str) -> Result<String> {
        let request = format!("GET {path} HTTP/1.0\\r\\n\\r\\n");
        let script = format!("printf '{request}' | socat -t 2 - TCP:127.0.0.1:{METRICS_PORT}");
        let machine = self.machine().clone();
        blocking(move || machine.shell(&script)).await?
    }
}

impl Atoll {
    /// Runs `atoll dns` on the node of `cluster`, with the rights that the product's manifests give it and no others, and waits until
    /// it has listed what there is.
    pub async fn start_dns(&self, cluster: &Cluster) -> Result<Process> {
        let manifests = self.must_alone(&["dns", "manifest", "--image", "none", "--replicas", "0"]).await?;
        cluster.apply_text(&String::from_utf8_lossy(&manifests.stdout)).await?;
        let mut kubectl = cluster.kubectl();
        kubectl.args(["-n", SYSTEM, "create", "token", "atoll-dns", "--duration=24h"]);
        let output = kubectl.output().await.doing(|| "run kubectl create token".to_owned())?;
        if !output.status.success() {
            return Err(failure("kubectl create token".to_owned(), &output));
        }
        let token = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let kubeconfig = cluster.dir().join("atoll-dns.kubeconfig");
        write_private(&kubeconfig, config::kubeconfig(&[Access { token: &token, ..cluster.access() }]))?;
        self.restart_dns(cluster).await
    }

    /// Runs `atoll dns` with the credentials of before.
    pub async fn restart_dns(&self, cluster: &Cluster) -> Result<Process> {
        let node = cluster.addresses().node();
        let argv = [
            self.binary().display().to_string(),
            "dns".to_owned(),
            format!("--kubeconfig={}", cluster.dir().join("atoll-dns.kubeconfig").display()),
            format!("--listen={}:{PORT}", node.v4),
            format!("--listen=[{}]:{PORT}", node.v6),
            format!("--metrics-address=127.0.0.1:{METRICS_PORT}"),
        ];
        let process = cluster.machine().spawn("atoll-dns", &argv)?;
        until(Deadline::after(PATIENCE, format!("atoll dns in {} is ready", cluster.name())), async || {
            if !process.alive() {
                return Err(Error::refused(
                    format!("atoll dns in {} has ended", cluster.name()),
                    "its log is atoll-dns.log",
                ));
            }
            Ok(match cluster.dns_page("/readyz").await {
                Ok(page) if page.contains("200 OK") => Ok(()),
                Ok(page) => Err(page),
                Err(error) => Err(error.to_string()),
            })
        })
        .await?;
        Ok(process)
    }

    /// Leads CoreDNS of `cluster` to `atoll dns` on its node, by the product's own command. The Service of the manifests has no pods
    /// here: a slice made by hand leads to the node.
    pub async fn set_up_coredns(&self, cluster: &Cluster) -> Result<()> {
        let ports = json!([{"name": "dns", "protocol": "UDP", "port": PORT}, {"name": "dns-tcp", "protocol": "TCP", "port": PORT}]);
        let slices = ["IPv4", "IPv6"].into_iter().zip(cluster.addresses().node().both()).map(|(family, node)| {
            json!({
                "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": {
                    "name": format!("atoll-dns-{}", family.to_lowercase()), "namespace": SYSTEM,
                    "labels": {"kubernetes.io/service-name": "atoll-dns", "endpointslice.kubernetes.io/managed-by": "lab"},
                },
                "addressType": family, "ports": ports,
                "endpoints": [{"addresses": [node], "conditions": {"ready": true}}],
            })
        });
        cluster.apply(&slices.collect::<Vec<_>>()).await?;
        self.offer_corefile(cluster).await?;
        self.must_on(cluster, &["dns", "setup", "--apply"]).await?;
        cluster.write_corefile(&cluster.offered_corefile().await?)?;
        cluster.schema_version_is("\"1.0.0\"").await
    }

    /// Puts the Corefile where clusters usually have it: in the lab, CoreDNS reads a file.
    async fn offer_corefile(&self, cluster: &Cluster) -> Result<()> {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "coredns", "namespace": "kube-system"},
            "data": {"Corefile": cluster.corefile()?},
        });
        cluster.apply(&[map]).await
    }
}

impl Lab {
    /// Lets names of the clusterset be answered in every cluster. Returns the servers that it took.
    pub async fn clusterset_names(&self, atoll: &Atoll, resolver: Resolver) -> Result<Vec<Process>> {
        let mut servers = Vec::new();
        for cluster in self.clusters() {
            match resolver {
                Resolver::Atoll => {
                    servers.push(atoll.start_dns(cluster).await?);
                    atoll.set_up_coredns(cluster).await?;
                }
                Resolver::Multicluster => cluster.use_multicluster().await?,
            }
        }
        Ok(servers)
    }
}
