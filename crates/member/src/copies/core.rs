//! What is done next, for every object: decided from the order, what is there, and what was answered. No socket, no clock.

mod queue;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_api::names::{condition, kind, label};
use atoll_engine::placement::object::{Kind, ObjectKey};
use atoll_engine::placement::policy::ConflictResolution;
use atoll_link::{Access, CopyReport, CopyState, Order, WhyNot};
use serde_json::Value;

use super::live::Live;
use crate::audit::Cause;
use crate::core::event::Failure;
use queue::Queue;

/// A kind that the member does not serve is asked for again after this.
const ASK_AGAIN: Duration = Duration::from_secs(5);
/// What waits for a person is tried again after this.
const SLOW: Duration = Duration::from_secs(30);
/// What is not urgent is tried again after this.
const SLOWEST: Duration = Duration::from_secs(600);
/// What others make is looked for again after this.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// After a CRD was written, its kinds are asked for.
const SOON: Duration = Duration::from_millis(200);

/// Something that happened.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    /// The hub wants something.
    Ordered(ObjectKey, Order),
    /// Whether a kind is served.
    Kind(Kind, Result<bool, Failure>),
    /// All objects of a kind that are ours have been seen: these.
    Listed(Kind, BTreeSet<ObjectKey>),
    /// An object that is ours.
    Seen(ObjectKey, Box<Live>),
    /// The one of this uid is gone, or is ours no more.
    Gone(ObjectKey, String),
    /// A request was answered.
    Answered(ObjectKey, Result<Answer, Failure>),
    /// Whether we may write.
    Permitted(bool),
    /// Time has passed.
    Tick,
}

/// What a request was answered with.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// The object, as it is now.
    There(Box<Live>),
    /// There is none.
    Absent,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Find out whether a kind is served; then watch it.
    Discover(Kind),
    /// Send a request.
    Send(ObjectKey, Request),
    /// Tell the hub.
    Report(CopyReport),
}

/// A request about one object.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    /// See whether it is there.
    Look,
    /// Make it; fails if it is there.
    Create(Arc<Value>),
    /// Make it so, whoever had it.
    Apply {
        object: Arc<Value>,
        uid: String,
        /// It is not ours yet.
        adopt: bool,
        /// An autoscaler sees to its replicas.
        replicas: Option<Value>,
    },
    /// Make it so where all of it is ours.
    Replace { object: Arc<Value>, uid: String, revision: String },
    /// Take our fields over from the POST that made it.
    Migrate { uid: String, revision: String, managed: Value },
    /// Delete this state of it.
    Delete { uid: String, revision: String },
    /// Take our marks off it.
    Release { uid: String, revision: String },
}

impl Request {
    /// The right that it takes.
    pub(crate) fn access(&self) -> Access {
        match self {
            Self::Look => Access::Get,
            Self::Create(_) => Access::Create,
            Self::Replace { .. } => Access::Update,
            Self::Apply { .. } | Self::Migrate { .. } | Self::Release { .. } => Access::Patch,
            Self::Delete { .. } => Access::Delete,
        }
    }
}

/// What is known of an object.
#[derive(Debug, Default)]
struct Entry {
    order: Option<Order>,
    /// Tells this order from another.
    digest: u64,
    /// Ours, as it is there.
    live: Option<Live>,
    /// Not ours, as it is there.
    foreign: Option<Live>,
    /// What is known may be out of date: look before anything else.
    doubt: bool,
    /// The order whose fields are in place, and which fields these are.
    applied: Option<(u64, u64)>,
    /// Why it is not as ordered, by the last answer.
    stuck: Option<WhyNot>,
    told: Option<CopyState>,
    flying: Option<Flight>,
}

/// A request under way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    verb: Access,
    /// The order that it carries out, if it does.
    applies: Option<u64>,
}

/// Whether a kind is served.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Served {
    Asked,
    /// No; asked again at that time.
    Absent(Instant),
    /// It is not known; asked again at that time.
    Unknown(Instant, Failure),
    /// Yes; true when all that is ours has been seen.
    Yes(bool),
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct Core {
    cluster: String,
    permitted: bool,
    kinds: BTreeMap<Kind, Served>,
    entries: BTreeMap<ObjectKey, Entry>,
    queue: Queue,
    out: Vec<Command>,
}

