//! Makes the hub's API refuse what the hub would not believe, as far as the API server can: on one that can't, the checks when
//! something is read are all there is.

mod manifests;

use std::time::Duration;

use atoll_api::names::FIELD_MANAGER;
use atoll_api::names::annotation::AUTHOR;
use atoll_api::names::kind::{STAMPED, policy};
use jiff::Timestamp;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt, discovery};
use serde_json::{Value, json};

use crate::membership::connect::{code, why};

/// An API server heeds a new policy after a second or so.
const PROBES: usize = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// Whether an API server writes down who wrote a policy, so that no client can.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamping {
    /// By itself, since it started.
    Own,
    /// By a policy of ours; true if that is new.
    Installed(bool),
    /// It does not.
    None,
}

/// Installs what the API server takes.
pub(crate) async fn install(client: &Client) -> Result<Stamping, kube::Error> {
    let review = SelfSubjectReview::default();
    let review =
        Api::<SelfSubjectReview>::all(client.clone()).create(&PostParams::default(), &review).await?;
    let hub =
        review.status.and_then(|status| status.user_info).and_then(|user| user.username).unwrap_or_default();
    if hub.is_empty() {
        return Ok(Stamping::None);
    }
    if put(client, "v1", &manifests::bindings(&hub)).await.is_none() {
        tracing::warn!("the hub's API does not guard bindings: those that others write are only ignored");
    }
    let served = |version| async move {
        let gvk = GroupVersionKind::gvk(manifests::GROUP, version, "MutatingAdmissionPolicy");
        discovery::oneshot::pinned_kind(client, &gvk).await.is_ok()
    };
    // One that stamps by itself needs no policy for it.
    if !served("v1").await && !served("v1beta1").await && stamps(client).await? {
        return Ok(Stamping::Own);
    }
    for version in ["v1", "v1beta1"] {
        let Some(changed) = put(client, version, &manifests::stamping(&hub, version)).await else { continue };
        for _ in 0..PROBES {
            if stamps(client).await? {
                // Only now: until the stamp is written, the rule would refuse every policy.
                put(client, "v1", &manifests::checking(&hub)).await;
                return Ok(Stamping::Installed(changed));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
    tracing::warn!(
        "the hub's API does not write down who wrote a policy: it needs MutatingAdmissionPolicy (on by default from Kubernetes 1.36)"
    );
    Ok(Stamping::None)
}

/// Puts objects there; none if the API server does not take them, else whether one of them was absent.
async fn put(client: &Client, version: &str, objects: &[Value]) -> Option<bool> {
    let mut absent = false;
    for object in objects {
        let (kind, name) = (object["kind"].as_str()?, object["metadata"]["name"].as_str()?);
        let gvk = GroupVersionKind::gvk(manifests::GROUP, version, kind);
        let (resource, _) = discovery::oneshot::pinned_kind(client, &gvk).await.ok()?;
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let applied = async {
            absent |= api.get_opt(name).await?.is_none();
            api.patch(name, &PatchParams::apply(FIELD_MANAGER).force(), &Patch::Apply(object)).await
        };
        if let Err(error) = applied.await {
            tracing::warn!(
                kind,
                name,
                why = why(&error),
                "cannot install an admission policy in the hub's API"
            );
            return None;
        }
    }
    Some(absent)
}

/// Whether what a client says of the author is replaced: tried with a policy that is not made.
async fn stamps(client: &Client) -> Result<bool, kube::Error> {
    let gvk = GroupVersionKind::gvk(policy::GROUP, policy::V1ALPHA1, policy::CLUSTER_PROPAGATION_POLICY);
    let resource = ApiResource::from_gvk_with_plural(&gvk, policy::CLUSTER_PROPAGATION_POLICIES);
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let probe = json!({
        "apiVersion": format!("{}/{}", policy::GROUP, policy::V1ALPHA1), "kind": policy::CLUSTER_PROPAGATION_POLICY,
        "metadata": { "generateName": "atoll-probe-", "annotations": { AUTHOR: "nobody" } },
        "spec": { "resourceSelectors": [{ "apiVersion": "v1", "kind": "ConfigMap" }] },
    });
    let probe = serde_json::from_value(probe).map_err(kube::Error::SerdeError)?;
    let params = PostParams { dry_run: true, ..PostParams::default() };
    let mut tries = 0..PROBES;
    let made = loop {
        match api.create(&params, &probe).await {
            Ok(made) => break made,
            // The rule is there and the stamp is not yet, or it is no kind of this API.
            Err(error) if matches!(code(&error), Some(403 | 404 | 422)) => return Ok(false),
            // The kind was made a moment ago, and the API server does not know it everywhere yet.
            Err(error) if matches!(code(&error), Some(429 | 500..=599)) && tries.next().is_some() => {
                tokio::time::sleep(PAUSE).await;
            }
            Err(error) => return Err(error),
        }
    };
    Ok(made.annotations().get(AUTHOR).is_some_and(|stamp| stamp != "nobody" && stamp.starts_with('{')))
}

/// Takes stamps off that users may have written before the API server did: those of objects made before then, or of all.
pub(crate) async fn clear(client: &Client, before: Option<Timestamp>) -> Result<(), kube::Error> {
    for (group, plural) in STAMPED {
        let gvk = GroupVersionKind::gvk(group, policy::V1ALPHA1, "");
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        let all: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let objects = match all.list(&ListParams::default()).await {
            Ok(objects) => objects,
            Err(error) if code(&error) == Some(404) => continue,
            Err(error) => return Err(error),
        };
        for object in objects {
            let made = object.metadata.creation_timestamp.as_ref().map(|made| made.0);
            let older = before.is_none_or(|before| made.is_none_or(|made| made < before));
            if !object.annotations().contains_key(AUTHOR) || !older {
                continue;
            }
            let api: Api<DynamicObject> = match object.namespace() {
                Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &resource),
                None => all.clone(),
            };
            let patch = json!({ "metadata": { "annotations": { AUTHOR: null } } });
            match api.patch(&object.name_any(), &PatchParams::default(), &Patch::Merge(patch)).await {
                Err(error) if code(&error) != Some(404) => return Err(error),
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}
