//! The shell: runs watches and requests, asks the clock, and decides nothing.

pub(crate) mod failure;
mod families;
mod free;
mod pulse;
pub(crate) mod requests;
mod watch;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use atoll_engine::names::ClusterId;
use atoll_engine::time::Time;
use atoll_link::{Assignment, Identity};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tracing::{debug, warn};

use crate::audit::because;
use crate::core::Core;
use crate::core::event::{Command, Event, Failure, Now};
use crate::edge::Edge;
use crate::events::Events;
use crate::{Clients, Permit, Uplink};

/// What helps when the hub may not create events in a member.
const MAY_NOT_TELL: &str = "`atoll join` again adds the right to the hub's role in this member";
/// How many objects of watches may wait: a list is read no faster than it is taken in.
const WATCHED: usize = 256;
/// How long requests in flight may take to end when the member is stopped.
const PATIENCE: Duration = Duration::from_secs(5);

/// The imports, exports and dispatched slices of a member.
#[derive(Debug)]
pub(crate) struct Services {
    assignments: mpsc::UnboundedSender<Assignment>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Services {
    /// Asks the member to carry out its part of a plan.
    pub(crate) fn assign(&self, assignment: Assignment) {
        // A member that has ended can't be asked; its end is known by other means.
        let _ = self.assignments.send(assignment);
    }

    /// Ends the member: no new requests; those in flight may end, for at most 5 s.
    pub(crate) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

/// Starts a member. It ends when its handle is stopped or dropped.
pub(crate) fn spawn(identity: Identity, clients: Clients, permit: Permit, up: Uplink) -> Services {
    let (assignments, assigned) = mpsc::unbounded_channel();
    let (stop, stopped) = oneshot::channel();
    let shell = Shell::new(identity, clients, permit, up);
    let task = tokio::spawn(shell.run(assigned, stopped));
    Services { assignments, stop, task }
}

struct Shell {
    core: Core,
    identity: Identity,
    clients: Clients,
    permit: Permit,
    up: Uplink,
    edge: Edge,
}

impl Shell {
    fn new(identity: Identity, clients: Clients, permit: Permit, up: Uplink) -> Self {
        let core = Core::new(identity.clone());
        let edge = Edge { hub: Arc::clone(&identity.hub), interned: Arc::default() };
        Self { core, identity, clients, permit, up, edge }
    }

    async fn run(
        mut self,
        mut assigned: mpsc::UnboundedReceiver<Assignment>,
        mut stopped: oneshot::Receiver<()>,
    ) {
        let (events, mut watched) = mpsc::channel(WATCHED);
        let pulse = pulse::Pulse::new(self.identity.cluster.clone(), self.up.clone());
        let mut tasks = watch::all(&self.clients.watches, &self.edge, &events, &pulse);
        tasks.spawn(pulse::beat(self.clients.writes.clone(), pulse.clone(), events));
        let (client, permit) = (self.clients.writes.clone(), self.permit.clone());
        let told = Events::start(client, permit, self.identity.cluster.to_string(), MAY_NOT_TELL);
        let mut flying = FuturesUnordered::new();
        let mut permits = self.permit.changes();
        let mut inbox = VecDeque::from([Event::Permitted(self.permit.holds())]);
        loop {
            while let Some(event) = inbox.pop_front() {
                for command in self.core.step(event, now()) {
                    match command {
                        Command::Report(up) => self.up.send(up),
                        Command::Tell(notice) => told.tell(*notice),
                        Command::Write(target, request) => {
                            let (client, permit) = (self.clients.writes.clone(), self.permit.clone());
                            let edge = self.edge.clone();
                            let cause = self.clients.cause(|| self.core.cause(&target));
                            flying.push(tokio::spawn(async move {
                                let sent = requests::write(&client, &edge, &permit, &request);
                                let answer = because(cause, sent).await;
                                Event::Wrote(target, answer)
                            }));
                        }
                        Command::Read(target) => {
                            let (client, edge) = (self.clients.writes.clone(), self.edge.clone());
                            flying.push(tokio::spawn(async move {
                                let answer = requests::read(&client, &edge, &target).await;
                                Event::Read(target, answer)
                            }));
                        }
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
                        let refused = matches!(event, Event::Wrote(_, Err(Failure::NotPermitted)));
                        note(&event, &pulse, &self.identity.cluster);
                        inbox.push_back(event);
                        if refused {
                            // It may have been extended while the refusal was on its way.
                            inbox.push_back(Event::Permitted(self.permit.holds()));
                        }
                    }
                    Err(error) => warn!(cluster = %self.identity.cluster, %error, "a request was aborted"),
                },
                assignment = assigned.recv() => match assignment {
                    Some(assignment) => inbox.push_back(Event::Assigned(assignment)),
                    None => break,
                },
                Some(event) = watched.recv() => inbox.push_back(event),
                () = sleep_until(wake) => inbox.push_back(Event::Tick),
            }
        }
        tasks.shutdown().await; // whatever they have said is said before the end is
        let rest = async { while flying.next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, rest).await.is_err() {
            warn!(cluster = %self.identity.cluster, "requests were still in flight when the member was stopped");
        }
    }
}

fn note(event: &Event, pulse: &pulse::Pulse, cluster: &ClusterId) {
    let (target, failure) = match event {
        Event::Wrote(target, Err(failure)) | Event::Read(target, Err(failure)) => (target, failure),
        _ => return pulse.alive(),
    };
    debug!(%cluster, %target, why = %failure, "a request failed");
}

async fn sleep_until(wake: Option<Instant>) {
    match wake {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn now() -> Now {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let wall = Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Now { instant: Instant::now(), wall }
}
