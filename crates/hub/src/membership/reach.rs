//! The way into a member for a person: by the credentials that the hub holds for it, if that person may read them.

use atoll_api::names::kind::cluster;
use atoll_api::types::Cluster;
use atoll_api::types::cluster::SyncMode;
use atoll_engine::names::ClusterId;
use k8s_openapi::api::core::v1::Secret;
use kube::api::ListParams;
use kube::{Api, Client, ResourceExt};

use crate::membership::connect::{self, code};
use crate::membership::credentials;
use crate::membership::watch;

/// A member that can't be reached from here.
#[derive(Debug, thiserror::Error)]
pub enum ReachError {
    /// There is no such member.
    #[error("the hub has no such member")]
    NoSuchMember {
        /// Those that it has, as far as this user may know.
        known: Vec<String>,
    },
    /// This user may not look at members.
    #[error("this user may not list the hub's members")]
    MayNotLook(String),
    /// This user may not read the credentials.
    #[error("this user may not read the hub's credentials for this member")]
    MayNotRead {
        /// Where they are: namespace and name of a Secret.
        secret: (String, String),
        /// What the hub's API said.
        said: String,
    },
    /// The hub does not reach it either: an agent in the member does the work.
    #[error("the member is in pull mode, so the hub has no credentials for it")]
    Pull,
    /// Its `Cluster`, or its Secret, lacks something.
    #[error("its Cluster in the hub is incomplete")]
    Incomplete(String),
    /// The hub's API does not answer.
    #[error("the hub's API does not answer")]
    Hub(#[source] Box<kube::Error>),
}

impl ReachError {
    /// Why.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::NoSuchMember { known } if known.is_empty() => None,
            Self::NoSuchMember { known } => Some(format!("its members are {}", known.join(", "))),
            Self::MayNotLook(said) | Self::MayNotRead { said, .. } => Some(said.clone()),
            Self::Pull => None,
            Self::Incomplete(why) => Some(why.clone()),
            Self::Hub(error) => Some(connect::why(error)),
        }
    }

    /// What to do about it.
    pub fn hint(&self, name: &str) -> String {
        match self {
            Self::NoSuchMember { .. } => {
                "list the members with `atoll clusters`; select the hub with --kubeconfig and --context"
                    .to_owned()
            }
            Self::MayNotLook(_) => {
                let (plural, group) = (cluster::CLUSTERS, cluster::GROUP);
                format!("ask an administrator of the hub for the right to get {plural}.{group}")
            }
            Self::MayNotRead { secret: (namespace, secret), .. } => format!(
                "ask an administrator of the hub for the right to get the Secret `{secret}` in the namespace `{namespace}`, or use a kubeconfig of `{name}` itself, with --kubeconfig and without -C"
            ),
            Self::Pull => format!("use a kubeconfig of `{name}` itself, with --kubeconfig and without -C"),
            Self::Incomplete(_) => {
                format!(
                    "run `atoll join {name} --cluster-kubeconfig FILE` again, with the flags it was joined with"
                )
            }
            Self::Hub(_) => {
                "check --kubeconfig and --context, and that the hub's API is reachable from this host"
                    .to_owned()
            }
        }
    }
}

/// How a member is reached, as the hub reaches it.
///
/// # Errors
/// Where there is no such member, or its credentials can't be read.
pub async fn member(hub: &Client, name: &str) -> Result<kube::Config, ReachError> {
    let clusters: Api<Cluster> = Api::all(hub.clone());
    let cluster = match clusters.get(name).await {
        Ok(cluster) => cluster,
        Err(error) => {
            return Err(match code(&error) {
                Some(404) => ReachError::NoSuchMember { known: known(&clusters).await },
                Some(401 | 403) => ReachError::MayNotLook(connect::why(&error)),
                _ => ReachError::Hub(Box::new(error)),
            });
        }
    };
    let spec = &cluster.spec;
    if spec.sync_mode == SyncMode::Pull {
        return Err(ReachError::Pull);
    }
    let lacks = |what: &str| ReachError::Incomplete(format!("its Cluster has no {what}"));
    let at = spec.secret_ref.clone().ok_or_else(|| lacks("spec.secretRef"))?;
    let secret = match Api::<Secret>::namespaced(hub.clone(), &at.namespace).get(&at.name).await {
        Ok(secret) => secret,
        Err(error) => {
            return Err(match code(&error) {
                Some(404) => ReachError::Incomplete(format!(
                    "the Secret `{}` does not exist in the namespace `{}`",
                    at.name, at.namespace
                )),
                Some(401 | 403) => {
                    ReachError::MayNotRead { secret: (at.namespace, at.name), said: connect::why(&error) }
                }
                _ => ReachError::Hub(Box::new(error)),
            });
        }
    };
    let id = ClusterId::parse(name).map_err(|error| ReachError::Incomplete(error.to_string()))?;
    let credentials = credentials::read(&secret)
        .ok_or_else(|| ReachError::Incomplete(format!("the Secret `{}` has no key token", at.name)))?;
    // As the hub judges it: what a `Cluster` says must not lead a token elsewhere.
    let wanted = watch::wanted(&cluster, &at.namespace);
    let link = credentials::link(&id, &wanted, &at.name, &credentials, false)
        .map_err(|why| ReachError::Incomplete(why.health(&id).why().to_owned()))?;
    connect::with_token(&link).map_err(|error| ReachError::Incomplete(error.to_string()))
}

async fn known(clusters: &Api<Cluster>) -> Vec<String> {
    let listed = clusters.list(&ListParams::default()).await;
    listed.map(|list| list.items.iter().map(ResourceExt::name_any).collect()).unwrap_or_default()
}
