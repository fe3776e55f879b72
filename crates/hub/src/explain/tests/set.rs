//! A leader in a test, and members that hold what they are told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use atoll_api::explain::{AddressExplanation, ClusterSetStatus, ServiceExplanation, ServiceList};
use atoll_api::names::code::Code;
use atoll_api::names::kind::explain as names;
use atoll_engine::facts::{Contact, Settings};
use atoll_engine::memory::{Memory, MemoryUpdate};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::{DispatchPlan, ImportPlan, Plan, SlicesFrom};
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_link::Up;
use litemap::LiteMap;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fixture::{Member, id, key};
use crate::explain::{About, Answered, Asked, Known, Tally, Verb, answer};
use crate::mcs::balancing::LoadBalancers;
use crate::membership::roster::Roster;
use crate::services::brain::{Brain, Command, Ended, Now};

const LEASE: Duration = Duration::from_secs(10);

/// What a member holds of each source: addresses, and whether they are ready.
pub(super) type Held = BTreeMap<ClusterId, BTreeSet<(String, bool)>>;

pub(super) struct Set {
    pub(super) brain: Brain,
    pub(super) roster: Roster,
    pub(super) balancers: LoadBalancers,
    tally: Tally,
    about: About,
    start: Instant,
    pub(super) seconds: u64,
    /// Writes of memory that have not ended.
    pub(super) writing: Vec<ServiceKey>,
    pub(super) imports: BTreeMap<(ClusterId, ServiceKey), Held>,
    pub(super) dispatched: BTreeMap<(ClusterId, ServiceKey), Held>,
}

impl Set {
    pub(super) fn with(settings: Settings, memory: Memory) -> Self {
        let start = Instant::now();
        let mut brain = Brain::new(settings, memory, LEASE, start + Duration::from_secs(1));
        brain.set_intents(BTreeMap::new(), BTreeSet::new());
        Self {
            brain,
            roster: Roster::default(),
            balancers: LoadBalancers::new("set"),
            tally: Tally::default(),
            about: About { clusterset: "set".to_owned(), leader: "hub-0".to_owned(), version: "1.2.3" },
            start,
            seconds: 0,
            writing: Vec::new(),
            imports: BTreeMap::new(),
            dispatched: BTreeMap::new(),
        }
    }

    pub(super) fn new() -> Self {
        Self::with(Settings::default(), Memory::new())
    }

    /// Told all this, and settled.
    pub(super) fn of(members: &[Member]) -> Self {
        let mut set = Self::told(members);
        set.settle();
        set
    }

    /// Told all this, and not planned yet.
    pub(super) fn told(members: &[Member]) -> Self {
        let mut set = Self::new();
        members.iter().for_each(|member| set.tell(member));
        set
    }

    pub(super) fn tell(&mut self, member: &Member) {
        for change in &member.changes {
            self.change(&member.id, change.clone());
        }
    }

    pub(super) fn now(&self) -> Now {
        let time = Time(1_000_000 + i64::try_from(self.seconds).unwrap() * 1000);
        Now { instant: self.start + Duration::from_secs(self.seconds), time }
    }

    /// A change as the hub comes to know it: some are the hub's own word, and a loss is the end of a lease.
    pub(super) fn change(&mut self, id: &ClusterId, change: Change) {
        match change {
            Change::Joined => self.brain.joined(id),
            Change::Left => {
                let commands = self.brain.left(id, self.now());
                self.carry_out(commands);
                self.imports.retain(|(holder, _), _| holder != id);
                self.dispatched.retain(|(holder, _), _| holder != id);
            }
            Change::Networks(networks) => self.brain.declare(id, *networks),
            Change::Contact(Contact::Alive) => self.up(id, Up::Alive),
            Change::Contact(Contact::Lost { .. }) => self.lose(id),
            Change::Heard(_)
            | Change::Nodes(_)
            | Change::Namespace(..)
            | Change::Service(..)
            | Change::Export(..)
            | Change::Slice(..)
            | Change::Taken(..)
            | Change::Followed(..) => self.up(id, Up::Change(change)),
        }
    }

    pub(super) fn up(&mut self, id: &ClusterId, up: Up) {
        let now = self.now();
        self.brain.report(id, up, now.instant, now);
    }

    /// It does not answer.
    pub(super) fn silence(&mut self, id: &ClusterId) {
        self.up(id, Up::Unreachable { silent_for: Duration::ZERO, why: "refused".to_owned() });
    }

    /// Its lease has ended.
    pub(super) fn lose(&mut self, id: &ClusterId) {
        self.silence(id);
        self.seconds += LEASE.as_secs() + 1;
        let now = self.now();
        self.brain.due(now);
    }

    /// Plans; memory is written when `write` says so.
    pub(super) fn plan(&mut self, write: bool) {
        self.seconds += 2;
        let now = self.now();
        let commands = self.brain.plan(now, 1000).0;
        self.carry_out(commands);
        while write && let Some(key) = self.writing.pop() {
            let commands = self.brain.persisted(&key, Ended::Written);
            self.carry_out(commands);
        }
        self.tally.touch(&self.brain.handed_out());
    }

