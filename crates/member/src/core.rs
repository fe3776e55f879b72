//! The state machine: events in, commands out. No clock, no socket, no runtime.
//!
//! ```text
//!   Seen, Gone, Listed ──▶ facts ──▶ Report(Change)           gate: lists complete?
//!                     └──▶ cache ─┐                             │ no deletes before
//!   Assigned ────────────▶ plans ─┴─▶ queue ──▶ judge(target) ──┴─▶ Write, Read
//!                                       ▲                             │
//!                                       └────── Wrote, Read ◀─────────┘ (shell)
//! ```
//!
//! The queue holds targets, not contents: [`Core::step`] judges a target against the latest plan and the latest state when its turn
//! has come, so that a newer plan replaces an older write, and one write per object and change is all there is.

pub mod cache;
mod diff;
mod dispatched;
mod ended;
pub mod event;
pub mod facts;
mod notices;
pub mod object;
mod outcome;
pub mod queue;
pub mod replaced;
mod see;
pub mod sync;
#[cfg(test)]
mod tests;
pub mod wanted;
mod why;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::facts::Capabilities;
use atoll_engine::names::{Namespace, ServiceKey};
use atoll_engine::plan::{ClusterPlan, Touched};
use atoll_engine::world::Change;

use self::cache::Cache;
use self::diff::Verdict;
use self::dispatched::Dispatched;
use self::ended::Endings;
use self::event::{Command, Event, Now};
use self::facts::Facts;
use self::notices::Drifts;
use self::object::{Fingerprint, Kind, PropertyName, Target};
use self::queue::{Flight, Queue};
use self::replaced::Replaced;
use self::sync::Gate;
use crate::Identity;
use crate::events::Notice;
use atoll_link::{Assignment, Problem, Up};

/// How long a cluster's own slices wait for the remote consumers' writes: those are first, and API servers on one machine or
/// one disk are in each other's way.
const OWN_LAST: Duration = Duration::from_millis(5);
/// How often the same problem is told.
const REMIND: Duration = Duration::from_secs(300);
/// How many problems are kept apart. A member must not fill the hub's memory with them.
const MOST_PROBLEMS: usize = 500;

/// One member cluster: what it says, what it holds, what it should hold.
#[derive(Debug)]
pub struct Core {
    identity: Identity,
    gate: Gate,
    facts: Facts,
    cache: Cache,
    /// This cluster's part of each plan.
    plans: BTreeMap<ServiceKey, Option<Arc<ClusterPlan>>>,
    queue: Queue,
    /// What is in flight, and what the object should say then.
    sent: HashMap<Target, Sent>,
    permitted: bool,
    capabilities: Option<Capabilities>,
    heard: Option<Capabilities>,
    /// Namespaces that answered a create with "I am going".
    closing: BTreeSet<Namespace>,
    /// Services that did not get the addresses they asked for.
    unwished: BTreeMap<ServiceKey, u8>,
    /// What the API server did not take, and its words.
    refused: BTreeMap<Target, Arc<str>>,
    replaced: Replaced,
    dispatched: Dispatched,
    /// Services that were told to be held and are not planned yet.
    told: BTreeSet<ServiceKey>,
    problems: BTreeMap<Problem, Instant>,
    drifts: Drifts,
    endings: Endings,
    /// An answer to one of our own requests is taken in.
    answering: bool,
    /// When the first event came.
    began: Option<Instant>,
    out: Vec<Command>,
}

#[derive(Debug)]
struct Sent {
    print: Option<Fingerprint>,
    request: SentRequest,
    /// What is told when it is done.
    notices: Vec<Notice>,
}

/// What was sent, as far as the answer needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentRequest {
    Read,
    Create { wish: bool },
    Update,
    Attach,
    Status,
    Delete,
}

