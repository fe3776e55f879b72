//! `atoll join`: joins a cluster to the clusterset.

use std::path::PathBuf;
use std::time::Duration;

use atoll_hub::join::{JoinError, Joined, Location, Propagation, Regrant, Request, regrant};
use atoll_hub::networks::{self, Networks, Ranges};
use clap::Args;
use ipnet::IpNet;

use crate::context::HubApi;
use crate::failure::Failure;
use crate::{logs, plugin, progress, signals};

/// Join a cluster to the clusterset.
///
/// If the join fails or is interrupted, its changes are rolled back.
#[derive(Args)]
#[command(after_help = "Examples:
  # Join a cluster
  atoll join paris --cluster-kubeconfig paris.yaml

  # Let policies copy some kinds of objects to it
  atoll join paris --cluster-kubeconfig paris.yaml \\
    --allow-propagation=deployments.apps,services,configmaps

  # Use contexts of one kubeconfig for the hub and the member
  atoll join tokyo --cluster-kubeconfig all.yaml --cluster-context tokyo \\
    --kubeconfig all.yaml --context hub

  # Declare the networks of a cluster whose API does not show them
  atoll join lab --cluster-kubeconfig lab.yaml \\
    --pod-cidr 10.7.0.0/16 --service-cidr 10.107.0.0/16")]
pub(crate) struct Join {
    /// Name of the member: a DNS label of at most 48 characters. It is also the cluster ID and cannot be changed.
    name: String,
    /// Kubeconfig of the cluster, with administrator rights. The hub gets its own account with fewer rights.
    #[arg(long, value_name = "FILE")]
    cluster_kubeconfig: PathBuf,
    /// Context in the kubeconfig of the cluster [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    cluster_context: Option<String>,
    #[command(flatten)]
    hub: HubApi,
    /// Name of the clusterset; only the first member can set it.
    #[arg(long, value_name = "NAME")]
    clusterset: Option<String>,
    /// Pod network [default: read from the cluster once, now]. Endpoints outside of the pod and node networks are not exported. Can be
    /// repeated.
    #[arg(long = "pod-cidr", value_name = "CIDR", value_parser = networks::range)]
    pods: Vec<IpNet>,
    /// Network of the nodes, such as those that an autoscaler adds [default: the addresses of the nodes now]. Can be repeated.
    #[arg(long = "node-cidr", value_name = "CIDR", value_parser = networks::range)]
    nodes: Vec<IpNet>,
    /// Service network, if the cluster's API does not show it. Can be repeated.
    #[arg(long = "service-cidr", value_name = "CIDR", value_parser = networks::range)]
    services: Vec<IpNet>,
    /// Part of 127.0.0.0/8 whose endpoints are exported. Can be repeated.
    #[arg(long = "endpoint-cidr", value_name = "CIDR", value_parser = networks::range)]
    endpoints: Vec<IpNet>,
    /// Join even if pod or service networks overlap with those of another member.
    #[arg(long)]
    allow_overlap: bool,
    /// URL that the hub uses for the cluster's API [default: that of the kubeconfig].
    #[arg(long, value_name = "URL")]
    api_endpoint: Option<String>,
    /// Cloud provider of the cluster.
    #[arg(long = "cluster-provider", value_name = "NAME")]
    provider: Option<String>,
    /// Region of the cluster.
    #[arg(long = "cluster-region", value_name = "NAME")]
    region: Option<String>,
    /// Zone of the cluster. Can be repeated.
    #[arg(long = "cluster-zone", value_name = "NAME")]
    zones: Vec<String>,
    /// Join although the kubeconfig skips the check of the API server's certificate. The hub needs --allow-insecure-members.
    #[arg(long)]
    allow_insecure: bool,
    /// How long the hub's token for the cluster lasts, at least 10m. The hub renews it at half of that.
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = atoll_duration::parse)]
    token_lifetime: Duration,
    /// System namespace (kube-…) that the hub may write services to. Can be repeated.
    #[arg(long = "allow-system-namespace", value_name = "NAME", value_parser = system_namespace)]
    system_namespaces: Vec<String>,
    /// Let policies copy objects to the cluster: of all kinds, or of a comma-separated list such as deployments.apps,configmaps. What
    /// an earlier join granted stays granted.
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "*", value_delimiter = ',')]
    allow_propagation: Option<Vec<String>>,
    /// Take away what an earlier join granted: all kinds, or a comma-separated list. With --allow-propagation, that is granted afterwards.
    #[arg(long, value_name = "KINDS", num_args = 0..=1, require_equals = true, default_missing_value = "*", value_delimiter = ',')]
    revoke_propagation: Option<Vec<String>>,
    /// Let a policy copy to the cluster only what users of its author's name and groups may create and update there. The hub asks the
    /// cluster's API and impersonates no user. To stop it, join again without this flag.
    #[arg(long)]
    check_authors: bool,
}

