//! A member leaves: what is ours goes from it, that is written down, then our rights there go, then its entry in the hub.

use std::time::Duration;

use atoll_api::names::{annotation, finalizer, label};
use atoll_api::types::Cluster;
use atoll_engine::names::ClusterId;
use atoll_member::{Clients, Identity, Permit, propagate};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::rbac::v1::ClusterRole;
use kube::api::{DeleteParams, Patch, PatchParams, Preconditions};
use kube::{Api, Client, ResourceExt};
use serde_json::json;

use crate::membership::connect::{self, code, why};
use crate::membership::health::{self, Health};
use crate::membership::join::rbac;
use crate::membership::roster::Link;
use crate::policies;

/// Between two tries, at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How often a write is tried that somebody else came before.
const TRIES: u32 = 5;

/// Cleans a member for as long as it takes, and lets its `Cluster` go. What it can't do stands in the `Ready` condition.
pub(crate) async fn clean(hub: Client, identity: Identity, link: Link, permit: Permit) {
    let mut pause = Duration::from_secs(1);
    loop {
        let problem = match attempt(&hub, &identity, &link, &permit).await {
            Ok(()) => return,
            Err(problem) => problem,
        };
        tracing::warn!(cluster = %identity.cluster, why = problem, "cannot clean up a member that leaves");
        let why = stuck(&problem);
        if let Err(error) = health::write(&hub, &identity.cluster, &Health::NotReachable { why }).await {
            tracing::debug!(why = connect::why(&error), "cannot write the member's status");
        }
        tokio::time::sleep(pause).await;
        if forced_out(&hub, &identity.cluster).await {
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
pub(crate) async fn let_go(hub: Client, id: &ClusterId, permit: Permit) {
    let mut pause = Duration::from_secs(1);
    loop {
        if permit.holds() {
            match release(&hub, id).await {
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(cluster = %id, why = why(&error), "cannot remove the finalizer of a member")
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

/// Whether somebody let it go without us; it may even have joined again.
async fn forced_out(hub: &Client, id: &ClusterId) -> bool {
    match Api::<Cluster>::all(hub.clone()).get_opt(id.as_str()).await {
        Ok(found) => found.is_none_or(|cluster| cluster.metadata.deletion_timestamp.is_none()),
        Err(_) => false,
    }
}

async fn attempt(hub: &Client, identity: &Identity, link: &Link, permit: &Permit) -> Result<(), String> {
    if !permit.holds() {
        return Err("this hub is not the leader".to_owned());
    }
    let config = connect::of_link(link).map_err(|error| error.to_string())?;
    let clients = Clients::new(config).map_err(|error| why(&error))?;
    if !is_cleaned(hub, &identity.cluster).await.map_err(|error| why(&error))? {
        let kinds = policies::held_by(hub, &identity.cluster).await.map_err(|error| why(&error))?;
        let copies = propagate::leave_copies(identity, &clients, permit, kinds).await;
        copies.map_err(|error| error.to_string())?;
        let left = atoll_member::leave(identity, &clients).await;
        left.map_err(|error| format!("{error}: {}", why(&error.error)))?;
        // Written down before our rights there go: after that nobody could find it clean a second time.
        mark_cleaned(hub, &identity.cluster).await.map_err(|error| why(&error))?;
    }
    revoke(&clients.writes, &identity.hub).await.map_err(|error| why(&error))?;
    release(hub, &identity.cluster).await.map_err(|error| why(&error))
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

/// Gives our rights in the member back, and nobody else's. Everything else that `join` made there belongs to this one object,
/// and goes with it.
async fn revoke(member: &Client, hub: &str) -> Result<(), kube::Error> {
    let api: Api<ClusterRole> = Api::all(member.clone());
    let revoked = async {
        let Some(role) = api.get_opt(rbac::NAME).await? else { return Ok(()) };
        if !rbac::is_of(&role, hub) {
            tracing::warn!(
                "the ClusterRole {} in the member was not created by this hub, and is kept",
                rbac::NAME
            );
            return Ok(());
        }
        let only = Preconditions { uid: role.uid(), resource_version: None };
        api.delete(rbac::NAME, &DeleteParams::default().preconditions(only)).await.map(drop)
    };
    match revoked.await {
        Ok(()) => Ok(()),
        // Gone by now, or somebody else's by now, or we have no rights left to give back.
        Err(error) if matches!(code(&error), Some(401 | 403 | 404 | 409)) => {
            tracing::debug!(why = why(&error), "cannot delete the hub's rights in the member");
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Deletes the credentials that `join` made for a `Cluster`, then lets it go: in this order a crash in between leaks nothing.
pub(crate) async fn release(hub: &Client, id: &ClusterId) -> Result<(), kube::Error> {
    let api: Api<Cluster> = Api::all(hub.clone());
    for tries_left in (0..TRIES).rev() {
        let found = api.get_opt(id.as_str()).await?;
        // One that is not being deleted has joined again meanwhile.
        let Some(cluster) = found.filter(|cluster| cluster.metadata.deletion_timestamp.is_some()) else {
            return Ok(());
        };
        if let Some(at) = &cluster.spec.secret_ref {
            forget_credentials(hub, &at.namespace, &at.name, id).await?;
        }
        let left: Vec<_> = cluster.finalizers().iter().filter(|name| *name != finalizer::CLUSTER).collect();
        let patch = json!({ "metadata": { "resourceVersion": cluster.metadata.resource_version, "finalizers": left } });
        match api.patch(id.as_str(), &PatchParams::default(), &Patch::Merge(&patch)).await {
            Err(error) if code(&error) == Some(409) && tries_left > 0 => {} // somebody wrote it since
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
