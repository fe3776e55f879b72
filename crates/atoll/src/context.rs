//! Which cluster a command is about: a kubeconfig and a context as in kubectl, or by its name a member of a hub or a cluster of
//! `atoll up`.
//!
//! ```text
//!   -C member1 ─▶ rule: which hub? ─┬─ a sandbox's ─▶ its kubeconfig, context member1
//!                                   └─ else ─▶ hub's API ─▶ Cluster member1 + its Secret ─▶ the member's API, with the hub's rights
//! ```

mod hub;
mod place;
mod rule;
pub(crate) mod sandbox;

use std::path::{Path, PathBuf};

use atoll_api::types::Cluster;
use atoll_hub::connect;
use atoll_hub::reach;
use clap::Args;
use clap_complete::ArgValueCandidates;
use kube::ResourceExt;
use kube::api::ListParams;

use crate::commands::up::HUB;
use crate::complete;
use crate::failure::Failure;

pub(crate) use hub::{FoundHub, HubApi, WhichHub};
use rule::Step;

/// Which API is asked, and which namespace of it; as in kubectl.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct Access {
    /// Kubeconfig; with -C, that of the hub [default: $KUBECONFIG, or ~/.kube/config].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Namespace [default: the context's].
    #[arg(short, long, value_name = "NAMESPACE", add = ArgValueCandidates::new(complete::namespaces))]
    pub(crate) namespace: Option<String>,
}

/// One cluster, by its kubeconfig or as a member.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct ClusterApi {
    #[command(flatten)]
    pub(crate) access: Access,
    /// Member, reached with the hub's credentials; or a cluster of `atoll up`, such as hub or member1.
    #[arg(short = 'C', long, value_name = "NAME", add = ArgValueCandidates::new(complete::clusters))]
    pub(crate) cluster: Option<String>,
}

/// A cluster, and how it is reached.
pub(crate) struct Reached {
    pub(crate) config: kube::Config,
    /// Its name, if it is reached with the credentials that the hub holds for it: what may be done is what the hub may do.
    pub(crate) as_hub: Option<String>,
}

impl ClusterApi {
    /// How to reach it; the namespace is the one that is meant.
    pub(crate) async fn reach(&self) -> Result<Reached, Failure> {
        self.access.cluster(self.cluster.as_deref()).await
    }
}

impl Access {
    /// The way to a cluster by its name, or to the one of the kubeconfig.
    pub(crate) async fn cluster(&self, name: Option<&str>) -> Result<Reached, Failure> {
        let mut reached = match name {
            None => {
                let config = connect::config(self.kubeconfig.as_deref(), self.context.as_deref()).await;
                Reached { config: config.map_err(|error| Failure::connect(&error))?, as_hub: None }
            }
            Some(name) => match self.sandbox() {
                Some(file) => of_sandbox(name, &file).await?,
                None => {
                    let hub = self.which().find().await.map_err(|failure| failure.for_member(name))?;
                    member(name, hub).await?
                }
            },
        };
        if let Some(namespace) = &self.namespace {
            reached.config.default_namespace.clone_from(namespace);
        }
        Ok(reached)
    }

    /// The way to the hub of whose members `-C` speaks.
    pub(crate) async fn hub(&self) -> Result<kube::Config, Failure> {
        match self.sandbox() {
            Some(file) => Ok(of_sandbox(HUB, &file).await?.config),
            None => Ok(self.which().find().await?.config),
        }
    }

    /// The names of all members of the hub.
    pub(crate) async fn members(&self) -> Result<Vec<String>, Failure> {
        let hub = match self.sandbox() {
            Some(file) => {
                let named = (Some(file), Some(HUB.to_owned()));
                WhichHub { kubeconfig: named.0, context: named.1, data_dir: None }.find().await?
            }
            None => self.which().find().await?,
        };
        let listed = kube::Api::<Cluster>::all(hub.client()?).list_metadata(&ListParams::default()).await;
        let listed = listed.map_err(|error| hub.place.failure("cannot list members", &error))?;
        if listed.items.is_empty() {
            let failure = Failure::plain(
                "the hub has no members",
                "join one with `atoll join NAME --cluster-kubeconfig FILE`",
            );
            return Err(failure.at(&hub.place.shown()));
        }
        Ok(listed.items.iter().map(ResourceExt::name_any).collect())
    }

    fn which(&self) -> WhichHub {
        WhichHub { kubeconfig: self.kubeconfig.clone(), context: self.context.clone(), data_dir: None }
    }

    /// The kubeconfig of the sandbox that is meant, if one is: it has a context for every cluster.
    fn sandbox(&self) -> Option<PathBuf> {
        if self.context.is_some() {
            return None;
        }
        let choice = self.which().choice();
        let is_sandbox = |file: &Path| file.parent().is_some_and(sandbox::is_sandbox);
        let named = matches!(choice.step, Step::UpDirVariable | Step::Sandbox);
        choice.file.filter(|file| named || is_sandbox(file))
    }
}

/// The way to a member, with the credentials that its hub holds.
async fn member(name: &str, hub: FoundHub) -> Result<Reached, Failure> {
    let namespace = hub.config.default_namespace.clone();
    let client = hub.client()?;
    let reached = reach::member(&client, name).await;
    let mut config = reached.map_err(|error| Failure::reach(name, &error).at(&hub.place.shown()))?;
    config.default_namespace = namespace;
    Ok(Reached { config, as_hub: Some(name.to_owned()) })
}

/// The way to a cluster of `atoll up`, by its name; one that joined it from elsewhere is reached through its hub.
async fn of_sandbox(name: &str, file: &Path) -> Result<Reached, Failure> {
    if !file.is_file() {
        return Err(Failure::no_sandbox(file));
    }
    let known = connect::read(Some(file)).map_err(|error| Failure::connect(&error))?;
    let names: Vec<&str> = known.contexts.iter().map(|one| one.name.as_str()).collect();
    let context = async |name: &str| {
        connect::config(Some(file), Some(name)).await.map_err(|error| Failure::connect(&error))
    };
    if names.contains(&name) {
        return Ok(Reached { config: context(name).await?, as_hub: None });
    }
    if names.contains(&HUB) {
        let hub =
            WhichHub { kubeconfig: Some(file.to_owned()), context: Some(HUB.to_owned()), data_dir: None };
        return member(name, hub.find().await?).await;
    }
    Err(Failure::no_such_cluster(name, file, &names))
}
