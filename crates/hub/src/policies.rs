//! Templates in the hub become objects in members: the shell around [`core`], which decides.
//!
//! ```text
//!   hub's API ── watches: policies, clusters, bindings, templates ──▶ core ──▶ orders ──▶ members (copies)
//!   hub's API ◀── write: bindings, status, events ◀────────────────────┘  ◀── reports ──────┘
//! ```

pub(crate) mod admission;
mod ask;
mod binding;
mod core;
mod edge;
mod implied;
mod seal;
pub(crate) mod seal_key;
#[cfg(test)]
mod tests;
mod trial;
mod turns;
mod watch;
mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use atoll_api::explain::Template;
use atoll_api::names::kind::{cluster, policy};
use atoll_engine::intent::CrossCluster;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::placement::access::Question;
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_link::{CopyReport, Down};
use atoll_member::Permit;
use atoll_member::events::{About, Events, Notice};
use jiff::Timestamp;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams};
use kube::{Api, Client};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, UnboundedReceiver, UnboundedSender, channel, unbounded_channel};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub(crate) use ask::{Authors, Standing};
pub(crate) use seal::Sealer;
pub(crate) use trial::{Moved, Trial};

use crate::leader::run::HubError;
use crate::membership::connect::code;
use crate::membership::session::Tell;
use crate::options::{Options, Unstamped};
use crate::services::imports;
use admission::Stamping;
use core::{Command, Event, Propagator, Scope, Source};
use write::{Part, Write, WriteKey};

/// Events taken in before the next plan.
const BATCH: usize = 1024;
/// What is to be shown waits once or twice as long for members that have not spoken.
const A_WHILE: Duration = Duration::from_secs(1);
/// Questions that wait, at most.
const QUESTIONS: usize = 64;

/// What the operator has chosen, and what is known of the hub's API.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The hub's own: nothing in it is a template.
    pub(crate) namespace: String,
    /// Whether namespaces of the hub are made in every member.
    pub(crate) sync_namespaces: bool,
    /// Whether copies of Services keep their `externalIPs`.
    pub(crate) external_ips: bool,
    /// Which stamps of authors are believed.
    pub(crate) stamps: Stamps,
    /// Rights come and go: after this, what was asked about authors is asked again.
    pub(crate) ask_again: Duration,
}

/// Which stamps of authors are believed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamps {
    /// Whether the API server writes them, so that no client can.
    pub(crate) genuine: bool,
    /// What becomes of policies without one.
    pub(crate) unstamped: Unstamped,
}

/// A member comes or goes.
#[derive(Debug)]
pub(crate) enum Membership {
    /// It runs, and takes orders.
    Started(ClusterId, Tell),
    /// It does not.
    Stopped(ClusterId),
}

/// What a leadership tells the policies, and who tells them what became of copies.
#[derive(Debug, Clone)]
pub(crate) struct Policies {
    membership: UnboundedSender<Membership>,
    reports: UnboundedSender<(ClusterId, CopyReport)>,
    implied: UnboundedSender<(ServiceKey, Option<Implied>)>,
    sealer: Sealer,
    absent: UnboundedSender<(ServiceKey, imports::Absent)>,
    trials: UnboundedSender<oneshot::Sender<Option<Trial>>>,
    explain: Sender<Explain>,
}

impl std::fmt::Debug for Explain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Explain").field("of", &self.of).finish_non_exhaustive()
    }
}

/// What policies do with the Service of a key is asked.
struct Explain {
    of: ServiceKey,
    then: Box<dyn FnOnce(Option<Template>) + Send>,
}

/// What the leadership is told.
#[derive(Debug)]
pub(crate) enum News {
    /// What became of the Service of a `MultiClusterService`.
    Copied(ServiceKey, Copied),
    /// Where `ServiceImports` go.
    Imports(imports::News),
}

/// What a `MultiClusterService` asks for its Service.
#[derive(Debug, Clone)]
pub(crate) struct Implied {
    /// What it asks for.
    pub(crate) intent: CrossCluster,
    /// Who wrote it, as its annotation says.
    pub(crate) author: Option<String>,
}

