//! The flags that name the hub, and the way to it. Which one is meant without them: [`super::rule`].

use std::path::PathBuf;

use atoll_hub::connect::{self, ConnectError};
use clap::Args;

use super::place::{self, Place};
use super::rule::{self, Choice, Flags, Step};
use super::sandbox;
use crate::failure::Failure;
use crate::objects::rest::Rest;

/// Which API is the hub's; as in kubectl.
#[derive(Args, Debug, Clone, Default)]
pub(crate) struct WhichHub {
    /// Kubeconfig of the hub's API [default: $KUBECONFIG, or the one in the data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context in the kubeconfig [default: the current context].
    #[arg(long, value_name = "CONTEXT")]
    pub(crate) context: Option<String>,
    /// Data directory of a hub with an API server of its own [default: $ATOLL_DATA_DIR, or ~/.atoll].
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) data_dir: Option<PathBuf>,
}

/// Which API is the hub's, and where Atoll keeps its own things there.
#[derive(Args, Debug, Clone)]
pub(crate) struct HubApi {
    #[command(flatten)]
    pub(crate) which: WhichHub,
    /// Namespace in the hub's API for Atoll's credentials and state.
    #[arg(long, value_name = "NAMESPACE", default_value = atoll_hub::options::NAMESPACE)]
    pub(crate) namespace: String,
}

/// The way to a hub.
pub(crate) struct FoundHub {
    pub(crate) config: kube::Config,
    pub(crate) place: Place,
}

impl FoundHub {
    pub(crate) fn client(&self) -> Result<kube::Client, Failure> {
        connect::client(self.config.clone()).map_err(|error| self.place.unusable(&error))
    }

    /// For requests on paths.
    pub(crate) fn rest(&self) -> Result<Rest, Failure> {
        Rest::new(self.config.clone()).map_err(|failure| failure.at(&self.place.shown()))
    }
}

impl WhichHub {
    /// The choice, before anything is read.
    pub(crate) fn choice(&self) -> Choice {
        let flags = Flags {
            kubeconfig: self.kubeconfig.clone(),
            context: self.context.clone(),
            data_dir: self.data_dir.clone(),
            plugin: crate::plugin::is_plugin(),
        };
        rule::choose(&flags, |key| std::env::var_os(key), std::path::Path::is_file)
    }

    /// The kubeconfig of the sandbox whose hub is meant, if one is: it has a context for every cluster.
    pub(crate) fn sandbox(&self) -> Option<PathBuf> {
        let Choice { file, step, .. } = self.choice();
        let file = file.or_else(|| {
            let named = std::env::var_os("KUBECONFIG").filter(|_| step == Step::Kubeconfig)?;
            Some(PathBuf::from(named))
        })?;
        file.parent().is_some_and(sandbox::is_sandbox).then_some(file)
    }

    /// The hub that is meant. Where others could be meant, stderr says which one it is.
    pub(crate) async fn find(&self) -> Result<FoundHub, Failure> {
        let found = self.find_quietly().await?;
        found.place.tell_in_doubt();
        Ok(found)
    }

    /// The hub that is meant.
    pub(crate) async fn find_quietly(&self) -> Result<FoundHub, Failure> {
        let choice = self.choice();
        let read = connect::read(choice.file.as_deref()).ok();
        let mut place = Place::of(&choice, read.as_ref());
        if let (Some(file), Some(config)) = (&choice.file, &read) {
            let contexts: Vec<&str> = config.contexts.iter().map(|one| one.name.as_str()).collect();
            let member =
                place::member_of_sandbox(file, place.context.as_deref(), &contexts, sandbox::is_sandbox);
            if let Some(member) = member {
                return Err(Failure::member_as_hub(&member).at(&place.shown()));
            }
        }
        let config = config(&choice).await.map_err(|error| place.unusable(&error))?;
        place.url = Some(config.cluster_url.to_string());
        Ok(FoundHub { config, place })
    }
}

impl HubApi {
    /// The hub that is meant.
    pub(crate) async fn find(&self) -> Result<FoundHub, Failure> {
        self.which.find().await
    }
}

/// What a kubeconfig says. Without a file, kubectl's own rules decide; a pod's own credentials only where nothing is named.
async fn config(choice: &Choice) -> Result<kube::Config, ConnectError> {
    let context = choice.context.as_deref();
    match (&choice.file, choice.step) {
        // Named by $KUBECONFIG: nothing else is tried in its place.
        (None, Step::Kubeconfig) if context.is_none() => {
            let read = connect::read(None)?;
            let current = read.current_context.unwrap_or_default();
            connect::config(None, Some(&current)).await
        }
        (file, _) => connect::config(file.as_deref(), context).await,
    }
}
