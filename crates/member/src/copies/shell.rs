//! The shell around the state machine of copies: discovery, watches, requests. It decides nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_api::names::label;
use atoll_engine::names::ClusterId;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_link::{Identity, Order, Up};
use atoll_watch::Config;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use kube::api::{Api, DynamicObject, GroupVersionKind};
use kube::discovery;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};
use tracing::{debug, warn};

use super::core::{Command, Core, Event};
use super::live::Live;
use super::requests::{self, Route};
use crate::audit::because;
use crate::clients::WRITE_DEADLINE;
use crate::core::event::Failure;
use crate::shell::failure;
use crate::{Clients, Permit, Uplink};

/// How long requests in flight may take to end when the member is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// The copies of one member.
#[derive(Debug)]
pub struct Copies {
    orders: mpsc::UnboundedSender<(ObjectKey, Order)>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Copies {
    /// Orders something of one object. The latest order counts.
    pub fn order(&self, key: ObjectKey, order: Order) {
        // A member that has ended can't be asked; its end is known by other means.
        let _ = self.orders.send((key, order));
    }

    /// Ends: no new requests; those in flight may end.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Starts to keep copies in a member. It ends when its handle is stopped or dropped.
pub fn spawn(identity: &Identity, clients: Clients, permit: Permit, up: Uplink) -> Copies {
    let (orders, ordered) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let (events, noted) = mpsc::unbounded_channel();
    let core = Core::new(identity.cluster.as_str());
    let (cluster, hub) = (identity.cluster.clone(), Arc::clone(&identity.hub));
    let shell = Shell {
        core,
        cluster,
        hub,
        clients,
        permit,
        up,
        routes: BTreeMap::new(),
        events,
        tasks: JoinSet::new(),
    };
    let task = tokio::spawn(shell.run(ordered, noted, stopped));
    Copies { orders, stop, task }
}

struct Shell {
    core: Core,
    cluster: ClusterId,
    hub: Arc<str>,
    clients: Clients,
    permit: Permit,
    up: Uplink,
    routes: BTreeMap<Kind, Route>,
    events: mpsc::UnboundedSender<Noted>,
    tasks: JoinSet<()>,
}

/// What discovery and watches say.
enum Noted {
    Route(Kind, Result<Option<Route>, Failure>),
    Event(Event),
}

impl Shell {
    async fn run(
        mut self,
        mut ordered: mpsc::UnboundedReceiver<(ObjectKey, Order)>,
        mut noted: mpsc::UnboundedReceiver<Noted>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let mut flying = FuturesUnordered::new();
        let mut permits = self.permit.changes();
        let mut inbox = VecDeque::from([Event::Permitted(self.permit.holds())]);
        loop {
            while let Some(event) = inbox.pop_front() {
                for command in self.core.step(event, Instant::now()) {
                    match command {
                        Command::Discover(kind) => self.discover(kind),
                        Command::Report(report) => self.up.send(Up::Copy(report)),
                        Command::Send(key, request) => match self.routes.get(&key.kind).cloned() {
                            Some(route) => {
                                let (client, permit) = (self.clients.writes.clone(), self.permit.clone());
                                let hub = Arc::clone(&self.hub);
                                let cause = self.clients.cause(|| self.core.cause(&key));
                                flying.push(tokio::spawn(async move {
                                    let sent = requests::send(&client, &permit, &hub, &route, &key, &request);
                                    let answer = because(cause, sent).await;
                                    Event::Answered(key, answer)
                                }));
                            }
                            None => inbox.push_back(Event::Answered(key, Err(Failure::NotFound))),
                        },
                    }
                }
            }
            let wake = self.core.next_wake();
            tokio::select! {
                biased;
                _ = &mut stopped => break,
                () = permits.next() => inbox.push_back(Event::Permitted(self.permit.holds())),
                Some(done) = flying.next() => match done {
                    Ok(event) => {
                        if let Event::Answered(key, Err(why)) = &event {
                            debug!(cluster = %self.cluster, %key, ?why, "a request about a copy failed");
                        }
                        inbox.push_back(event);
                    }
                    Err(error) => warn!(cluster = %self.cluster, %error, "a request about a copy was aborted"),
                },
                order = ordered.recv() => match order {
                    Some((key, order)) => inbox.push_back(Event::Ordered(key, order)),
                    None => break,
                },
                Some(noted) = noted.recv() => match noted {
                    Noted::Event(event) => inbox.push_back(event),
                    Noted::Route(kind, found) => inbox.push_back(self.found(kind, found)),
                },
                () = sleep_until(wake) => inbox.push_back(Event::Tick),
            }
        }
        self.tasks.abort_all();
        let rest = async { while flying.next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, rest).await.is_err() {
            warn!(cluster = %self.cluster, "requests about copies were still in flight when the member was stopped");
        }
    }

    /// Asks whether a kind is served.
    fn discover(&mut self, kind: Kind) {
        let (client, events) = (self.clients.writes.clone(), self.events.clone());
        self.tasks.spawn(async move {
            let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
            let asked =
                tokio::time::timeout(WRITE_DEADLINE, discovery::oneshot::pinned_kind(&client, &gvk)).await;
            let found = match asked {
                Ok(Ok((resource, capabilities))) => Ok(Some(Route { resource, capabilities })),
                Ok(Err(kube::Error::Discovery(_))) => Ok(None),
                Ok(Err(error)) if failure::is_absent(&error) => Ok(None),
                Ok(Err(error)) => Err(failure::of(&error)),
                Err(_) => Err(Failure::Unreachable("no answer within 5 s".to_owned())),
            };
            let _ = events.send(Noted::Route(kind, found));
        });
    }

    /// A kind that is served is watched from then on.
    fn found(&mut self, kind: Kind, found: Result<Option<Route>, Failure>) -> Event {
        match found {
            Ok(Some(route)) => {
                let api = Api::all_with(self.clients.watches.clone(), &route.resource);
                let (hub, events) = (Arc::clone(&self.hub), self.events.clone());
                self.tasks.spawn(watch(kind.clone(), api, hub, events));
                self.routes.insert(kind.clone(), route);
                Event::Kind(kind, Ok(true))
            }
            Ok(None) => Event::Kind(kind, Ok(false)),
            Err(failure) => Event::Kind(kind, Err(failure)),
        }
    }
}

/// Watches our copies of one kind, for as long as it is served and may be watched.
async fn watch(kind: Kind, api: Api<DynamicObject>, hub: Arc<str>, events: mpsc::UnboundedSender<Noted>) {
    let ours = format!("{}={hub}", label::PROPAGATED);
    let mut stream = std::pin::pin!(atoll_watch::watch(api, Config::default().labels(&ours)));
    // The names of the list that is under way. Which copies are missing from it is for the core to say: it also knows those that it wrote.
    let mut list = None;
    while let Some(next) = stream.next().await {
        let event = match next {
            atoll_watch::Event::ListStarted => {
                list = Some(BTreeSet::new());
                continue;
            }
            atoll_watch::Event::Seen(object) => {
                let (key, live) = read(&kind, &object, &hub);
                if let Some(list) = &mut list {
                    list.insert(key.clone());
                }
                Event::Seen(key, Box::new(live))
            }
            atoll_watch::Event::Listed => Event::Listed(kind.clone(), list.take().unwrap_or_default()),
            atoll_watch::Event::Gone(object) => {
                let (key, live) = read(&kind, &object, &hub);
                Event::Gone(key, live.uid)
            }
            atoll_watch::Event::Following => continue,
            atoll_watch::Event::Failed(failure) => {
                debug!(%kind, %failure, "a watch of copies failed");
                let ended = if failure.is_absent() {
                    Ok(false)
                } else if failure.is_refused() {
                    Err(Failure::Forbidden(failure.to_string()))
                } else {
                    continue;
                };
                let _ = events.send(Noted::Event(Event::Kind(kind, ended)));
                return;
            }
        };
        if events.send(Noted::Event(event)).is_err() {
            return;
        }
    }
}

fn read(kind: &Kind, object: &DynamicObject, hub: &str) -> (ObjectKey, Live) {
    let key = ObjectKey {
        kind: kind.clone(),
        namespace: object.metadata.namespace.clone().unwrap_or_default(),
        name: object.metadata.name.clone().unwrap_or_default(),
    };
    let mut value = serde_json::to_value(object).unwrap_or_default();
    // Elements of a list do not say what they are.
    (value["apiVersion"], value["kind"]) = (kind.api_version.as_str().into(), kind.kind.as_str().into());
    (key, Live::read(&value, hub))
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}