impl Core {
    pub(crate) fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            permitted: false,
            kinds: BTreeMap::new(),
            entries: BTreeMap::new(),
            queue: Queue::default(),
            out: Vec::new(),
        }
    }

    /// Takes in an event; says what is to be done.
    pub(crate) fn step(&mut self, event: Event, now: Instant) -> Vec<Command> {
        match event {
            Event::Ordered(key, order) => self.ordered(key, order),
            Event::Kind(kind, served) => self.kind(&kind, served, now),
            Event::Listed(kind, all) => self.listed(&kind, &all),
            Event::Seen(key, live) => self.seen(key, *live),
            Event::Gone(key, uid) => {
                let its = |entry: &&mut Entry| entry.live.as_ref().is_some_and(|live| live.uid == uid);
                if let Some(entry) = self.entries.get_mut(&key).filter(its) {
                    entry.live = None;
                    self.queue.add(key);
                }
            }
            Event::Answered(key, answer) => self.answered(&key, answer, now),
            Event::Permitted(permitted) => self.permitted = permitted,
            Event::Tick => {}
        }
        self.queue.wake(now);
        self.ask_again(now);
        while self.permitted {
            let Some(key) = self.queue.next(now) else { break };
            self.look_at(&key, now);
        }
        std::mem::take(&mut self.out)
    }

    /// Why an object is written, for the audit log.
    pub(crate) fn cause(&self, key: &ObjectKey) -> Cause {
        let order = self.entries.get(key).and_then(|entry| entry.order.as_ref());
        let reason = match order {
            Some(Order::Hold { .. }) => "a policy of the hub propagates it here",
            Some(Order::Ensure(_)) => "the hub has this namespace, or something here needs it",
            Some(Order::Drop) => "no policy of the hub propagates it here any more",
            Some(Order::Release) => "its policy is gone, and leaves it here",
            Some(Order::Observe | Order::Suspend) | None => "",
        };
        Cause { name: key.name.clone(), reason: reason.to_owned() }
    }

    /// When something is to be done without an event.
    pub(crate) fn next_wake(&self) -> Option<Instant> {
        let kinds = self.kinds.values().filter_map(|served| match served {
            Served::Absent(at) | Served::Unknown(at, _) => Some(*at),
            Served::Asked | Served::Yes(_) => None,
        });
        kinds.chain(self.queue.next_wake()).min()
    }

    fn of_kind(&self, kind: &Kind) -> Vec<ObjectKey> {
        self.entries.keys().filter(|key| key.kind == *kind).cloned().collect()
    }

    fn wake_kind(&mut self, kind: &Kind) {
        self.of_kind(kind).into_iter().for_each(|key| self.queue.add(key));
    }

    fn ordered(&mut self, key: ObjectKey, order: Order) {
        let entry = self.entries.entry(key.clone()).or_default();
        entry.told = None; // whoever orders wants to hear what became of it
        entry.digest = digest(&order);
        entry.order = Some(order);
        entry.stuck = None;
        if !self.kinds.contains_key(&key.kind) {
            self.kinds.insert(key.kind.clone(), Served::Asked);
            self.out.push(Command::Discover(key.kind.clone()));
        }
        self.queue.hurry(key);
    }

    fn kind(&mut self, kind: &Kind, served: Result<bool, Failure>, now: Instant) {
        let state = match served {
            Ok(true) => Served::Yes(false),
            Ok(false) => Served::Absent(now + ASK_AGAIN),
            Err(failure) => {
                let pause = if let Failure::Forbidden(_) = failure { SLOW } else { LOOK_AGAIN };
                Served::Unknown(now + pause, failure)
            }
        };
        self.kinds.insert(kind.clone(), state);
        self.wake_kind(kind);
    }

    fn listed(&mut self, kind: &Kind, all: &BTreeSet<ObjectKey>) {
        self.kinds.insert(kind.clone(), Served::Yes(true));
        for key in self.of_kind(kind) {
            if let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.flying.is_none())
                && !all.contains(&key)
            {
                entry.live = None;
            }
            self.queue.add(key);
        }
    }

    fn seen(&mut self, key: ObjectKey, live: Live) {
        let entry = self.entries.entry(key.clone()).or_default();
        let older = |known: &Live| known.uid == live.uid && known.revision_number() > live.revision_number();
        if !entry.live.as_ref().is_some_and(older) {
            entry.live = Some(live);
            self.queue.add(key);
        }
    }

    /// Asks again for kinds that were not served.
    fn ask_again(&mut self, now: Instant) {
        for (kind, served) in &mut self.kinds {
            if matches!(served, Served::Absent(at) | Served::Unknown(at, _) if *at <= now) {
                *served = Served::Asked;
                self.out.push(Command::Discover(kind.clone()));
            }
        }
    }

    fn answered(&mut self, key: &ObjectKey, answer: Result<Answer, Failure>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let flight = entry.flying.take();
        self.queue.land();
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => {
                return self.failed(key, flight.map_or(Access::Get, |flight| flight.verb), failure, now);
            }
        };
        (entry.stuck, entry.doubt) = (None, false);
        match answer {
            Answer::There(live) if live.ours => {
                if let Some(order) = flight.and_then(|flight| flight.applies) {
                    entry.applied = Some((order, live.fields));
                }
                (entry.foreign, entry.live) = (None, Some(*live));
            }
            Answer::There(live) => (entry.foreign, entry.live) = (Some(*live), None),
            Answer::Absent => (entry.foreign, entry.live) = (None, None),
        }
        self.queue.recover(key);
        self.queue.add(key.clone());
        if key.kind.is("apiextensions.k8s.io", "CustomResourceDefinition") {
            // Kinds that were missing may be served soon.
            for served in self.kinds.values_mut() {
                if let Served::Absent(at) = served {
                    *at = (now + SOON).min(*at);
                }
            }
        }
        if key.kind.is("", "Namespace") {
            let inside = self.entries.keys().filter(|inside| inside.namespace == key.name).cloned();
            inside.collect::<Vec<_>>().into_iter().for_each(|key| self.queue.hurry(key));
        }
    }

    fn failed(&mut self, key: &ObjectKey, verb: Access, failure: Failure, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        let (stuck, pause) = match failure {
            // Look at what is there, then decide anew.
            Failure::AlreadyExists | Failure::Conflict => {
                entry.doubt = true;
                (None, Some(Duration::ZERO))
            }
            Failure::NotFound if verb == Access::Create => {
                (Some(WhyNot::NamespaceAbsent(key.namespace.clone())), None)
            }
            Failure::NotFound => {
                (entry.live, entry.foreign, entry.doubt) = (None, None, false);
                (None, Some(Duration::ZERO))
            }
            Failure::NamespaceTerminating => {
                (Some(WhyNot::NamespaceAbsent(key.namespace.clone())), Some(LOOK_AGAIN))
            }
            Failure::Forbidden(_) => {
                // What is only ensured is not asked for again and again.
                let pause = if let Some(Order::Ensure(_)) = entry.order { SLOWEST } else { SLOW };
                (Some(self.forbidden(verb, &key.kind)), Some(pause))
            }
            Failure::Invalid(why) => (Some(WhyNot::Rejected(why)), Some(SLOW)),
            Failure::Later(named) => (None, named),
            Failure::Unreachable(why) => {
                self.queue.stumble(now);
                (Some(WhyNot::Unreachable(why)), None)
            }
            Failure::NotPermitted => (None, None),
        };
        self.queue.later(key.clone(), pause, now);
        if let Some(why) = stuck {
            if let Some(entry) = self.entries.get_mut(key) {
                entry.stuck = Some(why.clone());
            }
            self.tell(key, CopyState::NotApplied(why));
        }
    }

    fn forbidden(&self, verb: Access, kind: &Kind) -> WhyNot {
        WhyNot::Forbidden { verb, resource: resource(kind), cluster: self.cluster.clone() }
    }

    /// Decides what is done about one object, and says how it is.
    fn look_at(&mut self, key: &ObjectKey, now: Instant) {
        let served = self.kinds.get(&key.kind).cloned();
        let Some(entry) = self.entries.get_mut(key) else { return };
        let Some(order) = entry.order.clone().filter(|_| entry.flying.is_none()) else { return };
        let step = match served {
            Some(Served::Yes(true)) if entry.doubt => Step::Send(Request::Look),
            Some(Served::Yes(true)) => decide(entry, &order),
            // Where the kind is not served, nothing of it is there.
            Some(Served::Absent(_)) if matches!(order, Order::Drop | Order::Release) => {
                Step::Tell(CopyState::Gone)
            }
            Some(Served::Absent(_)) => {
                let Kind { api_version, kind } = key.kind.clone();
                Step::Tell(CopyState::NotApplied(WhyNot::KindAbsent { api_version, kind }))
            }
            Some(Served::Unknown(_, Failure::Forbidden(_))) => {
                Step::Tell(CopyState::NotApplied(self.forbidden(Access::List, &key.kind)))
            }
            Some(Served::Unknown(_, failure)) => {
                Step::Tell(CopyState::NotApplied(WhyNot::Unreachable(format!("{failure:?}"))))
            }
            Some(Served::Asked | Served::Yes(false)) | None => return,
        };
        match step {
            Step::Send(request) => {
                let applies =
                    matches!(request, Request::Create(_) | Request::Apply { .. } | Request::Replace { .. });
                if let Some(entry) = self.entries.get_mut(key) {
                    let applies = applies.then_some(entry.digest);
                    entry.flying = Some(Flight { verb: request.access(), applies });
                }
                self.queue.fly();
                self.out.push(Command::Send(key.clone(), request));
            }
            Step::Tell(state) => {
                if let Some(entry) = self.entries.get_mut(key) {
                    // What is not ours is not watched: it has to be looked at again.
                    match &state {
                        CopyState::NotApplied(WhyNot::MadeByOthers) => {
                            entry.doubt = true;
                            self.queue.later(key.clone(), Some(LOOK_AGAIN), now);
                        }
                        CopyState::NotApplied(WhyNot::Foreign) => {
                            entry.doubt = true;
                            self.queue.later(key.clone(), Some(SLOW), now);
                        }
                        CopyState::Applied { status, .. } if order == Order::Observe => {
                            entry.doubt = true;
                            let pause = if is_settled(key, status) { SLOW } else { LOOK_AGAIN };
                            self.queue.later(key.clone(), Some(pause), now);
                        }
                        CopyState::NotApplied(_) | CopyState::Applied { .. } | CopyState::Gone => {}
                    }
                }
                self.tell(key, state);
            }
        }
    }

    /// Tells the hub what it has not been told; what is gone as ordered is forgotten.
    fn tell(&mut self, key: &ObjectKey, state: CopyState) {
        let Some(entry) = self.entries.get_mut(key).filter(|entry| entry.told.as_ref() != Some(&state))
        else {
            return;
        };
        let gone = state == CopyState::Gone;
        entry.told = Some(state.clone());
        self.out.push(Command::Report(CopyReport { key: key.clone(), state }));
        if gone {
            self.entries.remove(key);
        }
    }
}

