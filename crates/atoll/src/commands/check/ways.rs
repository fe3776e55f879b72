//! The ways into the hub and the members, and requests with a deadline each.

use std::path::{Path, PathBuf};
use std::time::Duration;

use atoll_hub::connect::{self, ConnectError};
use atoll_hub::reach::{self, ReachError};
use kube::Client;

/// How long one request may take. Healthy APIs answer in milliseconds; the rest is for connections.
const ANSWER: Duration = Duration::from_secs(2);

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The API says that it may not be asked.
    Forbidden(String),
    /// There is none.
    Missing,
    /// No answer, or not in time.
    Silent(String),
    /// Another answer.
    Other(String),
}

impl Trouble {
    pub(crate) fn why(&self) -> String {
        match self {
            Self::Missing => "not found".to_owned(),
            Self::Forbidden(why) | Self::Silent(why) | Self::Other(why) => why.clone(),
        }
    }
}

/// One request, within its time.
pub(crate) async fn ask<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Trouble> {
    match tokio::time::timeout(ANSWER, request).await {
        Err(_) => Err(Trouble::Silent(format!("no answer within {} s", ANSWER.as_secs()))),
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(trouble(&error)),
    }
}

fn trouble(error: &kube::Error) -> Trouble {
    let why = connect::why(error);
    match error {
        kube::Error::Api(status) if matches!(status.code, 401 | 403) => Trouble::Forbidden(why),
        kube::Error::Api(status) if status.code == 404 => Trouble::Missing,
        kube::Error::Api(_) => Trouble::Other(why),
        _ => Trouble::Silent(why),
    }
}

/// A member, and how it is reached from here.
#[derive(Clone)]
pub(crate) struct Way {
    pub(crate) name: String,
    /// With the credentials that the hub holds: what the hub may, this may.
    pub(crate) stored: Result<Client, String>,
    /// With the kubeconfig that the operator named; it may see more.
    pub(crate) own: Option<Client>,
}

impl Way {
    /// For whatever the hub may do as well.
    pub(crate) fn any(&self) -> Result<&Client, &str> {
        self.own.as_ref().map_or_else(|| self.stored.as_ref().map_err(String::as_str), Ok)
    }
}

/// A kubeconfig with a context for each cluster, called as the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Contexts {
    file: PathBuf,
    names: Vec<String>,
}

impl Contexts {
    pub(crate) fn read(file: &Path) -> Result<Self, ConnectError> {
        let names = connect::read(Some(file))?.contexts.into_iter().map(|context| context.name).collect();
        Ok(Self { file: file.to_owned(), names })
    }

    async fn client(&self, name: &str) -> Option<Client> {
        if !self.names.iter().any(|known| known == name) {
            return None;
        }
        let config = connect::config(Some(&self.file), Some(name)).await.ok()?;
        connect::client(config).ok()
    }
}

/// How a member is reached: by the hub's credentials, if this user may read them, and by the named contexts.
pub(crate) async fn way(hub: &Client, name: &str, contexts: Option<&Contexts>) -> Way {
    let stored = async {
        let config = tokio::time::timeout(ANSWER, reach::member(hub, name)).await;
        match config {
            Err(_) => Err("the hub's API does not answer".to_owned()),
            Ok(Ok(config)) => connect::client(config).map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(reason(&error)),
        }
    };
    let own = async {
        match contexts {
            Some(contexts) => contexts.client(name).await,
            None => None,
        }
    };
    let (stored, own) = tokio::join!(stored, own);
    Way { name: name.to_owned(), stored, own }
}

fn reason(error: &ReachError) -> String {
    match error.why() {
        Some(why) => format!("{error}: {why}"),
        None => error.to_string(),
    }
}