/// What became of the Service of a `MultiClusterService`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Copied {
    /// It is not known yet.
    Unknown,
    /// The hub has no such Service.
    NoTemplate,
    /// The `MultiClusterService` does not count, for this reason.
    Refused(String),
    /// Each cluster that holds it, or should; if not as it should be, why.
    Each(BTreeMap<ClusterId, Result<(), String>>),
}

impl Policies {
    /// A `MultiClusterService` is there, has changed, or is gone.
    pub(crate) fn imply(&self, key: ServiceKey, implied: Option<Implied>) {
        let _ = self.implied.send((key, implied));
    }

    /// Says what policies do with a Service of the hub; nothing if they have no time to say it.
    pub(crate) fn explain(&self, of: ServiceKey, then: impl FnOnce(Option<Template>) + Send + 'static) {
        if let Err(TrySendError::Full(asked) | TrySendError::Closed(asked)) =
            self.explain.try_send(Explain { of, then: Box::new(then) })
        {
            (asked.then)(None);
        }
    }

    /// A copy of what policies plan by, to try something on; none if they have not been listed yet.
    pub(crate) async fn trial(&self) -> Option<Trial> {
        let (answer, answered) = oneshot::channel();
        self.trials.send(answer).ok()?;
        answered.await.ok()?
    }

    /// Tells the hub's own bindings from others.
    pub(crate) fn sealer(&self) -> Sealer {
        self.sealer.clone()
    }

    /// Why clusters that should import a service do not; none if all do.
    pub(crate) fn absent(&self, key: ServiceKey, absent: imports::Absent) {
        let _ = self.absent.send((key, absent));
    }

    /// A member runs.
    pub(crate) fn started(&self, id: ClusterId, tell: Tell) {
        let _ = self.membership.send(Membership::Started(id, tell));
    }

    /// A member is stopped.
    pub(crate) fn stopped(&self, id: ClusterId) {
        let _ = self.membership.send(Membership::Stopped(id));
    }

    /// Where members report.
    pub(crate) fn reports(&self) -> UnboundedSender<(ClusterId, CopyReport)> {
        self.reports.clone()
    }
}

/// Carries out policies for one time of leadership: until the task is dropped.
pub(crate) fn spawn(
    client: Client,
    watches: Client,
    rules: Rules,
    sealer: Sealer,
    (permit, told_of): (Permit, Events),
    there: BTreeMap<ServiceKey, Implied>,
    tasks: &mut JoinSet<()>,
) -> (Policies, UnboundedReceiver<News>) {
    let (membership, members) = unbounded_channel();
    let (reports, reported) = unbounded_channel();
    let (implied, implies) = unbounded_channel();
    let (absent, absents) = unbounded_channel();
    let (told, news) = unbounded_channel();
    let (trials, tried) = unbounded_channel();
    let mut propagator = Propagator::new(rules, sealer.clone());
    for (key, implied) in there {
        propagator.imply(key, Some(&implied)); // before anything is planned
    }
    let (explain, asked) = channel(QUESTIONS);
    let inputs = Inputs { members, reported, implies, absents, asked, tried };
    tasks.spawn(Shell::run(propagator, client, watches, (permit, told_of), inputs, told));
    (Policies { membership, reports, implied, sealer, absent, explain, trials }, news)
}

/// Before policies are carried out: the API server's help, and the key by which the hub knows its own bindings. `started`: since when
/// this process runs.
pub(crate) async fn prepare(
    client: &Client,
    options: &Options,
    started: Timestamp,
) -> Result<(Rules, Sealer), HubError> {
    let namespace = options.namespace.as_str();
    let stamping = admission::install(client).await?;
    let known = seal_key::find(client, namespace).await?;
    // Stamps from before the API server wrote them may be of any user.
    match stamping {
        Stamping::Installed(new) if new || known.is_none() => admission::clear(client, None).await?,
        Stamping::Own if known.is_none() => admission::clear(client, Some(started)).await?,
        Stamping::Installed(_) | Stamping::Own | Stamping::None => {}
    }
    let key = match known {
        Some(key) => key,
        None => seal_key::make(client, namespace).await?,
    };
    let propagation = options.propagation;
    let rules = Rules {
        namespace: namespace.to_owned(),
        sync_namespaces: options.sync_namespaces,
        external_ips: propagation.external_ips,
        stamps: Stamps { genuine: stamping != Stamping::None, unstamped: propagation.unstamped },
        ask_again: propagation.ask_again,
    };
    Ok((rules, Sealer::new(&key, propagation.adopt_bindings)))
}

