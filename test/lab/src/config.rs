//! The text of each configuration file of a cluster. Pure: settings in, text out.

use crate::addresses::ClusterAddresses;
use crate::image::PAUSE;
use k8s_openapi::ByteString;
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::path::Path;

/// A way into a cluster.
pub(crate) struct Access<'a> {
    /// Also the name of the context.
    pub(crate) name: &'a str,
    pub(crate) server: String,
    pub(crate) ca: &'a str,
    pub(crate) token: &'a str,
}

/// A kubeconfig with one context per way in; the first is the current one.
pub(crate) fn kubeconfig(ways: &[Access<'_>]) -> String {
    let list = |make: fn(&Access<'_>) -> Value| Value::Array(ways.iter().map(make).collect());
    let value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": list(|way| json!({
            "name": way.name,
            "cluster": {
                "server": way.server,
                "certificate-authority-data": ByteString(way.ca.as_bytes().to_vec()),
            },
        })),
        "users": list(|way| json!({"name": way.name, "user": {"token": way.token}})),
        "contexts": list(|way| json!({
            "name": way.name, "context": {"cluster": way.name, "user": way.name},
        })),
        "current-context": ways.first().map_or("", |way| way.name),
    });
    serde_saphyr::to_string(&value).expect("plain maps and strings always serialize")
}

/// Records every request but the reads and leases of the cluster's own machinery.
pub(crate) fn audit_policy() -> &'static str {
    "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  nonResourceURLs: ['/healthz*', '/livez*', '/readyz*', '/openapi*', '/metrics']
- level: None
  users: ['system:apiserver', 'lab:kubelet', 'lab:coredns', 'system:kube-proxy', 'system:kube-scheduler',
    'system:kube-controller-manager']
  verbs: [get, list, watch]
- level: None
  resources: [{group: coordination.k8s.io, resources: [leases]}]
  users: ['system:apiserver', 'lab:kubelet']
- level: Metadata
"
}

/// containerd, with every path its own.
pub(crate) fn containerd(dir: &Path) -> String {
    let dir = dir.display();
    format!(
        r#"version = 2
root = "{dir}/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "{dir}/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  disable_tcp_service = true
  # Without it runc fails where CAP_SYS_RESOURCE is missing: "can't get final child's PID from pipe".
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#
    )
}

/// A bridge for the node's pods, both families, and host ports.
pub(crate) fn cni(addresses: &ClusterAddresses) -> String {
    let pods = addresses.pods();
    let list = json!({
        "cniVersion": "0.4.0",
        "name": "pods",
        "plugins": [
            {
                "type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true, "ipMasq": false,
                "ipam": {
                    "type": "host-local",
                    "ranges": [[{"subnet": pods.v4}], [{"subnet": pods.v6}]],
                    "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
                    "dataDir": "/run/cni-addresses",
                },
            },
            {"type": "portmap", "capabilities": {"portMappings": true}},
        ],
    });
    format!("{list:#}\n")
}

/// The kubelet's configuration. Limits and evictions are off: the host is shared.
pub(crate) fn kubelet(dir: &Path, dns: Ipv4Addr) -> String {
    let value = json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "authentication": {
            "anonymous": {"enabled": false},
            "webhook": {"enabled": false},
            "x509": {"clientCAFile": dir.join("pki/ca.crt")},
        },
        "authorization": {"mode": "AlwaysAllow"},
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "cgroupDriver": "cgroupfs",
        "cgroupsPerQOS": false,
        "enforceNodeAllocatable": [],
        "failCgroupV1": false,
        "failSwapOn": false,
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "resolvConf": "",
        "clusterDNS": [dns],
        "clusterDomain": "cluster.local",
        "maxPods": 250,
        "podLogsDir": dir.join("pods"),
        "volumePluginDir": dir.join("volume-plugins"),
        // A pod's change of readiness should be on its way at once, not at the next tick.
        "nodeStatusUpdateFrequency": "5s",
    });
    format!("{value:#}\n")
}

/// kube-proxy's configuration.
pub(crate) fn kube_proxy(dir: &Path, name: &str, addresses: &ClusterAddresses) -> String {
    let value = json!({
        "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
        "kind": "KubeProxyConfiguration",
        "mode": "nftables",
        "clientConnection": {"kubeconfig": dir.join("proxy.kubeconfig")},
        "clusterCIDR": addresses.pods().joined(),
        "hostnameOverride": name,
        "conntrack": {"maxPerCore": 0},
        "nftables": {"minSyncPeriod": "0s"},
    });
    format!("{value:#}\n")
}

/// CoreDNS's configuration. It is re-read every two seconds, so a test may change it.
pub(crate) fn corefile(dir: &Path, name: &str, addresses: &ClusterAddresses) -> String {
    let node = addresses.node();
    format!(
        ".:53 {{
    bind {v4} {v6}
    errors
    ready 127.0.0.1:8181
    kubernetes cluster.local in-addr.arpa ip6.arpa {{
        kubeconfig {kubeconfig} {name}
        pods insecure
        ttl 5
    }}
    reload 2s 1s
}}
",
        v4 = node.v4,
        v6 = node.v6,
        kubeconfig = dir.join("dns.kubeconfig").display(),
    )
}

/// A Corefile in which CoreDNS itself serves `zone`, from what the cluster imports.
pub(crate) fn with_multicluster(corefile: &str, zone: &str) -> String {
    let served = corefile.replace("kubernetes cluster.local ", &format!("kubernetes cluster.local {zone} "));
    served
        .replace("        pods insecure\n", &format!("        pods insecure\n        multicluster {zone}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_multicluster_option_comes_with_its_zone() {
        let addresses = ClusterAddresses { slot: 0, number: 1 };
        let plain = corefile(Path::new("/lab"), "member1", &addresses);
        let text = with_multicluster(&plain, "clusterset.local");
        for line in [
            "kubernetes cluster.local clusterset.local in-addr.arpa",
            "        multicluster clusterset.local\n",
        ] {
            assert!(text.contains(line) && !plain.contains(line), "{line} in {text}");
        }
    }

    #[test]
    fn kube_reads_the_kubeconfig_back() {
        let way = |name, ca, token| Access { name, server: "https://10.200.0.1:6443".into(), ca, token };
        let text = kubeconfig(&[way("member1", "CA1", "token1"), way("member2", "CA2", "token2")]);
        let read = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        let contexts: Vec<_> = read.contexts.iter().map(|context| context.name.as_str()).collect();
        assert_eq!(contexts, ["member1", "member2"]);
        assert_eq!(read.current_context.as_deref(), Some("member1"));
    }
}
