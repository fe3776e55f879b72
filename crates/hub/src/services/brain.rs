//! What the hub decides between facts and plans. Pure: events and the time in, commands out, in the order they are to be done.
//!
//! ```text
//!   report ──▶ engine ──▶ gate (memory is written first) ──▶ Assign: remote consumers, then the source itself
//! ```

mod answers;
mod gate;
mod lag;
mod liveness;
mod pins;
mod refusals;
mod trace;
pub(crate) mod words;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::engine::{Applied, Engine};
use atoll_engine::facts::{Contact, Settings};
use atoll_engine::fences::Fences;
use atoll_engine::intent::CrossCluster;
use atoll_engine::intent::imports::{Asked, HubImports};
use atoll_engine::memory::{Memory, MemoryUpdate};
use atoll_engine::names::{ClusterId, Namespace, ServiceKey, SliceName};
use atoll_engine::network::{Networks, Ranges, Reserved};
use atoll_engine::plan::{Balanced, DispatchPlan, ImportPlan, Plan, Touched, WhyAbsent};
use atoll_engine::reason::ImportReady;
use atoll_engine::time::Time;
use atoll_engine::world::{Change, Cluster};
use atoll_link::{Dispatched, Health, Problem, Up};

use answers::Answers;
use gate::{Gate, Pass};
use lag::Lag;
use liveness::Liveness;
use pins::Pins;
use refusals::Refusals;
use trace::Trace;
use words::Words;

pub(crate) use gate::{Ended, Unwritten};
pub(crate) use trace::Propagation;

use crate::mcs::view::{Contact as Reached, Member, Part, View};
use crate::services::imports::{self, NoImport};

/// One moment, by both clocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    pub(crate) instant: Instant,
    pub(crate) time: Time,
}

impl Now {
    /// What the wall clock showed at an earlier moment.
    fn time_of(&self, earlier: Instant) -> Time {
        let ago = self.instant.saturating_duration_since(earlier).as_millis();
        Time(self.time.0.saturating_sub(i64::try_from(ago).unwrap_or(i64::MAX)))
    }
}

/// What the shell has to do.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Command {
    /// Write this down, and say when it is done or has failed.
    Persist(MemoryUpdate),
    /// Hand this to the member.
    Assign { to: ClusterId, plan: Arc<Plan>, touched: Touched, answer: Option<u64> },
}

/// What a report was, beyond what it changed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Noted {
    /// A slice has arrived where it was to go.
    pub(crate) propagated: Option<Propagation>,
    /// Whether the member is reachable, where that is news.
    pub(crate) reachable: Option<bool>,
    /// What its nodes say of its networks, to be pinned on its `Cluster`.
    pub(crate) learnt: Option<Ranges>,
}

/// The engine, and what stands between it and the members.
pub(crate) struct Brain {
    engine: Engine,
    gate: Gate,
    liveness: Liveness,
    trace: Trace,
    answers: Answers,
    refusals: Refusals,
    words: Words,
    lag: Lag,
    /// Services whose plans were handed out since the last question.
    handed_out: BTreeSet<ServiceKey>,
    /// Where members are, which none of them can change.
    pins: Pins,
    /// Members that hold something of a service and wait to be told what.
    asking: BTreeMap<ServiceKey, BTreeSet<ClusterId>>,
    /// Until then planning waits for members that have not been heard.
    settle: Option<Instant>,
}

impl Brain {
    pub(crate) fn new(settings: Settings, memory: Memory, lease_time: Duration, settle: Instant) -> Self {
        Self {
            engine: Engine::new(settings, memory),
            gate: Gate::default(),
            liveness: Liveness::new(lease_time),
            trace: Trace::default(),
            answers: Answers::default(),
            refusals: Refusals::default(),
            words: Words::default(),
            lag: Lag::default(),
            handed_out: BTreeSet::new(),
            pins: Pins::default(),
            asking: BTreeMap::new(),
            settle: Some(settle),
        }
    }

    /// It is a member from here on.
    pub(crate) fn joined(&mut self, id: &ClusterId) {
        let _ = self.engine.apply(id, Change::Joined);
    }

    /// It is no member any more. Planned at once: if another cluster comes under its name, that one inherits nothing.
    pub(crate) fn left(&mut self, id: &ClusterId, now: Now) -> Vec<Command> {
        self.liveness.forget(id);
        self.answers.left(id);
        self.words.forget(id);
        self.lag.forget(id);
        self.pins.forget(id);
        self.asking.retain(|_, who| {
            who.remove(id);
            !who.is_empty()
        });
        let mut commands = Vec::new();
        if self.engine.apply(id, Change::Left) == Applied::Changed {
            for outcome in self.engine.plan_dirty(now.time) {
                let pass = self.gate.admit(outcome);
                self.pass(pass, &mut commands);
            }
        }
        commands
    }