/// What comes from the leadership.
struct Inputs {
    members: UnboundedReceiver<Membership>,
    reported: UnboundedReceiver<(ClusterId, CopyReport)>,
    implies: UnboundedReceiver<(ServiceKey, Option<Implied>)>,
    absents: UnboundedReceiver<(ServiceKey, imports::Absent)>,
    asked: Receiver<Explain>,
    tried: UnboundedReceiver<oneshot::Sender<Option<Trial>>>,
}

/// The kinds of which a cluster may hold copies, by what the hub itself has written down.
pub(crate) async fn held_by(
    hub: &Client,
    sealer: &Sealer,
    id: &ClusterId,
) -> Result<BTreeSet<Kind>, kube::Error> {
    let mut kinds = BTreeSet::new();
    for kind in binding::kinds() {
        let gvk = GroupVersionKind::gvk(kind.group(), kind.version(), &kind.kind);
        let api: Api<DynamicObject> = Api::all_with(hub.clone(), &ApiResource::from_gvk(&gvk));
        let bindings = match api.list(&ListParams::default()).await {
            Ok(bindings) => bindings,
            // A hub that has never had policies.
            Err(error) if code(&error) == Some(404) => continue,
            Err(error) => return Err(error),
        };
        for binding in bindings {
            let key = ObjectKey {
                kind: kind.clone(),
                namespace: binding.metadata.namespace.clone().unwrap_or_default(),
                name: binding.metadata.name.clone().unwrap_or_default(),
            };
            let binding = watch::read(&kind, binding);
            if let Ok(recalled) = sealer.believe(&key, &binding)
                && recalled.holders.contains(id)
            {
                kinds.insert(recalled.of.kind);
            }
        }
    }
    Ok(kinds)
}

struct Shell {
    watches: Client,
    members: BTreeMap<ClusterId, Tell>,
    events: UnboundedSender<Event>,
    writes: UnboundedSender<(WriteKey, Write)>,
    questions: UnboundedSender<Question>,
    news: UnboundedSender<News>,
    told: Events,
    tasks: JoinSet<()>,
}

