//! `atoll lb credentials`: a kubeconfig for `atoll lb --hub` that may do no more than a balancer has to.

use std::time::Duration;

use atoll_lb_kube::role;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use crate::context::HubApi;
use crate::failure::Failure;
use crate::output;

/// Print a kubeconfig for `atoll lb --hub`.
///
/// Creates a ServiceAccount in the hub's API that may list and watch the `ConfigMaps` of the hub's namespace, and a token for it. Deleting the
/// ServiceAccount revokes the token.
#[derive(Args)]
#[command(after_help = "Examples:
  # Credentials of one balancer
  atoll lb credentials --name edge-1 > edge-1.kubeconfig

  # Revoke them
  kubectl delete serviceaccount -n atoll-system edge-1")]
pub(super) struct Credentials {
    #[command(flatten)]
    api: HubApi,
    /// Name of the ServiceAccount; one for each balancer can be revoked alone.
    #[arg(long, value_name = "NAME", default_value = role::ROLE)]
    name: String,
    /// How long the token lasts; the API may shorten it. A balancer whose token has ended keeps its last configuration.
    #[arg(long, value_name = "DURATION", default_value = "8760h", value_parser = atoll_duration::parse)]
    lifetime: Duration,
}

impl Credentials {
    pub(super) async fn run(&self) -> anyhow::Result<()> {
        let hub = self.api.find().await?;
        let (config, client) = (hub.config.clone(), hub.client()?);
        let granted = role::grant(client, &self.api.namespace, &self.name, self.lifetime).await;
        let granted = granted.map_err(|error| {
            let what = format!("cannot create the credentials of `{}`: {error}", self.name);
            Failure::plain(
                &what,
                "start the hub first, and use a kubeconfig that may create roles and tokens there",
            )
            .at(&hub.place.shown())
        })?;
        if let Some(ends) = &granted.ends {
            eprintln!("the token of {}/{} ends at {ends}", self.api.namespace, self.name);
        }
        output::yaml(&kubeconfig(&config, &self.api.namespace, granted.token))
    }
}

/// The same API, by the token alone.
fn kubeconfig(config: &kube::Config, namespace: &str, token: String) -> Kubeconfig {
    const NAME: &str = "hub";
    let authorities = config.root_cert.iter().flatten().map(|der| {
        let lines: Vec<String> = STANDARD.encode(der).as_bytes().chunks(64).map(text).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    });
    let authorities: String = authorities.collect();
    let cluster = Cluster {
        server: Some(config.cluster_url.to_string()),
        tls_server_name: config.tls_server_name.clone(),
        certificate_authority_data: (!authorities.is_empty()).then(|| STANDARD.encode(&authorities)),
        proxy_url: config.proxy_url.as_ref().map(ToString::to_string),
        ..Cluster::default()
    };
    let user = AuthInfo { token: Some(token.into()), ..AuthInfo::default() };
    let context = Context {
        cluster: NAME.to_owned(),
        user: Some(NAME.to_owned()),
        namespace: Some(namespace.to_owned()),
        ..Context::default()
    };
    let name = || NAME.to_owned();
    Kubeconfig {
        clusters: vec![NamedCluster { name: name(), cluster: Some(cluster), ..NamedCluster::default() }],
        auth_infos: vec![NamedAuthInfo { name: name(), auth_info: Some(user), ..NamedAuthInfo::default() }],
        contexts: vec![NamedContext { name: name(), context: Some(context), ..NamedContext::default() }],
        current_context: Some(name()),
        ..Kubeconfig::default()
    }
}

fn text(part: &[u8]) -> String {
    String::from_utf8_lossy(part).into_owned()
}
