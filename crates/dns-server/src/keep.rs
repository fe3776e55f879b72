//! Keeps the snapshot as the cluster is: one task owns the catalog, watches feed it.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use atoll_api::names::{label, property};
use atoll_api::types::{ClusterProperty, ServiceImport};
use dns::{Catalog, Event, Kind, Name};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;

use crate::edge;
use crate::live::Live;
use crate::options::Options;
use crate::watch::{Change, Watched, follow};

/// As many events may wait as come in a burst.
const WAITING: usize = 1024;

/// Follows the cluster until it is dropped.
pub(crate) async fn keep(options: &Options, client: Client, live: &Arc<Live>) {
    let (events, mut incoming) = mpsc::channel(WAITING);
    let imports = follow(
        Watched::Imports,
        Api::<DeserializeGuard<ServiceImport>>::all(client.clone()),
        None,
        live,
        events.clone(),
        import_event,
    );
    let slices = follow(
        Watched::Slices,
        Api::<EndpointSlice>::all(client.clone()),
        Some(label::MCS_SERVICE_NAME),
        live,
        events.clone(),
        slice_event,
    );
    let properties = async {
        match &options.cluster {
            Some(cluster) => {
                // The receiver is below, and lives as long as this.
                let _ = events.send(Event::Local(Some(cluster.clone()))).await;
                std::future::pending::<()>().await;
            }
            None => {
                let api = Api::<DeserializeGuard<ClusterProperty>>::all(client);
                follow(Watched::Properties, api, None, live, events.clone(), property_event).await;
            }
        }
    };
    let serial = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // The lower half is what a serial number has room for; it counts around.
    let mut catalog = Catalog::new(options.settings.clone(), (serial & u64::from(u32::MAX)) as u32);
    let apply = async {
        while let Some(event) = incoming.recv().await {
            catalog.apply(event);
            // A list comes in bursts, and needs no snapshot per object.
            for _ in 0..WAITING {
                let Ok(event) = incoming.try_recv() else { break };
                catalog.apply(event);
            }
            if let Some(snapshot) = catalog.publish() {
                if snapshot.complete() && !live.snapshot().complete() {
                    tracing::info!(services = snapshot.services(), "everything is listed: answering");
                }
                live.replace(snapshot);
            }
        }
    };
    tokio::join!(imports, slices, properties, apply);
}

fn import_event(change: Change<DeserializeGuard<ServiceImport>>) -> Option<Event> {
    Some(match change {
        Change::ListStarted => Event::ListStarted(Kind::Imports),
        Change::Listed => Event::Listed(Kind::Imports),
        Change::Gone(guarded) => gone(Kind::Imports, &guarded),
        Change::Seen(guarded) => {
            let (namespace, name) = (guarded.namespace().unwrap_or_default(), guarded.name_any());
            match guarded.0 {
                Ok(import) => Event::Import { namespace, name, import: edge::import(&import) },
                Err(error) => {
                    tracing::warn!(namespace, name, error = %error.error, "a ServiceImport that can't be read");
                    Event::Gone { kind: Kind::Imports, namespace, name }
                }
            }
        }
    })
}

fn slice_event(change: Change<EndpointSlice>) -> Option<Event> {
    Some(match change {
        Change::ListStarted => Event::ListStarted(Kind::Slices),
        Change::Listed => Event::Listed(Kind::Slices),
        Change::Gone(object) => gone(Kind::Slices, &object),
        Change::Seen(object) => match edge::slice(&object) {
            Some(slice) => {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                Event::Slice { namespace, name, slice }
            }
            None => gone(Kind::Slices, &object),
        },
    })
}

fn gone(kind: Kind, object: &impl ResourceExt) -> Event {
    Event::Gone { kind, namespace: object.namespace().unwrap_or_default(), name: object.name_any() }
}

/// The cluster's own name; other properties are others' business.
fn property_event(change: Change<DeserializeGuard<ClusterProperty>>) -> Option<Event> {
    let named = |object: &DeserializeGuard<ClusterProperty>| object.name_any() == property::CLUSTER_ID;
    match change {
        Change::Seen(object) if named(&object) => {
            let id = object.0.ok().and_then(|property| Name::parse(&property.spec.value).ok());
            Some(Event::Local(id))
        }
        Change::Gone(object) if named(&object) => Some(Event::Local(None)),
        Change::Seen(_) | Change::Gone(_) | Change::ListStarted | Change::Listed => None,
    }
}
