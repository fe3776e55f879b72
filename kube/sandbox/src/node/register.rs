//! The Node object. Written once per start: the node is there as long as its API is, so no heartbeat says so.

use super::status::time;
use crate::block::Block;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use kube::Client;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

/// Who writes it.
const MANAGER: &str = "atoll-sandbox";
/// As many pods as a kubelet takes.
const PODS: &str = "110";

pub(super) async fn register(
    client: &Client,
    name: &str,
    zone: &str,
    block: Block,
) -> Result<(), kube::Error> {
    let nodes: Api<Node> = Api::all(client.clone());
    let cidr = block.pod_cidr().to_string();
    let object = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": architecture(),
            "topology.kubernetes.io/zone": zone,
        }},
        "spec": {"podCIDR": cidr, "podCIDRs": [cidr]},
    });
    let apply = PatchParams::apply(MANAGER).force();
    nodes.patch(name, &apply, &Patch::Apply(&object)).await?;
    let now = time(Timestamp::now());
    let processors = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let capacity = json!({"cpu": processors, "memory": "8Gi", "pods": PODS, "ephemeral-storage": "100Gi"});
    let status = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name},
        "status": {
            "addresses": [
                {"type": "InternalIP", "address": block.api().ip().to_string()},
                {"type": "Hostname", "address": name},
            ],
            "capacity": capacity,
            "allocatable": capacity,
            "conditions": [{
                "type": "Ready", "status": "True", "reason": "SandboxReady",
                "message": "pods run as tasks and processes of this machine",
                "lastHeartbeatTime": now, "lastTransitionTime": now,
            }],
            "nodeInfo": {
                "architecture": architecture(), "operatingSystem": "linux",
                "bootID": "", "machineID": "", "systemUUID": "", "kernelVersion": "",
                "osImage": "Atoll sandbox", "containerRuntimeVersion": "sandbox://1",
                "kubeletVersion": "v1.36.4", "kubeProxyVersion": "",
            },
        },
    });
    nodes.patch_status(name, &apply, &Patch::Apply(&status)).await?;
    Ok(())
}

/// As Go names it.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