impl Shell {
    async fn run(
        mut propagator: Propagator,
        client: Client,
        watches: Client,
        (permit, told): (Permit, Events),
        inputs: Inputs,
        news: UnboundedSender<News>,
    ) {
        let Inputs {
            members: mut membership,
            reported: mut reports,
            mut implies,
            mut absents,
            mut asked,
            mut tried,
        } = inputs;
        let (events, mut noted) = unbounded_channel();
        let (writes, to_write) = unbounded_channel();
        let mut tasks = JoinSet::new();
        let (questions, to_ask) = unbounded_channel();
        tasks.spawn(ask::ask_all(client.clone(), to_ask, events.clone()));
        tasks.spawn(write::write_all(client, permit, to_write, events.clone()));
        let members = BTreeMap::new();
        let mut shell = Self { watches, members, events, writes, questions, news, told, tasks };
        for source in Source::FIXED {
            shell.watch(kind_of(&source), source);
        }
        let mut whiles = tokio::time::interval(A_WHILE);
        whiles.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let ask_again = propagator.ask_again();
        let mut asking = tokio::time::interval_at(tokio::time::Instant::now() + ask_again, ask_again);
        asking.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let event = tokio::select! {
                biased;
                member = membership.recv() => match member {
                    Some(member) => Some(shell.member(member)),
                    None => return,
                },
                Some((key, implied)) = implies.recv() => Some(Event::Implied(key, implied.map(Box::new))),
                Some(event) = noted.recv() => Some(event),
                Some((key, absent)) = absents.recv() => Some(Event::Absent(key, absent)),
                Some((id, report)) = reports.recv() => Some(Event::Copy(id, report)),
                Some(Explain { of, then }) = asked.recv() => {
                    then(propagator.explain(&implied::template(&of)));
                    continue;
                }
                Some(answer) = tried.recv() => {
                    let _ = answer.send(propagator.trial()); // whoever asked may have gone
                    continue;
                }
                _ = asking.tick() => Some(Event::AskAgain),
                _ = whiles.tick(), if propagator.waits() => Some(Event::Waited),
            };
            let now = format!("{:.0}", Timestamp::now());
            let mut next = event;
            for _ in 0..BATCH {
                let Some(event) = next.take() else { break };
                propagator.take(event, &now);
                next = noted.try_recv().ok();
                if next.is_none() {
                    next = reports.try_recv().ok().map(|(id, report)| Event::Copy(id, report));
                }
            }
            if let Some(event) = next {
                propagator.take(event, &now);
            }
            for command in propagator.work(&now) {
                shell.carry_out(command);
            }
        }
    }

    fn member(&mut self, member: Membership) -> Event {
        match member {
            Membership::Started(id, tell) => {
                self.members.insert(id.clone(), tell);
                Event::Started(id)
            }
            Membership::Stopped(id) => {
                self.members.remove(&id);
                Event::Stopped(id)
            }
        }
    }

    fn watch(&mut self, kind: Kind, source: Source) {
        self.tasks.spawn(watch::watch(self.watches.clone(), kind, source, self.events.clone()));
    }

    fn carry_out(&mut self, command: Command) {
        let (object, part, write) = match command {
            Command::Watch(kind) => return self.watch(kind.clone(), Source::Templates(kind)),
            Command::Copied(key, copied) => return drop(self.news.send(News::Copied(key, copied))),
            Command::Imports(news) => return drop(self.news.send(News::Imports(news))),
            Command::Order(id, key, order) => {
                if let Some(member) = self.members.get(&id) {
                    member.send(Down::Order { key, order });
                }
                return;
            }
            Command::Ask(question) => return drop(self.questions.send(question)),
            Command::PutBinding { of, binding, object, anew } => {
                (binding, Part::Itself, Write::Put { object, of, anew })
            }
            Command::PutStatus(key, status) => (key, Part::Status, Write::Status(status)),
            Command::DeleteBinding(key) => (key, Part::Itself, Write::Delete),
            Command::Tell { of, uid, warning, reason, message } => {
                let about = About {
                    api_version: of.kind.api_version.to_string().into(),
                    kind: of.kind.kind.to_string().into(),
                    namespace: of.namespace,
                    name: of.name,
                    uid: Some(uid),
                };
                return self.told.tell(Notice { about, warning, reason, message });
            }
        };
        let _ = self.writes.send((WriteKey { object, part }, write));
    }
}

fn kind_of(source: &Source) -> Kind {
    let policy = |kind: &str| Kind::new(format!("{}/{}", policy::GROUP, policy::V1ALPHA1), kind);
    let [binding, cluster_binding] = binding::kinds();
    match source {
        Source::Propagation(Scope::Namespace) => policy(policy::PROPAGATION_POLICY),
        Source::Propagation(Scope::Cluster) => policy(policy::CLUSTER_PROPAGATION_POLICY),
        Source::Overriding(Scope::Namespace) => policy(policy::OVERRIDE_POLICY),
        Source::Overriding(Scope::Cluster) => policy(policy::CLUSTER_OVERRIDE_POLICY),
        Source::Clusters => Kind::new(format!("{}/{}", cluster::GROUP, cluster::V1ALPHA1), cluster::CLUSTER),
        Source::Namespaces => Kind::new("v1", "Namespace"),
        Source::Bindings(Scope::Namespace) => binding,
        Source::Bindings(Scope::Cluster) => cluster_binding,
        Source::Templates(kind) => kind.clone(),
    }
}