    /// It will be listed anew: what it said before may be out of date. Nothing is planned in between, so memory still
    /// speaks for it, and what others hold of it stays until it is heard again.
    pub(crate) fn reset(&mut self, id: &ClusterId) {
        self.answers.left(id);
        self.words.forget(id);
        self.liveness.forget(id); // whoever lists it anew also says whether it answers
        let _ = self.engine.apply(id, Change::Left);
        let _ = self.engine.apply(id, Change::Joined);
        if let Some(networks) = self.pins.whole(id) {
            let _ = self.engine.apply(id, Change::Networks(Box::new(networks)));
        }
    }

    /// Where it is: the operator's word, and what was pinned.
    pub(crate) fn declare(&mut self, id: &ClusterId, networks: Networks) {
        let networks = self.pins.declare(id, networks);
        let _ = self.engine.apply(id, Change::Networks(Box::new(networks)));
    }

    /// Addresses that are no member's.
    pub(crate) fn reserve(&mut self, reserved: Reserved) {
        self.engine.set_reserved(reserved);
    }

    /// There is no way to ask it any more: silent from here on, until it is listed anew.
    /// False if it is no member.
    pub(crate) fn unasked(&mut self, id: &ClusterId, now: Now) -> bool {
        let member = self.engine.world().clusters.contains_key(id);
        if member {
            self.liveness.unasked(id, now.instant);
        }
        member
    }

    /// A member has been started, and knows no plan yet.
    pub(crate) fn started(&mut self, id: &ClusterId) -> Vec<Command> {
        let world = self.engine.world();
        let asked = world.intents.iter().flat_map(BTreeMap::keys);
        let keys: BTreeSet<&ServiceKey> =
            world.services.keys().chain(world.memory.keys()).chain(asked).collect();
        let released = keys.into_iter().filter(|key| !self.gate.holds(key));
        let plans: Vec<Arc<Plan>> = released.filter_map(|key| self.engine.last_plan(key)).cloned().collect();
        // No plan is kept of a MultiClusterService that ends once all have theirs: one that starts now is asked too.
        let unplanned = self.answers.followed().filter(|key| self.engine.last_plan(key).is_none());
        for key in unplanned.cloned().collect::<Vec<_>>() {
            self.asking.entry(key).or_default().insert(id.clone());
        }
        plans.iter().map(|plan| self.assign(id, plan, &Touched::Everything)).collect()
    }

    /// What `ServiceImports` of the hub ask for, before anything is planned.
    pub(crate) fn set_imports(&mut self, imports: HubImports) {
        self.engine.set_imports(imports);
    }

    /// Something about `ServiceImports` of the hub is new.
    pub(crate) fn imports(&mut self, news: imports::News) {
        match news {
            imports::News::Explicit(namespaces) => self.engine.set_explicit(namespaces),
            imports::News::To(key, to) => self.engine.ask_import(key, to),
            imports::News::Placed => self.engine.imports_are_placed(),
        }
    }

    /// Why clusters to which a ServiceImport of the hub goes have no derived Service; nothing if the hub has no such import.
    pub(crate) fn absent(&self, key: &ServiceKey) -> Option<imports::Absent> {
        let Some(Asked::To(to)) = self.engine.world().imports.asked.get(key) else { return None };
        let plan = self.plan_of(key);
        let why = |id: &ClusterId| match plan.map(|plan| plan.clusters.get(id).map(|part| &part.import)) {
            Some(Some(ImportPlan::Absent(why))) => Some(NoImport::Absent(*why)),
            Some(Some(ImportPlan::Present { import, .. })) if import.ready != ImportReady::Ready => {
                Some(NoImport::NotReady(import.ready.clone(), import.notes.clone()))
            }
            Some(Some(ImportPlan::Present { .. } | ImportPlan::Untouched(_)) | None) => None,
            // No plan is kept of what no cluster has anything of.
            None => self.settle.is_none().then_some(NoImport::Absent(WhyAbsent::NotExported)),
        };
        Some(to.clusters.iter().filter_map(|id| Some((id.clone(), why(id)?))).collect())
    }

