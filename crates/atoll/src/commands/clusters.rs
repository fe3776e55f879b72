//! `atoll clusters`: lists the members.

use std::time::Duration;

use atoll_api::names::annotation::network;
use atoll_api::names::condition;
use atoll_api::types::Cluster;
use atoll_api::types::cluster::SyncMode;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::context::{FoundHub, HubApi};
use crate::failure::Failure;
use crate::{output, plugin, signals};

/// How often the hub is asked with `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// List the members and their status.
#[derive(Args)]
#[command(after_help = "Examples:
  # List the members
  atoll clusters

  # Show regions, endpoints, and why a member is not ready
  atoll clusters -o wide

  # Print the names only
  atoll clusters -o name

  # Print the list again whenever it changes
  atoll clusters --watch")]
pub(crate) struct Clusters {
    #[command(flatten)]
    hub: HubApi,
    /// Output format.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Table)]
    output: Format,
    /// Print the list again whenever it changes, until Ctrl-C.
    #[arg(short, long)]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Table.
    Table,
    /// Table with location, API endpoint and the reason of the Ready condition.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Names only.
    Name,
}

impl Clusters {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let hub = self.hub.find().await?;
        let api = Api::<Cluster>::all(hub.client()?);
        let listed = list(&hub, &api).await?;
        self.print(&hub, &listed)?;
        if !self.watch {
            return Ok(());
        }
        let ended = signals::shutdown()?;
        let mut ended = std::pin::pin!(ended);
        let mut last = self.shown(&listed)?;
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVERY) => {}
                () = &mut ended => return Ok(()),
            }
            let next = match list(&hub, &api).await {
                Ok(listed) => self.shown(&listed)?,
                Err(failure) => {
                    eprintln!("{failure}; trying again");
                    continue;
                }
            };
            if next.0 != last.0 {
                if !output::write_text(&format!("\n{}", next.1))? {
                    return Ok(());
                }
                last = next;
            }
        }
    }

    fn print(&self, hub: &FoundHub, clusters: &[Cluster]) -> anyhow::Result<()> {
        let table = matches!(self.output, Format::Table | Format::Wide);
        if table && clusters.is_empty() {
            eprintln!(
                "No members found in the hub {}. Join one with `{} join NAME --cluster-kubeconfig FILE`.",
                hub.place.shown(),
                plugin::name()
            );
            return Ok(());
        }
        let open: Vec<String> =
            clusters.iter().filter(|one| is_open(one)).map(ResourceExt::name_any).collect();
        if table && !open.is_empty() {
            eprintln!(
                "note: the pod networks of {} are not declared, so any address that is not another member's can be exported from there; see `atoll join --pod-cidr`",
                open.join(", ")
            );
        }
        output::text(&self.shown(clusters)?.1)
    }

    /// What has to change before it is shown again, and what is shown: ages grow by themselves.
    fn shown(&self, clusters: &[Cluster]) -> anyhow::Result<(String, String)> {
        let list = || json!({ "apiVersion": "v1", "kind": "List", "items": clusters });
        let text = match self.output {
            Format::Json => format!("{}\n", serde_json::to_string_pretty(&list())?),
            Format::Yaml => serde_saphyr::to_string(&list())?,
            Format::Name => clusters.iter().map(|one| format!("{}\n", one.name_any())).collect(),
            Format::Table | Format::Wide => {
                let wide = self.output == Format::Wide;
                let ageless = table(clusters, wide, Timestamp::UNIX_EPOCH);
                return Ok((ageless, table(clusters, wide, Timestamp::now())));
            }
        };
        Ok((text.clone(), text))
    }
}

/// The members of a hub.
async fn list(hub: &FoundHub, api: &Api<Cluster>) -> Result<Vec<Cluster>, Failure> {
    match api.list(&ListParams::default()).await {
        Ok(clusters) => Ok(clusters.items),
        Err(kube::Error::Api(status)) if status.code == 404 => Err(hub.place.no_hub(&hub.rest()?).await),
        Err(error) => Err(hub.place.failure("cannot list members", &error)),
    }
}

