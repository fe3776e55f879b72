//! What the commands print: text for people, JSON and YAML for programs.

use atoll_lab::Place;
use clap::ValueEnum;
use serde::Serialize;
use std::fmt::Write;

#[derive(Clone, Copy, ValueEnum)]
pub(super) enum Format {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For programs and people.
    Yaml,
}

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
    let lab = super::running(name)?;
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
        name: Place::name(bystander.place()).to_owned(),
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

impl Format {
    pub(super) fn print(self, status: &LabStatus) -> anyhow::Result<()> {
        self.print_as(status, LabStatus::text)
    }

    pub(super) fn print_bench(self, results: &[super::bench::Result]) -> anyhow::Result<()> {
        self.print_as(results, |results| results.iter().map(super::bench::Result::text).collect())
    }

    pub(super) fn print_propagation(self, report: &atoll_bench::Report) -> anyhow::Result<()> {
        self.print_as(report, ToString::to_string)
    }

    pub(super) fn print_policies(self, report: &atoll_bench::policies::report::Report) -> anyhow::Result<()> {
        self.print_as(report, ToString::to_string)
    }

    pub(super) fn print_dns(self, report: &super::dns::Report) -> anyhow::Result<()> {
        self.print_as(report, super::dns::Report::text)
    }

    pub(super) fn print_api(self, report: &atoll_bench::api::Report) -> anyhow::Result<()> {
        self.print_as(report, ToString::to_string)
    }

    pub(super) fn print_lb(self, report: &super::lb::Report) -> anyhow::Result<()> {
        self.print_as(report, super::lb::Report::text)
    }

    fn print_as<T: Serialize + ?Sized>(
        self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = match self {
            Self::Text => text(value),
            Self::Json => format!("{}\n", serde_json::to_string_pretty(value)?),
            Self::Yaml => serde_saphyr::to_string(&value)?,
        };
        match std::io::Write::write_all(&mut std::io::stdout(), text.as_bytes()) {
            // Whoever reads has read enough.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
            outcome => Ok(outcome?),
        }
    }
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
