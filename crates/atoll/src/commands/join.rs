//! `atoll join`: makes a cluster a member.

use std::path::PathBuf;

use atoll_hub::join::{Place, Propagation, Request};
use atoll_hub::networks::{Networks, Range, Ranges};
use clap::Args;

use crate::cli::HubApi;
use crate::failure::Failure;
use crate::{logs, patience, signals};

/// Make a cluster a member of the clusterset. If it can't be finished, or is interrupted, what this run made is taken away again.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll join paris --cluster-kubeconfig paris.yaml
  atoll join paris --cluster-kubeconfig paris.yaml --allow-propagation=deployments.apps,services,configmaps
  atoll join tokyo --cluster-kubeconfig all.yaml --cluster-context tokyo --context hub
  atoll join lab --cluster-kubeconfig lab.yaml --pod-cidr 10.7.0.0/16 --service-cidr 10.107.0.0/16")]
pub(crate) struct Join {
    /// The member's name: a DNS label of at most 48 characters. It is the cluster id, and does not change.
    name: String,
    /// The kubeconfig of the member, with an administrator's rights; the hub gets far less.
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: PathBuf,
    /// The context in it [default: its current one].
    #[arg(long, value_name = "CONTEXT")]
    cluster_context: Option<String>,
    #[command(flatten)]
    hub: HubApi,
    /// The name of the clusterset; only its first member can choose it.
    #[arg(long, value_name = "NAME")]
    clusterset: Option<String>,
    /// A pod network; endpoints outside of the declared ones and the nodes stay behind. Can be repeated.
    #[arg(long = "pod-cidr", value_name = "CIDR")]
    pods: Vec<Range>,
    /// A service network, where the member's API does not tell it. Can be repeated.
    #[arg(long = "service-cidr", value_name = "CIDR")]
    services: Vec<Range>,
    /// A range whose endpoints pass whatever they are, such as a part of 127.0.0.0/8. Can be repeated.
    #[arg(long = "endpoint-cidr", value_name = "CIDR")]
    endpoints: Vec<Range>,
    /// Join although pod or service networks overlap those of another member.
    #[arg(long)]
    allow_overlap: bool,
    /// The address under which the hub reaches the member's API [default: that of the kubeconfig].
    #[arg(long, value_name = "URL")]
    api_endpoint: Option<String>,
    /// The cloud provider.
    #[arg(long = "cluster-provider", value_name = "NAME")]
    provider: Option<String>,
    /// The region.
    #[arg(long = "cluster-region", value_name = "NAME")]
    region: Option<String>,
    /// A zone. Can be repeated.
    #[arg(long = "cluster-zone", value_name = "NAME")]
    zones: Vec<String>,
    /// Let policies bring objects to it: of every kind, or of these, such as deployments.apps,configmaps. A join without it takes that
    /// back.
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "*", value_delimiter = ',')]
    allow_propagation: Option<Vec<String>>,
}

impl Join {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::talk();
        let name = self.name.clone();
        let asked = signals::asked_to_end()?;
        let joining = patience::saying(
            "still joining: waiting for the API of the hub or of the member",
            Box::pin(self.join(asked)),
        );
        let joined = joining.await.map_err(|error| Failure::join(&name, &error))?;
        if let Some(overlap) = &joined.tolerated {
            eprintln!("warning: {overlap}; traffic to addresses that both have goes astray");
        }
        let again = if joined.again { " again, with new credentials" } else { "" };
        eprintln!("`{}` has joined the clusterset `{}`{again}", joined.cluster, joined.clusterset);
        if joined.networks.pods.0.is_empty() {
            eprintln!("note: its pod network is unknown, and was not compared with others; see --pod-cidr");
        }
        Ok(())
    }

    async fn join(
        self,
        interrupted: impl Future<Output = ()>,
    ) -> Result<atoll_hub::join::Joined, atoll_hub::join::JoinError> {
        let ranges = |list: Vec<Range>| Ranges(list.into_iter().collect());
        let request = Request {
            name: self.name,
            namespace: self.hub.namespace.clone(),
            clusterset: self.clusterset,
            declared: Networks { pods: ranges(self.pods), services: ranges(self.services) },
            endpoints: ranges(self.endpoints),
            allow_overlap: self.allow_overlap,
            api_endpoint: self.api_endpoint,
            place: Place { provider: self.provider, region: self.region, zones: self.zones },
            propagation: match self.allow_propagation {
                None => Propagation::Nothing,
                Some(kinds) if kinds.iter().any(|kind| kind == "*") => Propagation::Everything,
                Some(kinds) => Propagation::Kinds(kinds),
            },
        };
        request.check_names()?;
        let member =
            atoll_hub::connect::config(Some(&self.cluster_kubeconfig), self.cluster_context.as_deref());
        let member = member.await?;
        let hub = self.hub.client().await?;
        atoll_hub::join::join(hub, member, &request, interrupted).await
    }
}