/// What comes next for an object.
enum Step {
    Send(Request),
    Tell(CopyState),
}

/// What is done about an object of a kind whose copies are all known.
fn decide(entry: &Entry, order: &Order) -> Step {
    let release =
        |live: &Live| Step::Send(Request::Release { uid: live.uid.clone(), revision: live.revision.clone() });
    match order {
        Order::Hold { object, conflict } => hold(entry, object, *conflict),
        Order::Ensure(object) => match entry.live.as_ref().or(entry.foreign.as_ref()) {
            None => Step::Send(Request::Create(Arc::clone(object))),
            Some(live) => applied(live),
        },
        Order::Observe => match (entry.live.as_ref().or(entry.foreign.as_ref()), &entry.told) {
            (None, None) => Step::Send(Request::Look),
            (None, Some(_)) => Step::Tell(CopyState::NotApplied(WhyNot::MadeByOthers)),
            (Some(live), _) => applied(live),
        },
        Order::Suspend => Step::Tell(CopyState::NotApplied(WhyNot::Suspended)),
        Order::Drop => match &entry.live {
            None => Step::Tell(CopyState::Gone),
            Some(live) if live.deleting => Step::Tell(CopyState::NotApplied(WhyNot::Deleting)),
            Some(live) if live.adopted => release(live),
            Some(live) => {
                Step::Send(Request::Delete { uid: live.uid.clone(), revision: live.revision.clone() })
            }
        },
        Order::Release => entry.live.as_ref().map_or(Step::Tell(CopyState::Gone), release),
    }
}

