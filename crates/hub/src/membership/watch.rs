//! Watches membership in the hub's API: `Cluster` objects and their Secrets, turned into events of the roster.

use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

use atoll_api::names::{annotation, finalizer, secret};
use atoll_api::types::Cluster;
use atoll_api::types::cluster::SyncMode;
use atoll_engine::names::ClusterId;
use atoll_engine::network::Networks;
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;

use crate::membership::annotations;
use crate::membership::connect;
use crate::membership::roster::{Credentials, Event, NoLink, Wanted};

/// After a failed watch.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches both kinds for as long as somebody listens.
pub(crate) async fn membership(client: Client, namespace: String, events: UnboundedSender<Event>) {
    let mut clusters = pin!(watcher(
        Api::<Cluster>::all(client.clone()),
        watcher::Config::default().timeout(connect::WATCH)
    ));
    let mut secrets = pin!(watcher(
        Api::<Secret>::namespaced(client, &namespace),
        watcher::Config::default().timeout(connect::WATCH)
    ));
    let (mut of_clusters, mut of_secrets) = (Listing::default(), Listing::default());
    let mut listed = false;
    while !events.is_closed() {
        let seen: Vec<Event> = tokio::select! {
            Some(event) = clusters.next() => match event {
                Ok(event) => of_clusters.take(event).into_iter().filter_map(|s| cluster(s, &namespace)).collect(),
                Err(error) => failed("clusters", &error).await,
            },
            Some(event) = secrets.next() => match event {
                Ok(event) => of_secrets.take(event).into_iter().map(credentials).collect(),
                Err(error) => failed("secrets", &error).await,
            },
        };
        let first = !listed && of_clusters.complete && of_secrets.complete;
        listed |= first;
        for event in seen.into_iter().chain(first.then_some(Event::Listed)) {
            let _ = events.send(event);
        }
    }
}

async fn failed(what: &str, error: &watcher::Error) -> Vec<Event> {
    tracing::warn!(%error, "cannot watch {what} in the hub's API");
    tokio::time::sleep(PAUSE).await;
    Vec::new()
}

/// An object, or the name of one that is gone.
enum Seen<K> {
    There(Box<K>),
    Gone(String),
}

/// Which objects a watch has shown: a list that comes again says by silence what is gone.
#[derive(Default)]
struct Listing {
    known: BTreeSet<String>,
    again: BTreeSet<String>,
    complete: bool,
}

impl Listing {
    fn take<K: ResourceExt>(&mut self, event: watcher::Event<K>) -> Vec<Seen<K>> {
        match event {
            watcher::Event::Init => {
                self.again.clear();
                Vec::new()
            }
            watcher::Event::InitApply(object) => {
                self.again.insert(object.name_any());
                vec![Seen::There(Box::new(object))]
            }
            watcher::Event::InitDone => {
                let before = std::mem::replace(&mut self.known, std::mem::take(&mut self.again));
                self.complete = true;
                before.difference(&self.known).cloned().map(Seen::Gone).collect()
            }
            watcher::Event::Apply(object) => {
                self.known.insert(object.name_any());
                vec![Seen::There(Box::new(object))]
            }
            watcher::Event::Delete(object) => {
                self.known.remove(&object.name_any());
                vec![Seen::Gone(object.name_any())]
            }
        }
    }
}

fn cluster(seen: Seen<Cluster>, namespace: &str) -> Option<Event> {
    let name = match &seen {
        Seen::There(cluster) => cluster.name_any(),
        Seen::Gone(name) => name.clone(),
    };
    let id = match ClusterId::parse(name) {
        Ok(id) => id,
        Err(error) => {
            tracing::warn!(%error, "ignoring an invalid Cluster");
            return None;
        }
    };
    Some(match seen {
        Seen::There(cluster) => Event::Cluster(id, Box::new(wanted(&cluster, namespace))),
        Seen::Gone(_) => Event::ClusterGone(id),
    })
}

/// What a `Cluster` asks for.
fn wanted(cluster: &Cluster, namespace: &str) -> Wanted {
    let spec = &cluster.spec;
    let secret = match (spec.sync_mode, &spec.secret_ref) {
        (SyncMode::Pull, _) => Err(NoLink::Pull),
        (SyncMode::Push, None) => Err(NoLink::NoSecretRef),
        (SyncMode::Push, Some(at)) if at.namespace != namespace => {
            Err(NoLink::ForeignNamespace(at.namespace.clone()))
        }
        (SyncMode::Push, Some(at)) => Ok(at.name.clone()),
    };
    let (networks, secret) = match annotations::declared(cluster.annotations()) {
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

fn credentials(seen: Seen<Secret>) -> Event {
    match seen {
        Seen::Gone(name) => Event::Secret(name, None),
        Seen::There(object) => Event::Secret(object.name_any(), read(&object)),
    }
}

/// The credentials in a Secret, if it holds a token.
pub(crate) fn read(object: &Secret) -> Option<Credentials> {
    let data = object.data.as_ref()?;
    let token = String::from_utf8(data.get(secret::TOKEN)?.0.clone()).ok()?;
    let ca = data.get(secret::CA_BUNDLE).map(|ca| ca.0.clone()).unwrap_or_default();
    Some(Credentials { token: token.trim().to_owned(), ca })
}

#[cfg(test)]
mod tests {
    use kube::api::ObjectMeta;

    use super::*;

    fn named(name: &str) -> Secret {
        Secret {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..Secret::default()
        }
    }

    #[test]
    fn a_second_list_says_by_silence_what_is_gone() {
        let mut listing = Listing::default();
        for event in [
            watcher::Event::Init,
            watcher::Event::InitApply(named("a")),
            watcher::Event::InitApply(named("b")),
        ] {
            listing.take(event);
        }
        assert!(!listing.complete);
        assert!(listing.take(watcher::Event::<Secret>::InitDone).is_empty());
        assert!(listing.complete);
        listing.take(watcher::Event::<Secret>::Init);
        listing.take(watcher::Event::InitApply(named("b")));
        let gone = listing.take(watcher::Event::<Secret>::InitDone);
        assert!(matches!(&gone[..], [Seen::Gone(name)] if name == "a"));
    }
}
