//! Watches: each object becomes a few small values and is dropped.

use std::fmt::Debug;
use std::time::Duration;

use atoll_api::types::{ClusterProperty, ServiceExport, ServiceImport};
use futures_util::StreamExt;
use k8s_openapi::api::core::v1::{Namespace, Node, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::core::{DeserializeGuard, Status};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, Resource};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tracing::debug;

use super::pulse::Pulse;
use crate::core::event::{Event, Gone};
use crate::core::object::Kind;
use crate::edge::{Edge, Readable, meta};
use crate::report::Problem;

/// How long the server keeps a watch. A connection that was cut silently is noticed after this and 5 s.
const WATCH: u32 = 50;
/// How many objects are in memory at once while a kind is listed.
///
/// Lists are read page by page, and consistently. A streamed list would need no pages, but kube asks for it "at any revision": an
/// API server that lags behind could leave out a slice, which we would withdraw everywhere.
const PAGE: u32 = 200;
const FIRST_DELAY: Duration = Duration::from_millis(100);
const LONGEST_DELAY: Duration = Duration::from_secs(2);

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
        let config = watcher::Config::default().timeout(WATCH).page_size(PAGE);
        let mut stream = std::pin::pin!(watcher(api, config));
        let mut reconnects = self.pulse.reconnects();
        let mut delay = FIRST_DELAY;
        loop {
            let next = tokio::select! {
                next = stream.next() => next,
                () = reconnects.next() => return End::Reconnected,
            };
            let closed = match next {
                Some(Ok(event)) => {
                    delay = FIRST_DELAY;
                    // The beginning of a list says nothing: it is not asked for yet.
                    if !matches!(event, watcher::Event::Init) {
                        self.pulse.hears(K::KIND);
                    }
                    self.pass(event).await.is_err()
                }
                Some(Err(error)) => {
                    debug!(kind = K::KIND.plural(), %error, "a watch failed");
                    let mut closed = false;
                    for event in refused(K::KIND, &error) {
                        closed |= self.events.send(event).await.is_err();
                    }
                    if let Some(why) = blinds(K::KIND, &error).filter(|_| !closed) {
                        self.pulse.deaf(K::KIND, why);
                        tokio::time::sleep(LONGEST_DELAY).await;
                        // Listed anew, since a watch that goes on shows nothing until something happens.
                        return End::Refused;
                    }
                    tokio::time::sleep(delay).await;
                    delay = (delay * 2).min(LONGEST_DELAY);
                    closed
                }
                None => true,
            };
            if closed {
                return End::Closed;
            }
        }
    }

    async fn pass<K: Readable + Resource>(&self, event: watcher::Event<K>) -> Result<(), ()> {
        let mut left_out = Vec::new();
        let event = match event {
            watcher::Event::Init => Some(Event::ListStarted(K::KIND)),
            watcher::Event::InitDone => Some(Event::Listed(K::KIND)),
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                match object.read(&self.edge, &mut left_out) {
                    Ok(seen) => seen.map(Event::Seen),
                    Err(why) => {
                        let (object, why) = (meta::object(K::KIND, object.meta()), why.to_string());
                        left_out.push(Problem::Unrepresentable { object, field: "the whole object", why });
                        None
                    }
                }
            }
            watcher::Event::Delete(object) => meta::version(object.meta())
                .ok()
                .map(|version| Event::Gone(Gone { object: meta::object(K::KIND, object.meta()), version })),
        };
        for event in left_out.into_iter().map(Event::Noticed).chain(event) {
            self.events.send(event).await.map_err(drop)?;
        }
        Ok(())
    }
}

/// What follows from a failed watch, if it will not mend by itself.
fn refused(kind: Kind, error: &watcher::Error) -> Vec<Event> {
    let Some(status) = status(error) else { return Vec::new() };
    let problem = match (status.code, kind) {
        (404, Kind::Node) => None,
        (404, _) => Some(Problem::KindAbsent(kind)),
        (401 | 403, _) => {
            Some(Problem::Forbidden { verb: "list and watch", kind, why: status.message.clone() })
        }
        _ => return Vec::new(),
    };
    // Without the nodes, only pods on their networks are missing, and those only where pod networks are declared.
    let without = (kind == Kind::Node).then_some(Event::Unlisted(kind));
    problem.map(Event::Noticed).into_iter().chain(without).collect()
}

/// Why nothing that was known of the kind counts any more; nodes are worth less.
fn blinds(kind: Kind, error: &watcher::Error) -> Option<&str> {
    let refused = status(error).filter(|status| kind != Kind::Node && matches!(status.code, 401 | 403))?;
    Some(&refused.message)
}

/// What the API said, if it said anything.
fn status(error: &watcher::Error) -> Option<&Status> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => Some(status),
        watcher::Error::InitialListFailed(_)
        | watcher::Error::WatchStartFailed(_)
        | watcher::Error::WatchFailed(_)
        | watcher::Error::NoResourceVersion => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(code: u16) -> watcher::Error {
        let status = serde_json::json!({"code": code, "message": "no"});
        watcher::Error::InitialListFailed(kube::Error::Api(serde_json::from_value(status).unwrap()))
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