fn hold(entry: &Entry, object: &Arc<Value>, conflict: ConflictResolution) -> Step {
    let apply = |live: &Live, adopt: bool| {
        Step::Send(Request::Apply {
            object: Arc::clone(object),
            uid: live.uid.clone(),
            adopt,
            replicas: live.replicas.clone().filter(|_| {
                live.autoscaled || object["metadata"]["labels"][label::RETAIN_REPLICAS] == "true"
            }),
        })
    };
    match (&entry.live, &entry.foreign) {
        (Some(live), _) if live.deleting => Step::Tell(CopyState::NotApplied(WhyNot::Deleting)),
        (Some(live), _) if entry.applied == Some((entry.digest, live.fields)) => applied(live),
        (Some(live), _) => match &live.posted {
            // As long as no other field manager has set a field of it, one write is enough.
            Some(_) if live.alone && !live.adopted && is_whole(object) => Step::Send(Request::Replace {
                object: Arc::clone(object),
                uid: live.uid.clone(),
                revision: live.revision.clone(),
            }),
            Some(managed) => Step::Send(Request::Migrate {
                uid: live.uid.clone(),
                revision: live.revision.clone(),
                managed: managed.clone(),
            }),
            None => apply(live, live.adopted),
        },
        (None, Some(there)) => match conflict {
            ConflictResolution::Abort => Step::Tell(CopyState::NotApplied(WhyNot::Foreign)),
            ConflictResolution::Overwrite => apply(there, true),
        },
        (None, None) => Step::Send(Request::Create(Arc::clone(object))),
    }
}

