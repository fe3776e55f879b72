//! Writes about `MultiClusterServices` into the hub's API: per object and part one at a time, the latest wins.

use std::sync::Arc;
use std::time::Duration;

use atoll_api::names::kind::networking;
use atoll_api::names::label;
use atoll_api::types::MultiClusterService;
use atoll_engine::names::{ServiceKey, SliceName};
use atoll_member::Permit;
use atoll_member::events::{About, Events, Notice};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::{Api, Client, Resource};
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::core::Command;
use crate::api::write_queue as latest;
use crate::membership::connect::{code, why};
use crate::services::mirror;

const PAUSE: Duration = Duration::from_millis(500);
/// Whose fields in the status these are: a load balancer's are another's.
const MANAGER: &str = "atoll-crossing";

/// What a write is about: two of the same replace each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum WriteKey {
    Itself(ServiceKey),
    Status(ServiceKey),
    Told(ServiceKey, &'static str),
    Mirrored(ServiceKey, SliceName),
}

fn write_key(command: &Command) -> WriteKey {
    match command {
        Command::Hold { key, .. } | Command::Release { key, .. } => WriteKey::Itself(key.clone()),
        Command::Status { key, .. } => WriteKey::Status(key.clone()),
        Command::Tell { key, reason, .. } => WriteKey::Told(key.clone(), reason),
        Command::Mirror(mirror::Command::Put(key, slice)) => {
            WriteKey::Mirrored(key.clone(), slice.name.clone())
        }
        Command::Mirror(mirror::Command::Delete(key, name)) => WriteKey::Mirrored(key.clone(), name.clone()),
    }
}

/// The service that a write is about.
fn of(command: &Command) -> &ServiceKey {
    match command {
        Command::Hold { key, .. }
        | Command::Release { key, .. }
        | Command::Status { key, .. }
        | Command::Tell { key, .. }
        | Command::Mirror(mirror::Command::Put(key, _) | mirror::Command::Delete(key, _)) => key,
    }
}

/// A `MultiClusterService`, as events name it.
pub(super) fn about(namespace: &str, name: &str, uid: &str) -> About {
    About {
        api_version: MultiClusterService::api_version(&()),
        kind: networking::MULTI_CLUSTER_SERVICE.into(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        uid: Some(uid.to_owned()),
    }
}

/// Carries out writes until all senders are gone.
pub(super) async fn write_all(
    client: Client,
    permit: Permit,
    told: Events,
    hub: Arc<str>,
    wanted: UnboundedReceiver<Command>,
) {
    let placed = |command| (write_key(&command), command);
    latest::carry_out_all(wanted, placed, WriteKey::eq, move |_, command| {
        let (client, permit, told, hub) = (client.clone(), permit.clone(), told.clone(), Arc::clone(&hub));
        async move {
            if permit.holds() && carried_out(&client, &told, &hub, &command).await {
                return None;
            }
            tokio::time::sleep(PAUSE).await;
            Some(command)
        }
    })
    .await;
}

/// Whether there is nothing more to do about it.
async fn carried_out(client: &Client, told: &Events, hub: &str, command: &Command) -> bool {
    match send(client, told, hub, command).await {
        Ok(()) => true,
        // It is gone, or another state of it is there by now, of which the watch will tell.
        Err(error) if matches!(code(&error), Some(404 | 409)) => true,
        Err(error) if matches!(code(&error), Some(400 | 422)) => {
            let service = of(command);
            tracing::warn!(%service, why = why(&error), "the hub's API rejected a write about a MultiClusterService");
            true
        }
        Err(error) => {
            let service = of(command);
            tracing::debug!(%service, why = why(&error), "cannot write the status of a MultiClusterService yet");
            false
        }
    }
}

async fn send(client: &Client, told: &Events, hub: &str, command: &Command) -> Result<(), kube::Error> {
    let api =
        |key: &ServiceKey| Api::<MultiClusterService>::namespaced(client.clone(), key.namespace.as_str());
    let plain = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
    match command {
        Command::Hold { key, uid, revision, finalizers, id } => {
            let mut meta = json!({ "uid": uid, "resourceVersion": revision, "finalizers": finalizers });
            if let Some(id) = id {
                meta["labels"][label::MCS_PERMANENT_ID] = id.as_str().into();
            }
            let patch = Patch::Merge(json!({ "metadata": meta }));
            api(key).patch(key.name.as_str(), &plain, &patch).await.map(drop)
        }
        Command::Release { key, uid, revision, finalizers } => {
            let meta = json!({ "uid": uid, "resourceVersion": revision, "finalizers": finalizers });
            let patch = Patch::Merge(json!({ "metadata": meta }));
            api(key).patch(key.name.as_str(), &plain, &patch).await.map(drop)
        }
        Command::Status { key, uid, status } => {
            let object = json!({
                "apiVersion": format!("{}/{}", networking::GROUP, networking::V1ALPHA1),
                "kind": networking::MULTI_CLUSTER_SERVICE,
                "metadata": { "name": key.name.as_str(), "namespace": key.namespace.as_str(), "uid": uid },
                "status": status,
            });
            let params = PatchParams::apply(MANAGER).force();
            api(key).patch_status(key.name.as_str(), &params, &Patch::Apply(object)).await.map(drop)
        }
        Command::Mirror(mirror::Command::Put(key, slice)) => {
            let slices = Api::<EndpointSlice>::namespaced(client.clone(), key.namespace.as_str());
            let copy = atoll_member::mirrored(key, slice, hub);
            let params = PatchParams::apply(MANAGER).force();
            slices.patch(slice.name.as_str(), &params, &Patch::Apply(copy)).await.map(drop)
        }
        Command::Mirror(mirror::Command::Delete(key, name)) => {
            let slices = Api::<EndpointSlice>::namespaced(client.clone(), key.namespace.as_str());
            slices.delete(name.as_str(), &DeleteParams::default()).await.map(drop)
        }
        Command::Tell { key, uid, warning, reason, message } => {
            let about = about(key.namespace.as_str(), key.name.as_str(), uid);
            told.tell(Notice { about, warning: *warning, reason, message: message.clone() });
            Ok(())
        }
    }
}
