//! Watches membership in the hub's API: `Cluster` objects and their Secrets, turned into events of the roster.

use std::pin::pin;

use atoll_api::names::{annotation, finalizer};
use atoll_api::types::Cluster;
use atoll_api::types::cluster::SyncMode;
use atoll_engine::names::ClusterId;
use atoll_engine::network::Networks;
use atoll_watch::{Change, Config, Failure, Known, watch};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::membership::annotations;
use crate::membership::credentials;
use crate::membership::roster::{Event, NoLink, Wanted};

/// Watches both kinds until the receiver is dropped.
pub(crate) async fn membership(client: Client, namespace: String, events: UnboundedSender<Event>) {
    let mut clusters = pin!(watch(Api::<Cluster>::all(client.clone()), Config::default()));
    let mut secrets = pin!(watch(Api::<Secret>::namespaced(client, &namespace), Config::default()));
    let (mut of_clusters, mut of_secrets) = (Known::default(), Known::default());
    let (mut clusters_listed, mut secrets_listed, mut listed) = (false, false, false);
    while !events.is_closed() {
        let seen: Vec<Event> = tokio::select! {
            Some(event) = clusters.next() => {
                clusters_listed |= matches!(event, atoll_watch::Event::Listed);
                of_clusters.take(event, name).filter_map(|change| cluster(change, &namespace)).collect()
            },
            Some(event) = secrets.next() => {
                secrets_listed |= matches!(event, atoll_watch::Event::Listed);
                of_secrets.take(event, name).filter_map(secret).collect()
            },
        };
        let first = !listed && clusters_listed && secrets_listed;
        listed |= first;
        for event in seen.into_iter().chain(first.then_some(Event::Listed)) {
            let _ = events.send(event);
        }
    }
}

fn name<K: ResourceExt>(object: &K) -> Option<String> {
    Some(object.name_any())
}

fn failed(what: &str, failure: &Failure) {
    tracing::warn!(%failure, "cannot watch {what} in the hub's API");
}

fn cluster(change: Change<String, Cluster>, namespace: &str) -> Option<Event> {
    let (name, cluster) = match change {
        Change::Seen(name, cluster) => (name, Some(cluster)),
        Change::Gone(name) => (name, None),
        Change::Listed => return None,
        Change::Failed(failure) => {
            failed("clusters", &failure);
            return None;
        }
    };
    let id = match ClusterId::parse(name) {
        Ok(id) => id,
        Err(error) => {
            tracing::warn!(%error, "ignoring an invalid Cluster");
            return None;
        }
    };
    Some(match cluster {
        Some(cluster) => Event::Cluster(id, Box::new(wanted(&cluster, namespace))),
        None => Event::ClusterGone(id),
    })
}

/// What a `Cluster` asks for. `namespace`: the one whose Secrets it may name.
pub(crate) fn wanted(cluster: &Cluster, namespace: &str) -> Wanted {
    let spec = &cluster.spec;
    let secret = match (spec.sync_mode, &spec.secret_ref) {
        (SyncMode::Pull, _) => Err(NoLink::Pull),
        (SyncMode::Push, None) => Err(NoLink::NoSecretRef),
        (SyncMode::Push, Some(at)) if at.namespace != namespace => {
            Err(NoLink::ForeignNamespace(at.namespace.clone()))
        }
        (SyncMode::Push, Some(at)) => Ok(at.name.clone()),
    };
    let (networks, secret) = match annotations::networks(cluster) {
        Ok(networks) => (networks, secret),
        Err(error) => (Networks::default(), Err(NoLink::BadNetworks(error.to_string()))),
    };
    Wanted {
        uid: spec.id.clone().filter(|id| !id.is_empty()),
        endpoint: spec.api_endpoint.clone().filter(|endpoint| !endpoint.is_empty()),
        insecure: spec.insecure_skip_tls_verification.unwrap_or_default(),
        proxy: spec.proxy_url.clone().filter(|url| !url.is_empty()),
        secret,
        networks,
        deleted: cluster.metadata.deletion_timestamp.is_some(),
        finalizer: cluster.finalizers().iter().any(|name| name == finalizer::CLUSTER),
        cleaned: cluster.annotations().contains_key(annotation::CLEANED),
        created: cluster.creation_timestamp().map_or(i64::MAX, |time| time.0.as_second()),
    }
}

fn secret(change: Change<String, Secret>) -> Option<Event> {
    match change {
        Change::Seen(name, object) => Some(Event::Secret(name, credentials::read(&object).map(Box::new))),
        Change::Gone(name) => Some(Event::Secret(name, None)),
        Change::Listed => None,
        Change::Failed(failure) => {
            failed("secrets", &failure);
            None
        }
    }
}