/// Whether the hub has said that it is not known where its endpoints may be.
fn is_open(cluster: &Cluster) -> bool {
    let conditions = cluster.status.iter().flat_map(|status| &status.conditions);
    let mut declared = conditions.filter(|one| one.type_ == condition::cluster::NETWORKS_DECLARED);
    declared.any(|one| one.status == "False")
}

/// The pod networks that count, as the hub counts them.
fn pods(cluster: &Cluster) -> Option<String> {
    let of = |key: &str| cluster.annotations().get(key).filter(|text| !text.is_empty()).cloned();
    let pinned = cluster.annotations().contains_key(network::OBSERVED_NODES);
    let observed = || of(network::OBSERVED_PODS).filter(|_| pinned);
    of(network::PODS).or_else(observed).or_else(|| of(network::LEARNT_PODS))
}

fn table(clusters: &[Cluster], wide: bool, now: Timestamp) -> String {
    let mut header = vec!["NAME", "VERSION", "MODE", "READY", "AGE"];
    if wide {
        header.extend(["ZONES", "REGION", "PROVIDER", "API-ENDPOINT", "POD-NETWORKS", "REASON"]);
    }
    let rows = clusters.iter().map(|cluster| row(cluster, wide, now));
    output::table(&header, &rows.collect::<Vec<_>>())
}

fn row(cluster: &Cluster, wide: bool, now: Timestamp) -> Vec<String> {
    let (spec, status) = (&cluster.spec, cluster.status.clone().unwrap_or_default());
    let ready = status.conditions.iter().find(|one| one.type_ == condition::cluster::READY);
    let leaving = cluster.metadata.deletion_timestamp.is_some();
    let or_none =
        |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "<none>".to_owned());
    let mode = match spec.sync_mode {
        SyncMode::Push => "Push",
        SyncMode::Pull => "Pull",
    };
    let age = cluster.creation_timestamp().map(|made| output::age(now.as_second() - made.0.as_second()));
    let mut row = vec![
        cluster.name_any(),
        or_none(status.kubernetes_version.clone()),
        mode.to_owned(),
        if leaving {
            "Leaving".to_owned()
        } else {
            ready.map_or_else(|| "Unknown".to_owned(), |one| one.status.clone())
        },
        or_none(age),
    ];
    if wide {
        row.push(or_none(Some(spec.zones.join(","))));
        row.push(or_none(spec.region.clone()));
        row.push(or_none(spec.provider.clone()));
        row.push(or_none(spec.api_endpoint.clone()));
        row.push(or_none(pods(cluster)));
        row.push(or_none(ready.map(|one| one.reason.clone())));
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_shows_who_is_ready_and_who_leaves() {
        let cluster = |name: &str, extra: serde_json::Value| -> Cluster {
            let mut object = json!({
                "apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
                "metadata": { "name": name, "creationTimestamp": "2026-01-01T00:00:00Z" },
                "spec": { "syncMode": "Push", "apiEndpoint": "https://10.0.0.1:6443" },
            });
            for (key, value) in extra.as_object().unwrap() {
                object[key] = value.clone();
            }
            serde_json::from_value(object).unwrap()
        };
        let ready = json!({ "status": { "kubernetesVersion": "v1.36.0", "conditions": [{
            "type": "Ready", "status": "True", "reason": "ClusterReady", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z" }] } });
        let clusters = [cluster("paris", ready), cluster("tokyo", json!({}))];
        let now = "2026-01-01T02:30:00Z".parse().unwrap();
        let want = "\
NAME    VERSION   MODE   READY     AGE
paris   v1.36.0   Push   True      150m
tokyo   <none>    Push   Unknown   150m
";
        assert_eq!(table(&clusters, false, now), want);
        assert!(
            table(&clusters, true, now)
                .lines()
                .next()
                .unwrap()
                .ends_with("API-ENDPOINT            POD-NETWORKS   REASON")
        );
    }
}