    /// Who may export and import what.
    pub(crate) fn set_fences(&mut self, fences: Fences) {
        self.engine.set_fences(fences);
    }

    /// All the `MultiClusterServices` there are, before anything is planned; `ending` are those that are being deleted.
    pub(crate) fn set_intents(
        &mut self,
        intents: BTreeMap<ServiceKey, CrossCluster>,
        ending: BTreeSet<ServiceKey>,
    ) {
        for key in intents.keys().chain(&ending) {
            self.answers.follow(key);
        }
        self.engine.set_intents(intents);
        for key in ending {
            self.asking.entry(key).or_default(); // members may hold something of it, and are asked
        }
    }

    /// What one `MultiClusterService` asks for from here on; nothing if it is being deleted.
    pub(crate) fn intend(&mut self, key: &ServiceKey, asked: Option<CrossCluster>) {
        self.answers.follow(key);
        self.engine.intend(key.clone(), asked);
    }

    /// A `MultiClusterService` is gone.
    pub(crate) fn intend_no_more(&mut self, key: &ServiceKey) {
        self.engine.intend(key.clone(), None);
        self.answers.forget(key);
    }

    /// The services of `MultiClusterServices` about which something may be new.
    pub(crate) fn crossing_news(&mut self) -> BTreeSet<ServiceKey> {
        self.answers.news()
    }

    /// The services whose plans were handed out since the last time.
    pub(crate) fn handed_out(&mut self) -> BTreeSet<ServiceKey> {
        std::mem::take(&mut self.handed_out)
    }

    /// The last plan of a service, once it could be made of what members have said.
    pub(crate) fn plan_of(&self, key: &ServiceKey) -> Option<&Plan> {
        self.engine.last_plan(key).filter(|_| self.settle.is_none()).map(|plan| &**plan)
    }

    /// A copy of the engine to try something on, with the services of some namespaces or of all; nothing before the first plan could be
    /// made of what members have said.
    pub(crate) fn copy(&self, namespaces: Option<&BTreeSet<Namespace>>) -> Option<Engine> {
        self.settle.is_none().then(|| self.engine.copy(namespaces))
    }

    /// How many services the engine knows.
    pub(crate) fn size(&self) -> usize {
        self.engine.size()
    }

    /// What the balancer of a service leads to, as far as that is known: nothing while something newer waits to be planned.
    pub(crate) fn balanced(&self, key: &ServiceKey) -> Option<Arc<Balanced>> {
        self.plan_of(key).filter(|_| !self.engine.is_dirty(key))?.balanced.clone()
    }

    /// How it is with such a service.
    pub(crate) fn view(&self, key: &ServiceKey) -> View {
        let world = self.engine.world();
        let plan = self.engine.last_plan(key);
        let member = |(id, cluster): (&ClusterId, &Cluster)| {
            let part = plan.and_then(|plan| plan.clusters.get(id)).map(|part| &part.dispatch);
            let holding = world.holding(key, id);
            let member = Member {
                contact: match (cluster.contact, &cluster.heard) {
                    (Contact::Lost { since }, _) => Reached::Lost(since),
                    (Contact::Alive, _) if self.liveness.silent(id) => Reached::Silent,
                    (Contact::Alive, None) => Reached::Unheard,
                    (Contact::Alive, Some(_)) => Reached::Fine,
                },
                part: match part {
                    Some(DispatchPlan::Present(_)) => Part::Slices,
                    Some(DispatchPlan::Untouched(_)) => Part::Untouched,
                    Some(DispatchPlan::Absent(_)) | None => Part::Nothing,
                },
                known: cluster.heard.is_some() && holding.is_some_and(|holding| holding.followed),
                endpoints: holding
                    .map_or(0, |holding| holding.slices.values().map(|slice| slice.endpoints.len()).sum()),
                said: self.answers.said(key, id).cloned(),
            };
            (id.clone(), member)
        };
        View {
            crossing: plan.and_then(|plan| plan.crossing.clone()),
            members: world.clusters.iter().map(member).collect(),
        }
    }