    pub(super) fn settle(&mut self) {
        self.plan(true);
    }

    fn carry_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::Persist(MemoryUpdate::Put(key, _) | MemoryUpdate::Forget(key)) => {
                    self.writing.push(key);
                }
                Command::Assign { to, plan, .. } => self.hold(&to, &plan),
            }
        }
    }

    /// A member carries out its part.
    fn hold(&mut self, to: &ClusterId, plan: &Plan) {
        let Some(part) = plan.clusters.get(to) else { return };
        let of = (to.clone(), plan.service.clone());
        match &part.import {
            ImportPlan::Present { slices, .. } => take(self.imports.entry(of.clone()).or_default(), slices),
            ImportPlan::Absent(_) => drop(self.imports.remove(&of)),
            ImportPlan::Untouched(_) => {}
        }
        match &part.dispatch {
            DispatchPlan::Present(slices) => take(self.dispatched.entry(of).or_default(), slices),
            DispatchPlan::Absent(_) => drop(self.dispatched.remove(&of)),
            DispatchPlan::Untouched(_) => {}
        }
    }

    pub(super) fn answer(
        &mut self,
        resource: &str,
        verb: Verb,
        name: Option<&str>,
        query: &[(&str, &str)],
    ) -> Answered {
        let known = Known {
            brain: &self.brain,
            roster: &self.roster,
            balancers: &self.balancers,
            about: &self.about,
            now: self.now(),
        };
        let (namespace, name) = match name.and_then(|name| name.split_once('/')) {
            Some((namespace, name)) => (Some(namespace), Some(name)),
            None => (None, name),
        };
        let asked = Asked {
            verb,
            resource: resource.to_owned(),
            namespace: namespace.map(str::to_owned),
            name: name.map(str::to_owned),
            query: query.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
            body: None,
        };
        answer(&known, &mut self.tally, &asked)
    }

    fn asked<T: DeserializeOwned>(
        &mut self,
        resource: &str,
        verb: Verb,
        name: Option<&str>,
        query: &[(&str, &str)],
    ) -> T {
        let answered = self.answer(resource, verb, name, query);
        assert_eq!(answered.status, 200, "{}", answered.body);
        serde_json::from_value(answered.body).unwrap()
    }

    pub(super) fn explain(&mut self, service: &str) -> ServiceExplanation {
        self.asked(names::SERVICES, Verb::Get, Some(service), &[])
    }

    pub(super) fn explain_in(&mut self, service: &str, query: &[(&str, &str)]) -> ServiceExplanation {
        self.asked(names::SERVICES, Verb::Get, Some(service), query)
    }

    pub(super) fn list(&mut self, query: &[(&str, &str)]) -> ServiceList {
        self.asked(names::SERVICES, Verb::List, None, query)
    }

    pub(super) fn address(&mut self, address: &str) -> AddressExplanation {
        self.asked(names::ADDRESSES, Verb::Get, Some(address), &[])
    }

    pub(super) fn status(&mut self) -> ClusterSetStatus {
        self.asked(names::CLUSTERSETS, Verb::Get, Some(names::CLUSTERSET), &[])
    }

    /// What a member holds.
    pub(super) fn held(&self, member: &ClusterId, service: &str) -> Option<&Held> {
        self.imports.get(&(member.clone(), key(service)))
    }
}

/// Holds these slices from now on, and what it has of sources with unknown slices.
fn take(held: &mut Held, slices: &LiteMap<ClusterId, SlicesFrom>) {
    held.retain(|source, _| slices.contains_key(source));
    for (source, from) in slices {
        match from {
            SlicesFrom::Exactly(list, _) => {
                let endpoints = list.iter().flat_map(|slice| &slice.endpoints);
                let addresses = endpoints.flat_map(|endpoint| {
                    let ready = endpoint.conditions.is_ready();
                    endpoint.addresses.iter().map(move |address| (address.to_string(), ready))
                });
                held.insert(source.clone(), addresses.collect());
            }
            SlicesFrom::KeepWhatIsThere(_) => {}
            SlicesFrom::Nothing(_) => drop(held.remove(source)),
        }
    }
}

/// Every code in an answer.
pub(super) fn codes(answer: &impl serde::Serialize) -> BTreeSet<Code> {
    fn walk(value: &Value, into: &mut BTreeSet<Code>) {
        match value {
            Value::Object(fields) => {
                if let Some(code) = fields.get("code") {
                    into.insert(serde_json::from_value(code.clone()).unwrap());
                }
                fields.values().for_each(|value| walk(value, into));
            }
            Value::Array(items) => items.iter().for_each(|value| walk(value, into)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    let mut codes = BTreeSet::new();
    walk(&serde_json::to_value(answer).unwrap(), &mut codes);
    codes
}

pub(super) fn cluster<'a>(all: &'a ServiceExplanation, name: &str) -> &'a atoll_api::explain::ClusterPart {
    let name = id(name);
    all.clusters.iter().find(|part| part.cluster == name.as_str()).unwrap()
}
