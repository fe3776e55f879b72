//! A member leaves: its copies go, but for those that were there before us.

use atoll_api::names::label;
use atoll_engine::placement::object::{Kind, ObjectKey};
use kube::api::{Api, DynamicObject, GroupVersionKind, ListParams};
use kube::discovery;

use super::core::Request;
use super::live::Live;
use super::requests::{Route, send};
use crate::core::event::Failure;
use crate::shell::failure::is_absent;
use crate::{Clients, Identity, Permit};

/// A copy that could not be taken away.
#[derive(Debug, thiserror::Error)]
#[error("cannot delete {what}: {why}")]
pub struct LeaveCopiesError {
    /// Which, or of which kind.
    what: String,
    /// Why.
    why: String,
}

/// Takes all copies of these kinds away. Those that were deleted meanwhile are gone too.
pub async fn leave_copies(
    identity: &Identity,
    clients: &Clients,
    permit: &Permit,
    kinds: impl IntoIterator<Item = Kind>,
) -> Result<(), LeaveCopiesError> {
    for kind in kinds {
        let failed =
            |error: &kube::Error| LeaveCopiesError { what: kind.to_string(), why: error.to_string() };
        let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
        let (resource, capabilities) = match discovery::oneshot::pinned_kind(&clients.writes, &gvk).await {
            Ok(found) => found,
            Err(kube::Error::Discovery(_)) => continue,
            Err(error) if is_absent(&error) => continue,
            Err(error) => return Err(failed(&error)),
        };
        let api: Api<DynamicObject> = Api::all_with(clients.writes.clone(), &resource);
        let ours = ListParams::default().labels(&format!("{}={}", label::PROPAGATED, identity.hub));
        let route = Route { resource, capabilities };
        for object in api.list(&ours).await.map_err(|error| failed(&error))? {
            let value = serde_json::to_value(&object).unwrap_or_default();
            let live = Live::read(&value, &identity.hub);
            let key = ObjectKey {
                kind: kind.clone(),
                namespace: object.metadata.namespace.clone().unwrap_or_default(),
                name: object.metadata.name.clone().unwrap_or_default(),
            };
            let Live { uid, revision, .. } = live;
            let request = if live.adopted {
                Request::Release { uid, revision }
            } else {
                Request::Delete { uid, revision }
            };
            match send(&clients.writes, permit, &identity.hub, &route, &key, &request).await {
                Ok(_) | Err(Failure::NotFound) => {}
                Err(why) => return Err(LeaveCopiesError { what: key.to_string(), why: format!("{why:?}") }),
            }
        }
    }
    Ok(())
}