impl Core {
    /// A member of which nothing is known.
    pub fn new(identity: Identity) -> Self {
        Self {
            identity,
            gate: Gate::default(),
            facts: Facts::default(),
            cache: Cache::default(),
            plans: BTreeMap::new(),
            queue: Queue::default(),
            sent: HashMap::new(),
            permitted: false,
            capabilities: None,
            heard: None,
            closing: BTreeSet::new(),
            unwished: BTreeMap::new(),
            refused: BTreeMap::new(),
            replaced: Replaced::default(),
            dispatched: Dispatched::default(),
            told: BTreeSet::new(),
            problems: BTreeMap::new(),
            drifts: Drifts::default(),
            endings: Endings::default(),
            answering: false,
            began: None,
            out: Vec::new(),
        }
    }

    /// Takes in what happened; says what is to be done.
    pub fn step(&mut self, event: Event, now: Now) -> Vec<Command> {
        self.began.get_or_insert(now.instant);
        match event {
            Event::ListStarted(kind) => self.gate.start(kind),
            Event::Listed(kind) => self.listed(kind),
            Event::Unlisted(kind) => self.unlisted(kind),
            Event::Seen(seen) => self.see(seen),
            Event::Gone(gone) => self.gone(&gone),
            Event::Assigned(assignment) => self.assigned(assignment, now),
            Event::Wrote(target, answer) => self.wrote(&target, answer, now),
            Event::Read(target, answer) => self.read(&target, answer, now),
            Event::Permitted(permitted) => self.permitted = permitted,
            Event::Capable(capabilities) => {
                self.capabilities = Some(capabilities);
                self.say_heard();
            }
            Event::Noticed(problem) => self.problem(problem, now),
            Event::Tick => {}
        }
        self.queue.wake(now.instant);
        self.dispatch(now);
        self.answer_dispatched();
        std::mem::take(&mut self.out)
    }

    /// When to step next if nothing happens.
    pub fn next_wake(&self) -> Option<Instant> {
        self.queue.next_wake()
    }

    /// Whether everything is as it should be, as far as is known.
    pub fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    fn dispatch(&mut self, now: Now) {
        while self.permitted {
            let Some(target) = self.queue.next(is_busy) else { break };
            self.dispatched.touch(&target);
            match self.judge(&target, now) {
                Verdict::Settled => {
                    self.queue.settled(&target);
                    self.drifts.over(&target);
                    if let Target::Slice(key, name) = &target {
                        self.replaced.forget(key, name);
                    }
                    self.made(&target);
                }
                Verdict::Wait => self.made(&target),
                Verdict::After(awaited) => {
                    if let Target::Slice(key, name) = &target {
                        self.replaced.wait(key, name, awaited);
                    }
                }
                Verdict::Blocked(problem) => {
                    self.problem(problem, now);
                    self.made(&target);
                }
                Verdict::Read => {
                    self.sent.insert(
                        target.clone(),
                        Sent { print: None, request: SentRequest::Read, notices: Vec::new() },
                    );
                    self.queue.fly(target.clone());
                    self.out.push(Command::Read(target));
                }
                Verdict::Send(request, print) => {
                    let kind = SentRequest::of(&request);
                    if let (Target::Slice(key, name), false) = (&target, request.deletes()) {
                        self.replaced.forget(key, name); // It stays after all.
                    }
                    if let (Target::Import(key), true) = (&target, request.deletes()) {
                        self.note_ending(key, None);
                    }
                    let notices = self.notices_of(&request);
                    self.sent.insert(target.clone(), Sent { print, request: kind, notices });
                    self.queue.fly(target.clone());
                    self.out.push(Command::Write(target, Box::new(request)));
                }
            }
        }
    }

    /// The target is what it can be for now: what waited for that goes on.
    fn made(&mut self, target: &Target) {
        for slice in self.replaced.made(target) {
            self.queue.add(slice);
        }
    }

