//! Leaving: everything of ours goes, and nothing else. May be broken off and begun anew.

use std::fmt::Debug;

use atoll_api::names::{FIELD_MANAGER, label};
use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use futures_util::{StreamExt, TryStreamExt, stream};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams, Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;

use crate::core::queue::IN_FLIGHT;
use crate::edge::{export, meta};
use crate::shell::failure::is_absent;
use crate::shell::requests::exactly;
use crate::{Clients, Identity, Permit};

/// How many objects are listed at a time.
const PAGE: u32 = 500;

/// What was taken away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeaveSummary {
    /// `ServiceImports`.
    pub imports: usize,
    /// EndpointSlices.
    pub slices: usize,
    /// Derived Services.
    pub services: usize,
    /// `ServiceExports` that have lost our conditions.
    pub exports: usize,
    /// `ClusterProperties`.
    pub properties: usize,
}

/// Why something is still there.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    /// The API refused it, or did not answer.
    #[error("cannot {doing}")]
    Failed {
        /// What was tried.
        doing: String,
        /// What the API said.
        #[source]
        error: Box<kube::Error>,
    },
    /// The hub's lease has ended: another one may lead.
    #[error("cannot {doing}: this hub does not lead any more")]
    NotPermitted {
        /// What was to be done.
        doing: String,
    },
}

fn permitted(permit: &Permit, doing: &str) -> Result<(), LeaveError> {
    if permit.holds() { Ok(()) } else { Err(LeaveError::NotPermitted { doing: doing.to_owned() }) }
}

/// Removes everything of ours from a cluster; the CRDs stay. The properties go last: while they are there, the cluster is
/// not clean.
pub async fn leave(
    identity: &Identity,
    clients: &Clients,
    permit: &Permit,
) -> Result<LeaveSummary, LeaveError> {
    let (client, hub) = (&clients.writes, &*identity.hub);
    Ok(LeaveSummary {
        imports: remove(Api::<ServiceImport>::all(client.clone()), client, hub, permit).await?,
        slices: remove(Api::<EndpointSlice>::all(client.clone()), client, hub, permit).await?,
        services: remove(Api::<Service>::all(client.clone()), client, hub, permit).await?,
        exports: clear_exports(client, permit).await?,
        properties: remove(Api::<ClusterProperty>::all(client.clone()), client, hub, permit).await?,
    })
}

async fn remove<K>(api: Api<K>, client: &Client, hub: &str, permit: &Permit) -> Result<usize, LeaveError>
where
    K: Resource + Clone + Debug + DeserializeOwned,
    K::DynamicType: Default,
{
    let kind = K::plural(&K::DynamicType::default()).into_owned();
    let ours = list(&api, &ListParams::default().labels(&format!("{}={hub}", label::HUB)), &kind).await?;
    let deletes = ours.into_iter().filter(|object| meta::is_ours(object.meta(), hub)).map(async |object| {
        let name = object.name_any();
        let failed =
            |error| LeaveError::Failed { doing: format!("delete {kind} {name}"), error: Box::new(error) };
        loop {
            let current = get(client, &object, &name).await.map_err(failed)?;
            // It may have changed hands since it was listed.
            let Some(current) = current.filter(|current| meta::is_ours(&current.metadata, hub)) else {
                return Ok(0);
            };
            let revision = current.resource_version().unwrap_or_default();
            let params = exactly(&current.uid().unwrap_or_default(), &revision);
            let request = kube::core::Request::new(url(&object)).delete(&name, &params);
            let request = request.map_err(|error| failed(kube::Error::BuildRequest(error)))?;
            permitted(permit, &format!("delete {kind} {name}"))?;
            match client.request_text(request).await {
                Ok(_) => return Ok(1),
                Err(error) if is_absent(&error) => return Ok(0),
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                Err(error) => return Err(failed(error)),
            }
        }
    });
    stream::iter(deletes).buffer_unordered(IN_FLIGHT).try_fold(0, async |sum, one| Ok(sum + one)).await
}

/// The URL of an object's collection.
fn url<K: Resource>(object: &K) -> String
where
    K::DynamicType: Default,
{
    K::url_path(&K::DynamicType::default(), object.meta().namespace.as_deref())
}

async fn get<K: Resource>(
    client: &Client,
    object: &K,
    name: &str,
) -> kube::Result<Option<kube::core::PartialObjectMeta>>
where
    K::DynamicType: Default,
{
    let request = kube::core::Request::new(url(object)).get(name, &kube::api::GetParams::default());
    let request = request.map_err(kube::Error::BuildRequest)?;
    match client.request(request).await {
        Ok(found) => Ok(Some(found)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes our conditions off every ServiceExport that has any.
async fn clear_exports(client: &Client, permit: &Permit) -> Result<usize, LeaveError> {
    let all =
        list(&Api::<ServiceExport>::all(client.clone()), &ListParams::default(), "serviceexports").await?;
    let ours = all.into_iter().filter(|export| {
        let mut managers = export.managed_fields().iter();
        managers.any(|fields| fields.manager.as_deref() == Some(FIELD_MANAGER))
    });
    let clears = ours.map(async |object| {
        let Ok(namespace) = meta::namespace(object.meta()) else { return Ok(0) };
        let name = object.name_any();
        let api: Api<ServiceExport> = Api::namespaced(client.clone(), namespace.as_str());
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let nothing = Patch::Apply(export::write_status(&namespace, &name, None, &[]));
        permitted(permit, &format!("clear the conditions of {namespace}/{name}"))?;
        match api.patch_status(&name, &params, &nothing).await {
            Ok(_) => Ok(1),
            Err(error) if is_absent(&error) => Ok(0),
            Err(error) => {
                let doing = format!("clear the conditions of {namespace}/{name}");
                Err(LeaveError::Failed { doing, error: Box::new(error) })
            }
        }
    });
    stream::iter(clears).buffer_unordered(IN_FLIGHT).try_fold(0, async |sum, one| Ok(sum + one)).await
}

/// Lists all pages; a kind that is not served has no objects.
async fn list<K>(api: &Api<K>, params: &ListParams, kind: &str) -> Result<Vec<K>, LeaveError>
where
    K: Clone + Debug + DeserializeOwned,
{
    let mut params = params.clone().limit(PAGE);
    let mut all = Vec::new();
    loop {
        match api.list(&params).await {
            Ok(page) => {
                all.extend(page.items);
                match page.metadata.continue_.filter(|token| !token.is_empty()) {
                    Some(token) => params = params.continue_token(&token),
                    None => return Ok(all),
                }
            }
            Err(error) if is_absent(&error) => return Ok(all),
            Err(error) => {
                return Err(LeaveError::Failed { doing: format!("list {kind}"), error: Box::new(error) });
            }
        }
    }
}