impl Join {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        logs::warnings_only();
        let name = self.name.clone();
        let asked = signals::shutdown()?;
        let mut request = self.request();
        request.check_names().map_err(|error| Failure::join(&name, &error))?;
        let member =
            atoll_hub::connect::config(Some(&self.cluster_kubeconfig), self.cluster_context.as_deref());
        let member = member.await.map_err(|error| Failure::join(&name, &error.into()))?;
        let hub = self.hub.find().await?;
        let failed = |error: &JoinError| Failure::join(&name, error).at(&hub.place.shown());
        eprintln!("joining `{name}` ({}) to the hub {}", member.cluster_url, hub.place.shown());
        let admin = atoll_hub::connect::client(member.clone()).map_err(|error| failed(&error.into()))?;
        let (client, namespace) = (hub.client()?, &self.hub.namespace);
        let before = Box::pin(atoll_hub::join::granted(&client, &admin, namespace));
        let before = progress::announce_if_slow("waiting for the API of the cluster or of the hub", before);
        let before = before.await.map_err(|error| failed(&error))?;
        let revoke = self.revoke_propagation.clone().unwrap_or_default();
        let change = regrant(&before, &revoke, &self.allow_propagation.clone().unwrap_or_default());
        check_revoked(&before, &revoke)?;
        request.propagation = change.after.clone();
        let joining = progress::announce_if_slow(
            "checking both sides, then writing rights, properties and the Cluster",
            Box::pin(atoll_hub::join::join(client, member, &request, asked)),
        );
        let joined = joining.await.map_err(|error| failed(&error))?;
        if let Some(overlap) = &joined.tolerated {
            eprintln!(
                "warning: {overlap}; traffic to addresses in both networks may reach the wrong cluster"
            );
        }
        if let Some(other) = &joined.same_uid {
            eprintln!(
                "warning: member `{other}` has the same kube-system UID, and is another cluster: one of them is a copy, or does not tell the truth"
            );
        }
        granted(&name, &change);
        if !joined.fenced {
            eprintln!(
                "warning: the cluster does not serve ValidatingAdmissionPolicy (Kubernetes 1.30 or later): whoever steals the hub's token can change every Service and EndpointSlice there"
            );
        }
        if joined.system_roots {
            eprintln!(
                "note: the kubeconfig has no CA, so the hub checks the API server's certificate against the root certificates of its host"
            );
        }
        let again = if joined.again { " again; its credentials were renewed" } else { "" };
        eprintln!("`{}` joined the clusterset `{}`{again}", joined.cluster, joined.clusterset);
        eprintln!(
            "the hub's token expires at {}; a running hub renews it before, and `atoll cluster revoke {name}` revokes it",
            joined.token_expires
        );
        for line in shown(&joined) {
            eprintln!("{line}");
        }
        let program = plugin::name();
        eprintln!(
            "next: `{program} clusters` shows when it is ready; export a Service with a ServiceExport of its name, then `{program} explain NAMESPACE/NAME`"
        );
        Ok(())
    }

    fn request(&self) -> Request {
        let ranges = |list: &[IpNet]| Ranges(list.iter().copied().collect());
        Request {
            name: self.name.clone(),
            namespace: self.hub.namespace.clone(),
            clusterset: self.clusterset.clone(),
            declared: Networks {
                pods: ranges(&self.pods),
                services: ranges(&self.services),
                nodes: ranges(&self.nodes),
            },
            endpoints: ranges(&self.endpoints),
            allow_overlap: self.allow_overlap,
            api_endpoint: self.api_endpoint.clone(),
            place: Location {
                provider: self.provider.clone(),
                region: self.region.clone(),
                zones: self.zones.clone(),
            },
            propagation: Propagation::Nothing,
            check_authors: self.check_authors,
            allow_insecure: self.allow_insecure,
            token_lifetime: self.token_lifetime,
            system_namespaces: self.system_namespaces.clone(),
        }
    }
}