    fn assigned(&mut self, Assignment { service: key, part, touched, answer }: Assignment, now: Now) {
        self.told.remove(&key);
        if let Some(number) = answer {
            self.dispatched.asked(&key, number);
        }
        let mut tell = Vec::new();
        let follow = part.as_ref().is_some_and(|part| part.follow);
        self.facts.follow(&key, follow, &mut tell);
        self.tell(tell);
        let before = self.plans.insert(key.clone(), part.clone());
        self.note_ending(&key, before.as_ref().and_then(Option::as_deref));
        match (touched, before) {
            (Touched::Nothing, Some(_)) => {}
            (Touched::Slices(changed), Some(before)) => {
                let me = &self.identity.cluster;
                for (source, original) in &changed {
                    for part in [&part, &before] {
                        for name in wanted::names_of(part.as_deref(), source, original) {
                            let target = Target::Slice(key.clone(), name);
                            if source == me {
                                self.queue.soon(target, OWN_LAST, now.instant);
                            } else {
                                self.queue.add(target);
                            }
                        }
                    }
                }
            }
            (Touched::Everything, _) | (Touched::Nothing | Touched::Slices(_), None) => self.look_at(&key),
        }
        self.retire(&key);
    }

    /// Looks at everything of a service.
    fn look_at(&mut self, key: &ServiceKey) {
        for target in self.targets(key) {
            self.queue.add(target);
        }
    }

    fn listed(&mut self, kind: Kind) {
        let epoch = self.gate.epoch(kind);
        let mut tell = Vec::new();
        self.facts.sweep(kind, epoch, &mut tell);
        self.tell(tell);
        self.sweep(kind, epoch);
        let opened = self.gate.complete(kind);
        self.went_on(opened);
    }

    /// Nothing comes of a list that is not waited for. What it said before, if anything, stays.
    fn unlisted(&mut self, kind: Kind) {
        let opened = self.gate.give_up(kind);
        self.went_on(opened);
    }

    /// A list is complete, or not waited for any more; `opened`: it was the last one.
    fn went_on(&mut self, opened: bool) {
        self.say_heard();
        if opened {
            for name in PropertyName::ALL {
                self.queue.add(Target::Property(name));
            }
            let planned: Vec<ServiceKey> = self.plans.keys().cloned().collect();
            for key in planned {
                self.look_at(&key);
            }
        }
    }

    /// Says that all facts have been given, and then what is held.
    fn say_heard(&mut self) {
        if !self.gate.may_write() || self.capabilities.is_none() || self.heard == self.capabilities {
            return;
        }
        let first = self.heard.is_none();
        self.heard.clone_from(&self.capabilities);
        self.tell(self.heard.iter().cloned().map(Change::Heard).collect());
        if first {
            let held: Vec<ServiceKey> = self.cache.held.keys().cloned().collect();
            for key in held {
                self.holds(&key);
            }
        }
    }

    /// Something of ours is there for a service that is not planned: the hub has to say what becomes of it.
    fn holds(&mut self, key: &ServiceKey) {
        if self.heard.is_some() && !self.plans.contains_key(key) && self.told.insert(key.clone()) {
            self.out.push(Command::Report(Up::Holds(key.clone())));
        }
    }

    fn tell(&mut self, changes: Vec<Change>) {
        self.out.extend(changes.into_iter().map(|change| Command::Report(Up::Change(change))));
    }

    fn problem(&mut self, problem: Problem, now: Now) {
        let old = |at: &Instant| now.instant.saturating_duration_since(*at) >= REMIND;
        if self.problems.get(&problem).is_some_and(|at| !old(at)) {
            return;
        }
        if self.problems.len() >= MOST_PROBLEMS {
            self.problems.retain(|_, at| !old(at));
        }
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.insert(problem.clone(), now.instant);
            self.out.push(Command::Report(Up::Problem(problem)));
        }
    }
}

/// Whether a request for the target, or for the same object, is under way.
fn is_busy(target: &Target, flying: &BTreeMap<Target, Flight>) -> bool {
    let partner = match target {
        Target::Import(key) => Some(Target::ImportStatus(key.clone())),
        Target::ImportStatus(key) => Some(Target::Import(key.clone())),
        Target::Service(..)
        | Target::Slice(..)
        | Target::ExportStatus(_)
        | Target::MisnamedStatus(..)
        | Target::Property(_) => None,
    };
    flying.contains_key(target) || partner.is_some_and(|partner| flying.contains_key(&partner))
}
