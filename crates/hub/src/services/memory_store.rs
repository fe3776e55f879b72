//! Memory in the hub's API: one `ConfigMap` per service, written by the leader alone.

mod codec;

use std::collections::HashMap;
use std::time::Duration;

use atoll_engine::memory::{Memory, MemoryUpdate};
use atoll_engine::names::ServiceKey;
use atoll_member::Permit;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, ListParams, PostParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

use crate::membership::connect::{code, why};
use crate::services::brain::Ended;

/// How many writes are under way at once.
const IN_FLIGHT: usize = 16;
/// A page of a list.
const PAGE: u32 = 500;
/// How long a write may take.
const DEADLINE: Duration = Duration::from_secs(5);
/// How long a failed write rests before it is said to have failed; the newest update is then tried.
const REST: Duration = Duration::from_secs(1);

/// What stands in the API for each service: needed to replace or delete it.
pub(crate) type Versions = HashMap<ServiceKey, Version>;

/// Which object, in which version.
#[derive(Debug, Clone)]
pub(crate) struct Version {
    uid: Option<String>,
    resource_version: Option<String>,
}

/// Reads all memory. An entry that can't be read stops the hub: planning without it would take endpoints away.
pub(crate) async fn load(client: &Client, namespace: &str) -> Result<(Memory, Versions), LoadError> {
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), namespace);
    let (mut memory, mut versions) = (Memory::new(), Versions::new());
    let mut params = ListParams::default().labels(&codec::selector()).limit(PAGE);
    loop {
        let page = api.list(&params).await?;
        for map in page.items {
            let name = map.name_any();
            let (key, remembered) =
                codec::read(&map).map_err(|source| LoadError::Unreadable { name, source })?;
            versions.insert(key.clone(), version(&map));
            memory.insert(key, remembered);
        }
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params.continue_token = Some(token),
            None => return Ok((memory, versions)),
        }
    }
}

/// Memory that can't be read back.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The API does not give it.
    #[error("cannot list the hub's state")]
    List(#[from] kube::Error),
    /// An entry is not as we write it.
    #[error("ConfigMap `{name}` does not contain valid state of a hub")]
    Unreadable {
        /// Its name.
        name: String,
        /// What is wrong with it.
        source: codec::Unreadable,
    },
}

/// Writes updates as they come, several at once but never two of one service (the brain sees to that), and says how each ended.
pub(crate) async fn write_all(
    api: Api<ConfigMap>,
    permit: Permit,
    mut versions: Versions,
    mut updates: UnboundedReceiver<MemoryUpdate>,
    ended: UnboundedSender<(ServiceKey, Ended)>,
) {
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            update = updates.recv(), if under_way.len() < IN_FLIGHT => {
                let Some(update) = update else { return };
                let key = key_of(&update).clone();
                under_way.push(write(&api, &permit, versions.get(&key).cloned(), update));
            }
            Some((key, how, version)) = under_way.next() => {
                match version {
                    Some(version) => drop(versions.insert(key.clone(), version)),
                    None => drop(versions.remove(&key)),
                }
                if ended.send((key, how)).is_err() {
                    return;
                }
            }
        }
    }
}

/// One write: how it ended, and what is there. When it fails, what is there now is read, so that the next try fits it.
async fn write(
    api: &Api<ConfigMap>,
    permit: &Permit,
    known: Option<Version>,
    update: MemoryUpdate,
) -> (ServiceKey, Ended, Option<Version>) {
    let key = key_of(&update).clone();
    if !permit.holds() {
        tokio::time::sleep(REST).await; // another replica may lead by now
        return (key, Ended::Failed, known);
    }
    let tried = tokio::time::timeout(DEADLINE, attempt(api, known.as_ref(), &update)).await;
    let (ended, reason) = match tried {
        Ok(Ok(version)) => return (key, Ended::Written, version),
        Ok(Err(error)) => (how(&error), why(&error)),
        Err(_) => (Ended::Failed, format!("no answer within {DEADLINE:?}")),
    };
    let then = match ended {
        Ended::Written | Ended::Failed => "its changes wait",
        Ended::Refused => {
            "its endpoints go on, and a restart of the hub may choose another winner of its conflicts"
        }
    };
    tracing::warn!(service = %key, why = reason, "cannot save the state of a service; {then}");
    tokio::time::sleep(REST).await;
    let found = tokio::time::timeout(DEADLINE, api.get_opt(&codec::name(&key))).await;
    match found {
        Ok(Ok(found)) => (key, ended, found.as_ref().map(version)),
        Ok(Err(_)) | Err(_) => (key, ended, known),
    }
}

/// Whether the API will take it another time.
fn how(error: &kube::Error) -> Ended {
    match code(error) {
        // Not authenticated, gone meanwhile, too late, another's version, too many at once: that passes.
        Some(401 | 404 | 408 | 409 | 429) => Ended::Failed,
        Some(400..=499) => Ended::Refused,
        Some(_) | None => Ended::Failed,
    }
}

async fn attempt(
    api: &Api<ConfigMap>,
    known: Option<&Version>,
    update: &MemoryUpdate,
) -> Result<Option<Version>, kube::Error> {
    let params = PostParams::default();
    match (update, known) {
        (MemoryUpdate::Put(key, memory), None) => {
            let made =
                api.create(&params, &codec::write(key, memory).map_err(kube::Error::SerdeError)?).await?;
            Ok(Some(version(&made)))
        }
        (MemoryUpdate::Put(key, memory), Some(known)) => {
            let mut map = codec::write(key, memory).map_err(kube::Error::SerdeError)?;
            map.metadata.resource_version.clone_from(&known.resource_version);
            let made = api.replace(&codec::name(key), &params, &map).await?;
            Ok(Some(version(&made)))
        }
        (MemoryUpdate::Forget(_), None) => Ok(None),
        (MemoryUpdate::Forget(key), Some(known)) => {
            let only =
                Preconditions { uid: known.uid.clone(), resource_version: known.resource_version.clone() };
            let params = DeleteParams::default().preconditions(only);
            match api.delete(&codec::name(key), &params).await {
                Ok(_) => Ok(None),
                Err(error) if code(&error) == Some(404) => Ok(None),
                Err(error) => Err(error),
            }
        }
    }
}

fn key_of(update: &MemoryUpdate) -> &ServiceKey {
    match update {
        MemoryUpdate::Put(key, _) | MemoryUpdate::Forget(key) => key,
    }
}

fn version(map: &ConfigMap) -> Version {
    Version { uid: map.metadata.uid.clone(), resource_version: map.metadata.resource_version.clone() }
}