/// Whether an object has no field that API servers fill in: what is not in the template is then not in the copy.
fn is_whole(object: &Value) -> bool {
    object["apiVersion"] == "v1" && matches!(object["kind"].as_str(), Some("ConfigMap" | "Secret"))
}

/// Whether what others make has become what it should: an import is of use when it says so.
fn is_settled(key: &ObjectKey, status: &Value) -> bool {
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    !key.kind.is(kind::mcs::GROUP, kind::mcs::SERVICE_IMPORT)
        || conditions.any(|one| one["type"] == condition::import::READY && one["status"] == "True")
}

fn applied(live: &Live) -> Step {
    Step::Tell(CopyState::Applied { status: live.status.clone(), healthy: live.healthy })
}

/// Tells one order from another.
fn digest(order: &Order) -> u64 {
    let mut hasher = DefaultHasher::new();
    match order {
        Order::Hold { object, .. } | Order::Ensure(object) => object.to_string().hash(&mut hasher),
        Order::Observe | Order::Suspend | Order::Drop | Order::Release => {}
    }
    hasher.finish()
}

/// A kind as RBAC calls it. The plural is a guess for kinds that were never discovered, and right for nearly all.
fn resource(kind: &Kind) -> String {
    let name = kind.kind.to_lowercase();
    let plural = if let Some(stem) = name.strip_suffix('y') {
        format!("{stem}ies")
    } else if name.ends_with('s') {
        format!("{name}es")
    } else {
        format!("{name}s")
    };
    if kind.group().is_empty() { plural } else { format!("{plural}.{}", kind.group()) }
}
