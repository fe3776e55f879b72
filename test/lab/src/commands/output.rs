//! What the commands print: text for people, JSON and YAML for programs.

use atoll_lab::Machine;
use atoll_lab::cli::{Format, running};
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LabStatus {
    pub(super) name: String,
    pub(super) kubeconfig: String,
    pub(super) clusters: Vec<ClusterStatus>,
    pub(super) bystanders: Vec<BystanderStatus>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ClusterStatus {
    /// Also the kubeconfig's context.
    pub(super) name: String,
    server: String,
    pods: String,
    services: String,
    components: Vec<ComponentStatus>,
}

#[derive(Serialize)]
struct ComponentStatus {
    name: &'static str,
    state: &'static str,
    pid: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BystanderStatus {
    name: String,
    address: String,
}

/// The state of the lab called `name`.
pub(super) fn status(name: &str) -> anyhow::Result<LabStatus> {
    let lab = running(name)?;
    let clusters = lab.clusters().iter().map(|cluster| ClusterStatus {
        name: cluster.name().to_owned(),
        server: cluster.server(),
        pods: cluster.addresses().pods().joined(),
        services: cluster.addresses().services().joined(),
        components: cluster
            .components()
            .iter()
            .map(|component| component_status(cluster, *component))
            .collect(),
    });
    let bystanders = lab.bystanders().iter().map(|bystander| BystanderStatus {
        name: Machine::name(bystander.machine()).to_owned(),
        address: bystander.addresses().v4.to_string(),
    });
    Ok(LabStatus {
        name: name.to_owned(),
        kubeconfig: lab.layout().kubeconfig().display().to_string(),
        clusters: clusters.collect(),
        bystanders: bystanders.collect(),
    })
}

fn component_status(cluster: &atoll_lab::Cluster, component: atoll_lab::Component) -> ComponentStatus {
    let process = cluster.process(component);
    let state = match &process {
        None => "ended",
        Some(process) if process.frozen() => "frozen",
        Some(_) => "runs",
    };
    ComponentStatus { name: component.name(), state, pid: process.map(|process| process.pid()) }
}

/// Prints the state of a lab.
pub(super) fn print(format: Format, status: &LabStatus) -> std::io::Result<()> {
    format.print(status, LabStatus::text)
}

impl LabStatus {
    fn text(&self) -> String {
        let mut text = format!("kubeconfig  {}\n", self.kubeconfig);
        for cluster in &self.clusters {
            let _ = writeln!(text, "{:<10}  {}  pods {}", cluster.name, cluster.server, cluster.pods);
            for component in cluster.components.iter().filter(|component| component.state != "runs") {
                let _ = writeln!(text, "            {} {}", component.name, component.state);
            }
        }
        for bystander in &self.bystanders {
            let _ = writeln!(text, "{:<10}  {}  outside all clusters", bystander.name, bystander.address);
        }
        text
    }
}