    /// Takes in what a member says, which came in at `at`.
    pub(crate) fn report(&mut self, id: &ClusterId, up: Up, at: Instant, now: Now) -> Noted {
        let mut noted = Noted::default();
        match up {
            Up::Change(change) => noted.learnt = self.change(id, change, now),
            Up::Holds(key) => drop(self.asking.entry(key).or_default().insert(id.clone())),
            Up::Alive => {
                let (news, was_lost) = self.liveness.alive(id);
                if news {
                    self.answers.touch_all();
                }
                noted.reachable = news.then_some(true);
                if was_lost {
                    let _ = self.engine.apply(id, Change::Contact(Contact::Alive));
                }
            }
            Up::Unreachable { silent_for, .. } => {
                let since = at.checked_sub(silent_for).unwrap_or(at);
                // One that leaves is asked too, and is no loss.
                let member = self.engine.world().clusters.contains_key(id);
                noted.reachable = (member && self.liveness.unreachable(id, since)).then_some(false);
                if noted.reachable.is_some() {
                    self.answers.touch_all();
                }
            }
            Up::Wrote(written) => {
                if let Some((source, slice)) = &written.slice {
                    noted.propagated = self.trace.wrote(&written.service, source, slice, id, at);
                }
                if let Some(propagation) = &noted.propagated {
                    self.lag.took(id, propagation.took);
                }
                self.words.wrote(id, &written);
            }
            Up::Dispatched(said) => self.answers.take(id, said),
            Up::Problem(problem) => {
                if self.engine.world().clusters.contains_key(id) {
                    self.words.problem(id, problem, now);
                }
            }
            Up::Health(health) => {
                if self.engine.world().clusters.contains_key(id) {
                    self.words.health(id, health);
                }
            }
            Up::Copy(_)
            | Up::Identity { .. }
            | Up::Cleaned
            | Up::GaveBack
            | Up::NotCleaned { .. }
            | Up::Stopped => {}
        }
        noted
    }

    /// Takes in a fact; says what was learnt of the member's networks, if it had to be.
    fn change(&mut self, id: &ClusterId, change: Change, now: Now) -> Option<Ranges> {
        let mut first = false;
        self.words.changed(id, &change, now.instant);
        let slice = match &change {
            Change::Slice(key, name, _) => Some((key.clone(), name.clone())),
            // Who is a member, whether it can be reached and where it is, is not the member's to say.
            Change::Joined | Change::Left | Change::Contact(_) | Change::Networks(_) => return None,
            Change::Nodes(nodes) => {
                self.pins.said(id, nodes.clone());
                return None;
            }
            Change::Heard(_) => {
                first = true;
                None
            }
            Change::Namespace(..)
            | Change::Service(..)
            | Change::Export(..)
            | Change::Taken(..)
            | Change::Followed(..) => None,
        };
        let heard = self.engine.world().clusters.get(id).is_some_and(|cluster| cluster.heard.is_some());
        if self.engine.apply(id, change) == Applied::Changed
            && heard
            && let Some((key, name)) = slice
        {
            self.trace.arrived(key, id.clone(), name, now.instant); // a first list is no news to others
        }
        let learnt = first.then(|| self.pins.heard(id, self.engine.world())).flatten();
        if let Some(networks) = self.pins.whole(id).filter(|_| learnt.is_some()) {
            let _ = self.engine.apply(id, Change::Networks(Box::new(networks)));
        }
        learnt
    }

    /// What has come due with time alone; says whose lease has ended.
    pub(crate) fn due(&mut self, now: Now) -> Vec<ClusterId> {
        self.trace.purge(now.instant);
        let lost = self.liveness.due(now.instant);
        for (id, since) in &lost {
            let since = now.time_of(*since);
            let _ = self.engine.apply(id, Change::Contact(Contact::Lost { since }));
        }
        if !lost.is_empty() {
            self.answers.touch_all();
        }
        lost.into_iter().map(|(id, _)| id).collect()
    }

