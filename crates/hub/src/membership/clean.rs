//! A member leaves: what is ours goes from it, that is written down, then our rights there go, then its entry in the hub.

use std::time::Duration;

use atoll_api::names::{annotation, finalizer, label};
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use atoll_link::{Down, Identity};
use atoll_member::Permit;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::membership::connect::{self, code, why};
use crate::membership::credentials::Link;
use crate::membership::health::{self, Health};
use crate::membership::session::{Answer, Session, Sessions};
use crate::policies;

/// Between two tries, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a write is tried that another client came before.
const TRIES: u32 = 5;

/// Cleans a member for as long as it takes, and lets its `Cluster` go. What it can't do stands in the `Ready` condition.
pub(crate) async fn clean(sessions: Sessions, identity: Identity, link: Link) {
    let hub = &sessions.hub;
    let mut pause = Duration::from_secs(1);
    loop {
        let problem = match attempt(&sessions, &identity, &link).await {
            Ok(()) => return,
            Err(problem) => problem,
        };
        tracing::warn!(cluster = %identity.cluster, why = problem, "cannot clean up a member that leaves");
        let why = stuck(&problem);
        if let Err(error) = health::write(hub, &identity.cluster, &Health::NotReachable { why }).await {
            tracing::debug!(why = connect::why(&error), "cannot write the member's status");
        }
        tokio::time::sleep(pause).await;
        if forced_out(hub, &identity.cluster).await {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// What is shown of a member that can't be cleaned.
pub(crate) fn stuck(problem: &str) -> String {
    format!(
        "the member leaves, but can't be cleaned up: {problem}; if it no longer exists, run `atoll unjoin --force`"
    )
}

/// Lets a `Cluster` go for as long as that takes; its cluster is not touched.
pub(crate) async fn let_go(hub: Client, namespace: &str, id: &ClusterId, permit: Permit) {
    let mut pause = Duration::from_secs(1);
    loop {
        if permit.holds() {
            match release(&hub, namespace, id).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(cluster = %id, why = why(&error), "cannot remove the finalizer of a member");
                }
            }
        }
        tokio::time::sleep(pause).await;
        if forced_out(&hub, id).await {
            return;
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Whether a user let it go without us; it may even have joined again.
async fn forced_out(hub: &Client, id: &ClusterId) -> bool {
    match Api::<Cluster>::all(hub.clone()).get_opt(id.as_str()).await {
        Ok(found) => found.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_none()),
        Err(_) => false,
    }
}

async fn attempt(sessions: &Sessions, identity: &Identity, link: &Link) -> Result<(), String> {
    let Sessions { hub, permit, .. } = sessions;
    if !permit.holds() {
        return Err("this hub is not the leader".to_owned());
    }
    let mut session = sessions.open(&identity.cluster, link, true).map_err(|error| error.to_string())?;
    if !is_cleaned(hub, &identity.cluster).await.map_err(|error| why(&error))? {
        let kinds =
            policies::held_by(hub, &sessions.sealer, &identity.cluster).await.map_err(|error| why(&error))?;
        session.send(Down::Clean { identity: identity.clone(), kinds });
        done(&mut session).await?;
        // Written down before our rights there go: after that no hub could find it clean a second time.
        mark_cleaned(hub, &identity.cluster).await.map_err(|error| why(&error))?;
    }
    session.send(Down::GiveBack(identity.clone()));
    done(&mut session).await?;
    release(hub, &sessions.namespace, &identity.cluster).await.map_err(|error| why(&error))
}

/// Waits until the member has done what it was asked for.
async fn done(session: &mut Session) -> Result<(), String> {
    loop {
        match session.answer().await {
            Some(Answer::Cleaned | Answer::GaveBack) => return Ok(()),
            Some(Answer::NotCleaned(why)) => return Err(why),
            Some(Answer::Identity(..) | Answer::Stopped) => {}
            None => return Err("the link has ended".to_owned()),
        }
    }
}

async fn is_cleaned(hub: &Client, id: &ClusterId) -> Result<bool, kube::Error> {
    let cluster = Api::<Cluster>::all(hub.clone()).get_opt(id.as_str()).await?;
    Ok(cluster.is_some_and(|cluster| cluster.annotations().contains_key(annotation::CLEANED)))
}

/// Only for a `Cluster` that is being deleted: nothing can come back under it.
async fn mark_cleaned(hub: &Client, id: &ClusterId) -> Result<(), kube::Error> {
    let patch = json!({ "metadata": { "annotations": { annotation::CLEANED: "true" } } });
    let api: Api<Cluster> = Api::all(hub.clone());
    absent_is_fine(api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await)
}

/// Deletes the credentials that `join` made for a `Cluster`, in the hub's namespace only, then lets it go: in this order a crash in
/// between leaks nothing.
pub(crate) async fn release(hub: &Client, namespace: &str, id: &ClusterId) -> Result<(), kube::Error> {
    let api: Api<Cluster> = Api::all(hub.clone());
    for tries_left in (0..TRIES).rev() {
        let found = api.get_opt(id.as_str()).await?;
        // One that is not being deleted has joined again meanwhile.
        let Some(cluster) = found.filter(|cluster| cluster.metadata.deletion_timestamp.is_some()) else {
            return Ok(());
        };
        if let Some(at) = cluster.spec.secret_ref.as_ref().filter(|at| at.namespace == namespace) {
            forget_credentials(hub, namespace, &at.name, id).await?;
        }
        let left: Vec<_> = cluster.finalizers().iter().filter(|name| *name != finalizer::CLUSTER).collect();
        let patch = json!({ "metadata": { "resourceVersion": cluster.metadata.resource_version, "finalizers": left } });
        match api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(error) if code(&error) == Some(409) && tries_left > 0 => {} // another client wrote it since
            other => return absent_is_fine(other),
        }
    }
    Ok(())
}

fn absent_is_fine<T>(done: Result<T, kube::Error>) -> Result<(), kube::Error> {
    match done {
        Ok(_) => Ok(()),
        Err(error) if code(&error) == Some(404) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Deletes a Secret if `join` made it for this member.
async fn forget_credentials(
    hub: &Client,
    namespace: &str,
    name: &str,
    id: &ClusterId,
) -> Result<(), kube::Error> {
    let api: Api<Secret> = Api::namespaced(hub.clone(), namespace);
    let Some(secret) = api.get_opt(name).await? else { return Ok(()) };
    if secret.labels().get(label::CLUSTER).map(String::as_str) != Some(id.as_str()) {
        return Ok(());
    }
    let only = Preconditions { uid: secret.uid(), resource_version: None };
    absent_is_fine(api.delete(name, &DeleteParams::default().preconditions(only)).await)
}

/// Makes sure that a `Cluster` does not go before it has been cleaned.
pub(crate) async fn hold(hub: &Client, id: &ClusterId) -> Result<(), kube::Error> {
    let api: Api<Cluster> = Api::all(hub.clone());
    let cluster = api.get(id.as_str()).await?;
    if cluster.metadata.deletion_timestamp.is_some()
        || cluster.finalizers().iter().any(|name| name == finalizer::CLUSTER)
    {
        return Ok(());
    }
    let mut all = cluster.finalizers().to_vec();
    all.push(finalizer::CLUSTER.to_owned());
    let patch =
        json!({ "metadata": { "resourceVersion": cluster.metadata.resource_version, "finalizers": all } });
    api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await.map(drop)
}
