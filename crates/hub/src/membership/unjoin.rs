//! Makes a member leave. The hub cleans it; with force it is just forgotten.

use std::time::Duration;

use atoll_api::names::condition;
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use kube::api::DeleteParams;
use kube::{Api, Client};

use crate::membership::clean;
use crate::membership::connect::{code, why};

const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Why a member did not leave.
#[derive(Debug, thiserror::Error)]
pub enum UnjoinError {
    /// There is none of that name.
    #[error("member `{name}` not found")]
    NotThere {
        /// The name.
        name: String,
    },
    /// The hub's API can't be reached, or refuses something.
    #[error("the hub's API failed to answer a request")]
    Hub(#[source] Box<kube::Error>),
    /// The hub's API says nothing at all.
    #[error("the hub's API did not answer within {} s", .within.as_secs())]
    Silent {
        /// How long it was waited for.
        within: Duration,
    },
    /// It took too long.
    #[error("`{name}` did not leave within {} s", .within.as_secs())]
    NotYet {
        /// The name.
        name: String,
        /// How long it was waited for.
        within: Duration,
        /// What the hub says of it.
        said: Option<String>,
    },
}

impl UnjoinError {
    /// The facts behind it.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::NotThere { .. } | Self::Silent { .. } => None,
            Self::Hub(error) => Some(why(error)),
            Self::NotYet { said, .. } => said.clone(),
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::NotThere { .. } => "see `atoll clusters`".to_owned(),
            Self::Hub(_) => "check --kubeconfig and --context".to_owned(),
            Self::Silent { .. } => "check --kubeconfig and --context, or increase --timeout".to_owned(),
            Self::NotYet { .. } => {
                "it leaves when a hub is running and reaches it; with --force it is removed now, without cleaning it up".to_owned()
            }
        })
    }
}

/// Deletes the member and waits until the hub has cleaned it; with `force` it is not cleaned. All of it ends after `within`.
/// `namespace`: that of the hub, with its credentials.
pub async fn unjoin(
    hub: &Client,
    namespace: &str,
    name: &str,
    force: bool,
    within: Duration,
) -> Result<(), UnjoinError> {
    let mut progress = Progress::default();
    match tokio::time::timeout(within, carry_out(hub, namespace, name, force, &mut progress)).await {
        Ok(done) => done,
        Err(_) if !progress.deleted => Err(UnjoinError::Silent { within }),
        Err(_) => Err(UnjoinError::NotYet { name: name.to_owned(), within, said: progress.said }),
    }
}

/// How far it has come.
#[derive(Default)]
struct Progress {
    deleted: bool,
    said: Option<String>,
}

async fn carry_out(
    hub: &Client,
    namespace: &str,
    name: &str,
    force: bool,
    progress: &mut Progress,
) -> Result<(), UnjoinError> {
    let api: Api<Cluster> = Api::all(hub.clone());
    let not_there = || UnjoinError::NotThere { name: name.to_owned() };
    let id = ClusterId::parse(name).map_err(|_| not_there())?;
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => progress.deleted = true,
        Err(error) if code(&error) == Some(404) => return Err(not_there()),
        Err(error) => return Err(failed(error)),
    }
    if force {
        clean::release(hub, namespace, &id).await.map_err(failed)?;
    }
    loop {
        let Some(left) = api.get_opt(name).await.map_err(failed)? else { return Ok(()) };
        let conditions = left.status.map(|status| status.conditions).unwrap_or_default();
        let ready = conditions.into_iter().find(|one| one.type_ == condition::cluster::READY);
        progress.said = ready.filter(|ready| ready.status != "True").map(|ready| ready.message);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn failed(error: kube::Error) -> UnjoinError {
    UnjoinError::Hub(Box::new(error))
}
