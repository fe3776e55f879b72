//! Keeps the snapshots as the cluster is: one task owns the catalogs, watches feed them.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use atoll_api::names::{label, property};
use atoll_api::types::{ClusterProperty, ServiceImport};
use atoll_dns::{Catalog, Event, Kind, Name, Slice};
use atoll_watch::Event as Change;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DeserializeGuard;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc;

use crate::edge;
use crate::live::Live;
use crate::options::Options;
use crate::watch::{Watched, follow};

/// As many events may wait as come in a burst.
const WAITING: usize = 1024;

/// Which catalog an event is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Zone {
    Clusterset,
    Cluster,
}

/// One per zone.
struct Catalogs {
    clusterset: Catalog,
    cluster: Option<Catalog>,
}

impl Catalogs {
    fn apply(&mut self, (zone, event): (Zone, Event)) {
        match (zone, &mut self.cluster) {
            (Zone::Clusterset, _) => self.clusterset.apply(event),
            (Zone::Cluster, Some(cluster)) => cluster.apply(event),
            (Zone::Cluster, None) => {}
        }
    }

    fn publish(&mut self, live: &Live) {
        if let Some(snapshot) = self.cluster.as_mut().and_then(Catalog::publish) {
            live.replace_cluster(snapshot);
        }
        if let Some(snapshot) = self.clusterset.publish() {
            if snapshot.complete() && !live.snapshot().complete() {
                tracing::info!(services = snapshot.services(), "synced: answering queries");
            }
            live.replace(snapshot);
        }
    }
}

/// Follows the cluster until it is dropped.
pub(crate) async fn keep(options: &Options, client: Client, live: &Arc<Live>) {
    let (events, mut incoming) = mpsc::channel(WAITING);
    let imports = follow(
        Watched::Imports,
        Api::<DeserializeGuard<ServiceImport>>::all(client.clone()),
        None,
        live,
        &events,
        clusterset(import_event),
    );
    let slices = follow(
        Watched::Slices,
        Api::<EndpointSlice>::all(client.clone()),
        Some(label::MCS_SERVICE_NAME),
        live,
        &events,
        clusterset(|change| slice_event(change, edge::slice)),
    );
    let properties = async {
        match &options.cluster {
            Some(cluster) => {
                // The receiver is below, and lives as long as this.
                let _ = events.send((Zone::Clusterset, Event::Local(Some(cluster.clone())))).await;
                std::future::pending::<()>().await;
            }
            None => {
                let api = Api::<DeserializeGuard<ClusterProperty>>::all(client.clone());
                let read = clusterset(property_event);
                follow(Watched::Properties, api, None, live, &events, read).await;
            }
        }
    };
    let own_services = async {
        if options.cluster_zone.is_some() {
            let api = Api::<Service>::all(client.clone());
            let read = |change| Some((Zone::Cluster, service_event(change)?));
            follow(Watched::Services, api, None, live, &events, read).await;
        }
    };
    let own_slices = async {
        if options.cluster_zone.is_some() {
            let api = Api::<EndpointSlice>::all(client.clone());
            let read = |change| Some((Zone::Cluster, slice_event(change, edge::service_slice)?));
            let labels = Some(label::SERVICE_NAME);
            follow(Watched::ServiceSlices, api, labels, live, &events, read).await;
        }
    };
    let serial = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    // The lower half is what a serial number has room for; it counts around.
    let serial = (serial & u64::from(u32::MAX)) as u32;
    let mut catalogs = Catalogs {
        clusterset: Catalog::new(options.settings.clone(), serial),
        cluster: options.cluster_zone.clone().map(|settings| Catalog::new(settings, serial)),
    };
    let apply = async {
        while let Some(event) = incoming.recv().await {
            catalogs.apply(event);
            // A list comes in bursts, and needs no snapshot per object.
            for _ in 0..WAITING {
                let Ok(event) = incoming.try_recv() else { break };
                catalogs.apply(event);
            }
            catalogs.publish(live);
        }
    };
    tokio::join!(imports, slices, properties, own_services, own_slices, apply);
}

/// Reads for the clusterset's zone.
fn clusterset<K>(read: impl Fn(Change<K>) -> Option<Event>) -> impl Fn(Change<K>) -> Option<(Zone, Event)> {
    move |change| Some((Zone::Clusterset, read(change)?))
}

fn service_event(change: Change<Service>) -> Option<Event> {
    Some(match change {
        Change::ListStarted => Event::ListStarted(Kind::Imports),
        Change::Listed => Event::Listed(Kind::Imports),
        Change::Gone(object) => gone(Kind::Imports, &object),
        Change::Seen(object) => match edge::service(&object) {
            Some(import) => {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                Event::Import { namespace, name, import }
            }
            None => gone(Kind::Imports, &object),
        },
        Change::Following | Change::Failed(_) => return None,
    })
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
                    tracing::warn!(namespace, name, error = %error.error, "ignoring an invalid ServiceImport");
                    Event::Gone { kind: Kind::Imports, namespace, name }
                }
            }
        }
        Change::Following | Change::Failed(_) => return None,
    })
}

fn slice_event(
    change: Change<EndpointSlice>,
    read: impl Fn(&EndpointSlice) -> Option<Slice>,
) -> Option<Event> {
    Some(match change {
        Change::ListStarted => Event::ListStarted(Kind::Slices),
        Change::Listed => Event::Listed(Kind::Slices),
        Change::Gone(object) => gone(Kind::Slices, &object),
        Change::Seen(object) => match read(&object) {
            Some(slice) => {
                let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
                Event::Slice { namespace, name, slice }
            }
            None => gone(Kind::Slices, &object),
        },
        Change::Following | Change::Failed(_) => return None,
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
        Change::Seen(_) | Change::Gone(_) => None,
        Change::ListStarted | Change::Listed | Change::Following | Change::Failed(_) => None,
    }
}
