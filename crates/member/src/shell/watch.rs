//! Watches: each object becomes a few small values and is dropped.

use std::fmt::Debug;

use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use atoll_link::{Access, Field, Problem};
use atoll_watch::{Backoff, Config, Failure};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::DeserializeGuard;
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tracing::debug;

use super::pulse::Pulse;
use crate::core::event::{Event, Gone};
use crate::core::object::Kind;
use crate::edge::{Edge, Readable, meta};

/// Watches every kind.
pub(super) fn all(client: &Client, edge: &Edge, events: &Sender<Event>, pulse: &Pulse) -> JoinSet<()> {
    let mut tasks = JoinSet::new();
    let watch = Watch { edge: edge.clone(), events: events.clone(), pulse: pulse.clone() };
    tasks.spawn(watch.clone().run::<Namespace>(Api::all(client.clone())));
    tasks.spawn(watch.clone().run::<Node>(Api::all(client.clone())));
    tasks.spawn(watch.clone().run::<DeserializeGuard<ServiceExport>>(Api::all(client.clone())));
    tasks.spawn(watch.clone().run::<Service>(Api::all(client.clone())));
    tasks.spawn(watch.clone().run::<EndpointSlice>(Api::all(client.clone())));
    tasks.spawn(watch.clone().run::<DeserializeGuard<ServiceImport>>(Api::all(client.clone())));
    tasks.spawn(watch.run::<DeserializeGuard<ClusterProperty>>(Api::all(client.clone())));
    tasks
}

#[derive(Clone)]
struct Watch {
    edge: Edge,
    events: Sender<Event>,
    pulse: Pulse,
}

/// Why a watch is begun anew.
enum End {
    Reconnected,
    Refused,
    Closed,
}

impl Watch {
    async fn run<K>(self, api: Api<K>)
    where
        K: Readable + Resource + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    {
        while let End::Reconnected | End::Refused = self.follow(api.clone()).await {}
    }

    async fn follow<K>(&self, api: Api<K>) -> End
    where
        K: Readable + Resource + Clone + Debug + serde::de::DeserializeOwned + Send + 'static,
    {
        let mut stream = std::pin::pin!(atoll_watch::watch(api, Config::default()));
        let mut reconnects = self.pulse.reconnects();
        loop {
            let next = tokio::select! {
                next = stream.next() => next,
                () = reconnects.next() => return End::Reconnected,
            };
            let closed = match next {
                Some(atoll_watch::Event::Failed(failure)) => {
                    debug!(kind = K::KIND.plural(), %failure, "a watch failed");
                    let mut closed = false;
                    for event in refused(K::KIND, &failure) {
                        closed |= self.events.send(event).await.is_err();
                    }
                    if let Some(why) = blinds(K::KIND, &failure).filter(|_| !closed) {
                        self.pulse.deaf(K::KIND, why);
                        tokio::time::sleep(Backoff::LONGEST).await;
                        // Listed anew, since a watch that goes on shows nothing until something happens.
                        return End::Refused;
                    }
                    closed
                }
                Some(event) => {
                    // The beginning of a list says nothing: it is not asked for yet.
                    if !matches!(event, atoll_watch::Event::ListStarted) {
                        self.pulse.hears(K::KIND);
                    }
                    self.pass(event).await.is_err()
                }
                None => true,
            };
            if closed {
                return End::Closed;
            }
        }
    }

    async fn pass<K: Readable + Resource>(&self, event: atoll_watch::Event<K>) -> Result<(), ()> {
        let mut left_out = Vec::new();
        let event = match event {
            atoll_watch::Event::ListStarted => Some(Event::ListStarted(K::KIND)),
            atoll_watch::Event::Listed => Some(Event::Listed(K::KIND)),
            atoll_watch::Event::Seen(object) => match object.read(&self.edge, &mut left_out) {
                Ok(seen) => seen.map(Event::Seen),
                Err(why) => {
                    let (object, why) = (meta::object(K::KIND, object.meta()), why.to_string());
                    left_out.push(Problem::Unrepresentable { object, field: Field::WholeObject, why });
                    None
                }
            },
            atoll_watch::Event::Gone(object) => meta::version(object.meta())
                .ok()
                .map(|version| Event::Gone(Gone { object: meta::object(K::KIND, object.meta()), version })),
            atoll_watch::Event::Following | atoll_watch::Event::Failed(_) => None,
        };
        for event in left_out.into_iter().map(Event::Noticed).chain(event) {
            self.events.send(event).await.map_err(drop)?;
        }
        Ok(())
    }
}

/// What follows from a failed watch, if it will not mend by itself.
fn refused(kind: Kind, failure: &Failure) -> Vec<Event> {
    let Some(status) = failure.status() else { return Vec::new() };
    let problem = match (status.code, kind) {
        (404, Kind::Node) => None,
        (404, _) => Some(Problem::KindAbsent(kind)),
        (401 | 403, _) => {
            Some(Problem::Forbidden { verb: Access::ListAndWatch, kind, why: status.message.clone() })
        }
        _ => return Vec::new(),
    };
    // Without the nodes, only pods on their networks are missing, and those only where pod networks are declared.
    let without = (kind == Kind::Node).then_some(Event::Unlisted(kind));
    problem.map(Event::Noticed).into_iter().chain(without).collect()
}

/// Why nothing that was known of the kind counts any more; nodes are worth less.
fn blinds(kind: Kind, failure: &Failure) -> Option<&str> {
    let refused = failure.status().filter(|_| kind != Kind::Node && failure.is_refused())?;
    Some(&refused.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: u16) -> Failure {
        let status = serde_json::json!({"code": code, "message": "no"});
        Failure::List(kube::Error::Api(serde_json::from_value(status).unwrap()))
    }

    #[test]
    fn nodes_that_may_not_be_listed_are_said_and_not_waited_for() {
        let said = |kind, code| format!("{:?}", refused(kind, &failed(code)));
        let forbidden = said(Kind::Node, 403);
        assert!(forbidden.contains("Forbidden") && forbidden.contains("Unlisted(Node)"), "{forbidden}");
        assert_eq!(said(Kind::Node, 404), "[Unlisted(Node)]");
        assert_eq!(said(Kind::Node, 500), "[]", "they may come yet");
        let forbidden = said(Kind::Slice, 403);
        assert!(forbidden.contains("Forbidden") && !forbidden.contains("Unlisted"), "{forbidden}");
        assert_eq!(said(Kind::Export, 404), "[Noticed(KindAbsent(Export))]");
    }

    #[test]
    fn a_kind_that_we_may_not_watch_stands_still_unless_it_is_nodes() {
        assert_eq!(blinds(Kind::Service, &failed(403)), Some("no"));
        assert_eq!(blinds(Kind::Slice, &failed(401)), Some("no"));
        assert_eq!(blinds(Kind::Slice, &failed(500)), None);
        assert_eq!(blinds(Kind::Node, &failed(403)), None);
    }
}