    /// When [`Self::due`] or [`Self::plan`] has to be called next, if nothing happens before.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        [self.settle, self.liveness.next()].into_iter().flatten().min()
    }

    /// Plans up to `budget` services; true if some are left.
    pub(crate) fn plan(&mut self, now: Now, budget: usize) -> (Vec<Command>, bool) {
        let mut commands = Vec::new();
        if !self.settled(now.instant) {
            return (commands, false);
        }
        for _ in 0..budget {
            let asked = self.asking.keys().find(|key| !self.gate.holds(key)).cloned();
            let outcome = match asked {
                Some(key) => self.engine.plan(&key, now.time),
                None => match self.engine.plan_next(now.time) {
                    Some(outcome) => outcome,
                    None => return (commands, false),
                },
            };
            let pass = self.gate.admit(outcome);
            self.pass(pass, &mut commands);
        }
        (commands, self.engine.dirty().next().is_some())
    }

    /// Memory has been written, or could not be.
    pub(crate) fn persisted(&mut self, key: &ServiceKey, ended: Ended) -> Vec<Command> {
        let mut commands = Vec::new();
        let pass = self.gate.written(key, ended);
        self.pass(pass, &mut commands);
        commands
    }

    /// How many services of which member are refused for which reason, where that is news.
    pub(crate) fn refusals(&mut self) -> Option<BTreeMap<(ClusterId, &'static str), usize>> {
        self.refusals.news()
    }

    /// What is known and planned, to be read.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Whether planning still waits for members that have not reported.
    pub(crate) fn is_settling(&self) -> bool {
        self.settle.is_some()
    }

    /// Whether something of the service is not written down.
    pub(crate) fn unwritten(&self, key: &ServiceKey) -> Option<Unwritten> {
        self.gate.unwritten(key)
    }

    /// Since when a member does not answer, if it does not.
    pub(crate) fn silent_since(&self, id: &ClusterId, now: Now) -> Option<Time> {
        self.liveness.since(id).map(|since| now.time_of(since))
    }

    /// What a member has said of the slices of a `MultiClusterService`.
    pub(crate) fn said(&self, key: &ServiceKey, id: &ClusterId) -> Option<&Dispatched> {
        self.answers.said(key, id)
    }

    /// What a person must do in a member, and since when.
    pub(crate) fn problems(&self, id: &ClusterId, now: Now) -> impl Iterator<Item = (&Problem, Time)> {
        self.words.problems(id, now.instant)
    }

    /// How a member's API is, by its last word.
    pub(crate) fn health(&self, id: &ClusterId) -> Option<&Health> {
        self.words.health_of(id)
    }

    /// How long the last changes took to arrive in a member.
    pub(crate) fn lag(&self, id: &ClusterId) -> Option<Duration> {
        self.lag.of(id)
    }

    /// Whether a member was told of a slice and has not confirmed it.
    pub(crate) fn is_awaited(
        &self,
        key: &ServiceKey,
        source: &ClusterId,
        slice: &SliceName,
        target: &ClusterId,
    ) -> bool {
        self.trace.awaits(key, source, slice, target)
    }

    /// How many services wait for a plan, or with a plan for the hub's API.
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.engine.dirty().count(), self.gate.len())
    }

    fn pass(&mut self, pass: Pass, commands: &mut Vec<Command>) {
        match pass {
            Pass::Write(update) => commands.push(Command::Persist(update)),
            Pass::Wait => {}
            Pass::Release(plan, touched) => self.release(&plan, &touched, commands),
            Pass::ReleaseAndWrite(plan, touched, update) => {
                commands.push(Command::Persist(update));
                self.release(&plan, &touched, commands);
            }
        }
    }

    /// Hands out a plan: those who consume from afar first, then where it came from.
    fn release(&mut self, plan: &Arc<Plan>, touched: &Touched, commands: &mut Vec<Command>) {
        let asking = self.asking.remove(&plan.service).unwrap_or_default();
        self.trace.handed_out(plan, touched);
        self.refusals.take(plan, touched);
        self.handed_out.insert(plan.service.clone());
        let own = |id: &ClusterId| match touched {
            Touched::Slices(slices) => slices.iter().any(|(source, _)| source == id),
            Touched::Everything | Touched::Nothing => {
                plan.clusters.get(id).is_some_and(|own| own.export.is_some())
            }
        };
        let (sources, remote): (Vec<_>, Vec<_>) = plan.clusters.keys().partition(|id| own(id));
        for id in remote.into_iter().chain(sources) {
            if asking.contains(id) {
                commands.push(self.assign(id, plan, &Touched::Everything));
            } else if *touched != Touched::Nothing {
                commands.push(self.assign(id, plan, touched));
            }
        }
    }

    fn assign(&mut self, to: &ClusterId, plan: &Arc<Plan>, touched: &Touched) -> Command {
        self.answers.touch(&plan.service);
        let asks = *touched == Touched::Everything;
        let answer = if asks { self.answers.ask(&plan.service, to) } else { None };
        Command::Assign { to: to.clone(), plan: Arc::clone(plan), touched: touched.clone(), answer }
    }

    /// Whether enough members have been heard to let the first plan choose winners.
    fn settled(&mut self, now: Instant) -> bool {
        let Some(deadline) = self.settle else { return true };
        let waiting = self.engine.world().unheard().any(|id| !self.liveness.silent(id));
        if waiting && now < deadline {
            return false;
        }
        self.settle = None;
        true
    }
}

#[cfg(test)]
mod tests;