/// A part of all kinds can't be taken away.
fn check_revoked(before: &Propagation, revoke: &[String]) -> Result<(), Failure> {
    let part = !revoke.is_empty() && !revoke.iter().any(|kind| kind == "*");
    if part && *before == Propagation::Everything {
        let what = "an earlier join granted all kinds, and some of them can't be taken away alone";
        return Err(Failure::usage(
            what,
            "use --revoke-propagation without kinds, and list what stays in --allow-propagation",
        ));
    }
    Ok(())
}

/// Says what is granted, and what changes.
fn granted(name: &str, change: &Regrant) {
    let propagation = &change.after;
    if !change.revoked.is_empty() {
        eprintln!(
            "revoked: the hub may no longer write objects of these kinds in `{name}`: {}",
            change.revoked.join(", ")
        );
    }
    if !change.kept.is_empty() {
        eprintln!(
            "kept from the earlier join: {}; to take it away, join again with --revoke-propagation",
            change.kept.join(", ")
        );
    }
    if propagation.is_everything() {
        eprintln!(
            "warning: the grant of {} gives the hub all rights in `{name}`, to Secrets and roles too; list only the kinds that policies copy, such as --revoke-propagation --allow-propagation=deployments.apps,configmaps",
            propagation.kinds()
        );
    } else if !propagation.kinds().is_empty() {
        eprintln!(
            "the hub may create, change and delete objects of these kinds in all namespaces of `{name}`: {}",
            propagation.kinds()
        );
    }
}

/// A namespace of Kubernetes' control plane.
fn system_namespace(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    match name.strip_prefix(atoll_api::names::namespace::KUBERNETES_PREFIX) {
        Some(rest) if !rest.is_empty() && name.len() <= 63 && name.chars().all(good) => Ok(name.to_owned()),
        Some(_) | None => Err("only namespaces such as kube-system need this flag".to_owned()),
    }
}

/// What was pinned of the cluster's networks, or why nothing was.
fn shown(joined: &Joined) -> Vec<String> {
    let how = |declared: &Ranges| if declared.0.is_empty() { "read from the cluster" } else { "declared" };
    let (networks, declared) = (&joined.networks, &joined.declared);
    let mut lines = Vec::new();
    let all = [
        ("pods", &networks.pods, &declared.pods),
        ("nodes", &networks.nodes, &declared.nodes),
        ("services", &networks.services, &declared.services),
    ];
    for (what, ranges, declared) in all.into_iter().filter(|(_, ranges, _)| !ranges.0.is_empty()) {
        lines.push(format!("{what}: {ranges} ({})", how(declared)));
    }
    if let Some(stray) = joined.stray.as_ref().filter(|_| networks.pods.0.is_empty()) {
        lines.push(format!("note: the pod networks that the cluster names do not contain its pod {stray}"));
    }
    lines.push(if networks.pods.0.is_empty() {
        "note: the pod network is unknown, so overlaps were not checked and the cluster can export any address that is not another member's; join again with --pod-cidr".to_owned()
    } else {
        "note: only endpoints in these networks of pods and nodes are exported; to add one, join again with --pod-cidr or --node-cidr".to_owned()
    });
    lines
}
