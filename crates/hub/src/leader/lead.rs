//! One time of leadership: the task that owns the engine, and the I/O around it. It carries out and does not choose.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_api::types::MultiClusterService;
use atoll_engine::memory::MemoryUpdate;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::time::Time;
use atoll_link::{Assignment, Up};
use atoll_member::Permit;
use kube::{Api, Client};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::leader::http::{Pages, Stage};
use crate::leader::run::HubError;
use crate::mcs::balancing;
use crate::mcs::board::Wish;
use crate::mcs::{self, Board};
use crate::membership::clusterset;
use crate::membership::members::Members;
use crate::membership::roster::{self, Roster};
use crate::membership::session::Heard;
use crate::membership::watch;
use crate::options::Options;
use crate::policies::{self, Policies};
use crate::services::brain::{Brain, Command, Now};
use crate::services::imports;
use crate::services::memory_store as store;
use crate::services::mirror::{self, Mirror};

/// Reports taken in before the next plan: a member that floods us delays the others by no more than these.
const BATCH: usize = 4096;
/// Services planned before the next reports are taken in.
const PLANS: usize = 256;
/// The figures of what waits are brought up to date this often.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// What is shown on `MultiClusterServices` is brought up to date this often: endpoints that come and go are no reason to write more.
const SHOWING: Duration = Duration::from_millis(200);

/// What every leadership has in common.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    /// For watches alone.
    pub(crate) watches: Client,
    pub(crate) options: Arc<Options>,
    pub(crate) pages: Arc<Pages>,
}

/// The running lead.
struct Lead {
    context: Context,
    brain: Brain,
    roster: Roster,
    members: Members,
    updates: UnboundedSender<MemoryUpdate>,
    reports: UnboundedReceiver<Heard>,
    board: Board,
    load_balancers: balancing::LoadBalancers,
    /// Where the controller of load balancers hears of services; none if they are another controller's.
    balancers: Option<UnboundedSender<atoll_lb::controller::Event>>,
    /// Services whose balancers have to be looked at.
    balancing_news: BTreeSet<ServiceKey>,
    policies: Policies,
    crossing_writes: UnboundedSender<mcs::Command>,
    /// `MultiClusterServices` that have to be looked at, whatever the engine says.
    crossing_news: BTreeSet<ServiceKey>,
    /// The uid of the cluster whose API is the hub's.
    hub: Arc<str>,
    mirror: Mirror,
    /// Services whose copies in the hub have to be looked at.
    mirror_news: BTreeSet<ServiceKey>,
    /// Whether all services that are exported through the hub have been said.
    exports_known: bool,
}

/// Leads until `ends` does; then stops every member.
pub(crate) async fn lead(
    context: Context,
    permit: Permit,
    ends: impl Future<Output = ()>,
) -> Result<(), HubError> {
    let Context { client, watches, options, pages } = &context;
    let namespace = options.namespace.as_str();
    let (memory, versions) = store::load(client, namespace).await?;
    let recorded = clusterset::recorded(client, namespace).await?;
    let hub = clusterset::hub_uid(client, namespace).await?;
    let clusterset = clusterset::name(client, namespace, &hub, None).await?.name;
    tracing::info!(services = memory.len(), members = recorded.len(), %clusterset, "leading");

    let remembered: BTreeSet<ClusterId> = memory
        .values()
        .flat_map(|service| service.exports.keys().chain(&service.hashed_in))
        .cloned()
        .collect();
    let mut brain = Brain::new(options.settings, memory, options.lease_time, Instant::now() + options.settle);
    // Who does not answer now may have given slices to others: without it they would be taken for nobody's.
    recorded.keys().for_each(|id| brain.joined(id));
    let mut tasks = JoinSet::new();
    let (updates, to_write) = unbounded_channel();
    let (ended, mut written) = unbounded_channel();
    let maps = Api::namespaced(client.clone(), namespace);
    tasks.spawn(store::write_all(maps, permit.clone(), versions, to_write, ended));
    let (seen, mut membership) = unbounded_channel();
    tasks.spawn(watch::membership(watches.clone(), namespace.to_owned(), seen.clone()));
    let (reporter, reports) = unbounded_channel();
    let mut board = Board::new(options.balancing.is_on());
    let mut load_balancers = balancing::LoadBalancers::new(&clusterset);
    let (mut intents, mut ending, mut asked) = (BTreeMap::new(), BTreeSet::new(), Vec::new());
    let balancers = balancing::spawn(&options.balancing, client, namespace, &permit, &mut tasks);
    for object in mcs::list(client).await? {
        let (wish, commands) = board.seen(&object, &uuid::Uuid::new_v4().to_string());
        let key = mcs::key(&object).filter(|key| board.has_balancer(key));
        let event = key.and_then(|key| load_balancers.seen(&key, &object, None));
        if let (Some(events), Some(event)) = (&balancers, event) {
            let _ = events.send(event);
        }
        asked.extend(commands);
        match wish {
            Some(Wish::Cross(key, intent)) => drop(intents.insert(key, intent)),
            Some(Wish::End(key)) => drop(ending.insert(key)),
            Some(Wish::Gone(_)) | None => {}
        }
    }
    let (policies, mut policy_news) = policies::spawn(
        client.clone(),
        watches.clone(),
        namespace,
        options.sync_namespaces,
        permit.clone(),
        &intents,
        &mut tasks,
    );
    brain.set_intents(intents, ending);
    brain.set_imports(imports::list(client).await?);
    let (mut crossings, crossing_writes) =
        mcs::spawn(client.clone(), watches.clone(), permit.clone(), Arc::clone(&hub), &mut tasks);
    let mut mirror = Mirror::default();
    let mirrored: BTreeSet<ServiceKey> =
        mirror::list(client, &hub).await?.iter().filter_map(|copy| mirror.recall(copy)).collect();
    let (exported, mut exports) = unbounded_channel();
    tasks.spawn(mirror::watch(watches.clone(), exported));
    for command in asked {
        let _ = crossing_writes.send(command);
    }
    let members =
        Members::new(context.clone(), Arc::clone(&hub), clusterset, permit, reporter, seen, policies.clone());
    let roster = Roster::remembering(recorded, remembered);
    let mut lead = Lead {
        context: context.clone(),
        brain,
        roster,
        members,
        updates,
        reports,
        board,
        load_balancers,
        balancers,
        balancing_news: BTreeSet::new(),
        policies,
        crossing_writes,
        crossing_news: BTreeSet::new(),
        hub,
        mirror,
        mirror_news: mirrored,
        exports_known: false,
    };

    let mut ends = std::pin::pin!(ends);
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    let mut showing = tokio::time::interval(SHOWING);
    showing.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut more = false;
    loop {
        let due = lead.brain.next_due();
        tokio::select! {
            biased; // what leads to less comes before what leads to more
            () = &mut ends => break,
            Some(event) = membership.recv() => lead.membership(event),
            Some((key, done)) = written.recv() => lead.written(&key, done),
            Some(heard) = lead.reports.recv() => lead.reports_from(heard),
            () = until(due), if due.is_some() => lead.due(),
            () = std::future::ready(()), if more => {}
            Some(seen) = crossings.recv() => lead.crossing(seen),
            Some(news) = policy_news.recv() => lead.policies_say(news),
            Some(change) = exports.recv() => lead.exported(change),
            _ = showing.tick() => lead.show_crossings(),
            _ = housekeeping.tick() => lead.housekeeping(),
        }
        more = lead.plan();
        lead.balance();
    }
    pages.enter(Stage::Stopping);
    lead.members.stop_all().await;
    tasks.shutdown().await;
    Ok(())
}

impl Lead {
    fn membership(&mut self, event: roster::Event) {
        if matches!(event, roster::Event::Stopped(_)) {
            // All its reports are in the channel by now: they belong to its former life.
            while let Ok(heard) = self.reports.try_recv() {
                self.report(heard);
            }
        }
        let listed = self.roster.listed();
        for command in self.roster.step(event) {
            self.carry_out(command);
        }
        if self.roster.listed() && !listed {
            self.context.pages.enter(Stage::Ready);
        }
    }

    fn carry_out(&mut self, command: roster::Command) {
        match command {
            roster::Command::Join(id) => {
                tracing::info!(cluster = %id, "joined");
                self.brain.joined(&id);
            }
            roster::Command::Leave(id) => {
                tracing::info!(cluster = %id, "left");
                self.context.pages.metrics.gone(&id);
                let commands = self.brain.left(&id, now());
                self.hand_out(commands);
            }
            roster::Command::Reset(id) => self.brain.reset(&id),
            roster::Command::Networks(id, networks) => self.brain.declare(&id, networks),
            roster::Command::Ask(id, link) => self.members.ask(&id, link, self.roster.is_leaving(&id)),
            roster::Command::Unask(id) => self.members.unask(&id),
            roster::Command::Start(id, link) => {
                self.members.start(&id, &link);
                let commands = self.brain.started(&id);
                self.hand_out(commands);
            }
            roster::Command::Stop(id) => self.members.stop(&id),
            roster::Command::AddFinalizer(id) => self.members.hold(id),
            roster::Command::Clean(id, link) => self.members.clean(id, link),
            roster::Command::Release(id) => self.members.release(id),
            roster::Command::Blocked(id, why) => {
                if self.brain.unasked(&id, now()) {
                    self.context.pages.metrics.up(&id, false);
                }
                self.members.blocked(id, &why);
            }
            roster::Command::Record(members) => self.members.record(members),
        }
    }

    fn reports_from(&mut self, heard: Heard) {
        self.report(heard);
        for _ in 1..BATCH {
            match self.reports.try_recv() {
                Ok(heard) => self.report(heard),
                Err(_) => return,
            }
        }
    }

    fn report(&mut self, heard: Heard) {
        let metrics = &self.context.pages.metrics;
        let id = &heard.from;
        match &heard.up {
            Up::Wrote(written) => metrics.wrote(id, written.kind.plural(), written.verb.as_str()),
            Up::Problem(problem) => {
                metrics.problem(id);
                tracing::warn!(cluster = %id, %problem, "needs attention");
            }
            Up::Unreachable { why, .. } => tracing::debug!(cluster = %id, why, "unreachable"),
            Up::Alive => metrics.up(id, true),
            Up::Change(_) | Up::Holds(_) | Up::Dispatched(_) => {}
            // Others hear these (`membership::session`).
            Up::Copy(_)
            | Up::Health(_)
            | Up::Identity { .. }
            | Up::Cleaned
            | Up::GaveBack
            | Up::NotCleaned { .. }
            | Up::Stopped => {}
        }
        let Heard { from: id, at, up } = heard;
        let noted = self.brain.report(&id, up, at, now());
        if let Some(propagation) = &noted.propagated {
            metrics.propagated(propagation);
        }
        if let Some(reachable) = noted.reachable {
            tracing::info!(cluster = %id, reachable, "reachability changed");
            metrics.up(&id, reachable);
            self.members.look_at(&id);
        }
    }

    /// A `MultiClusterService` has changed.
    fn crossing(&mut self, seen: mcs::Seen) {
        let (balancer, (wish, commands)) = match seen {
            mcs::Seen::There(object) => {
                let seen = self.board.seen(&object, &uuid::Uuid::new_v4().to_string());
                (self.balancer_of(&object), seen)
            }
            mcs::Seen::Gone(namespace, name) => (
                self.load_balancers.gone(&namespace, &name),
                (self.board.gone(&namespace, &name), Vec::new()),
            ),
        };
        self.tell_balancers(balancer);
        for command in commands {
            let _ = self.crossing_writes.send(command);
        }
        match wish {
            Some(Wish::Cross(key, intent)) => {
                self.policies.imply(key.clone(), Some(intent.clone()));
                self.brain.intend(&key, Some(intent));
                self.crossing_news.insert(key);
            }
            Some(Wish::End(key)) => {
                self.policies.imply(key.clone(), None);
                self.brain.intend(&key, None);
                self.crossing_news.insert(key);
            }
            Some(Wish::Gone(key)) => {
                self.policies.imply(key.clone(), None);
                self.brain.intend_no_more(&key);
            }
            None => {}
        }
    }

    /// What the controller of load balancers has to be told of a `MultiClusterService` that was seen.
    fn balancer_of(&mut self, object: &MultiClusterService) -> Option<atoll_lb::controller::Event> {
        let key = mcs::key(object).filter(|key| self.board.has_balancer(key))?;
        let balanced = if self.roster.listed() { self.brain.balanced(&key) } else { None };
        self.load_balancers.seen(&key, object, balanced.as_deref())
    }

    /// Tells the controller of load balancers what the last plans mean for it.
    fn balance(&mut self) {
        let planned = self.brain.handed_out();
        self.mirror_news.extend(planned.iter().cloned());
        self.balancing_news.extend(planned);
        if !self.roster.listed() {
            return; // a member that is not known yet is not gone
        }
        for key in std::mem::take(&mut self.balancing_news) {
            let event = self.load_balancers.look_at(&key, self.brain.balanced(&key).as_deref());
            self.tell_balancers(event);
        }
    }

    fn tell_balancers(&self, event: Option<atoll_lb::controller::Event>) {
        if let (Some(events), Some(event)) = (&self.balancers, event) {
            let _ = events.send(event);
        }
    }

    fn policies_say(&mut self, news: policies::News) {
        match news {
            policies::News::Copied(key, copied) => {
                if self.board.copied(&key, copied) {
                    self.crossing_news.insert(key);
                }
            }
            policies::News::Imports(news) => self.brain.imports(news),
        }
    }

    /// Brings what is shown on `MultiClusterServices` up to date.
    fn show_crossings(&mut self) {
        let mut news = self.brain.crossing_news();
        news.append(&mut self.crossing_news);
        self.show(news, false);
        self.show_mirror();
    }

    fn show(&mut self, crossings: BTreeSet<ServiceKey>, overdue: bool) {
        let now = format!("{:.0}", jiff::Timestamp::now());
        for key in crossings {
            let view = self.brain.view(&key);
            for command in self.board.look_at(&key, &view, &now, overdue) {
                let _ = self.crossing_writes.send(command);
            }
        }
    }

    /// A service is exported through the hub, or not any more; none: all that are have been said.
    fn exported(&mut self, change: Option<(ServiceKey, bool)>) {
        match change {
            Some((key, exported)) => {
                self.mirror_news.insert(key.clone());
                self.mirror.exported(key, exported);
            }
            None => self.exports_known = true,
        }
    }

    /// Brings the copies of slices that were exported through the hub up to date: after the members.
    fn show_mirror(&mut self) {
        for key in &self.mirror_news {
            if let Some(absent) = self.brain.absent(key) {
                self.policies.absent(key.clone(), absent);
            }
        }
        if !self.exports_known || !self.roster.listed() {
            return; // one that is not known yet is not gone
        }
        if self.roster.has(&self.hub) {
            // The hub's API is a member's: what is exported there is exported by that member, and its own import has the copies' names.
            self.mirror_news.clear();
            return;
        }
        for key in std::mem::take(&mut self.mirror_news) {
            for command in self.mirror.look_at(&key, self.brain.plan_of(&key)) {
                let _ = self.crossing_writes.send(mcs::Command::Mirror(command));
            }
        }
    }

    fn written(&mut self, key: &ServiceKey, done: bool) {
        if done {
            self.context.pages.metrics.remembered();
        }
        let commands = self.brain.persisted(key, done);
        self.hand_out(commands);
    }

    fn due(&mut self) {
        for id in self.brain.due(now()) {
            tracing::warn!(cluster = %id, lease = ?self.context.options.lease_time, "member lost: no contact for the duration of a lease");
            self.members.look_at(&id);
        }
    }

    fn housekeeping(&mut self) {
        let _ = self.brain.due(now());
        let overdue = self.board.overdue();
        self.show(overdue, true);
        let (dirty, unwritten) = self.brain.waiting();
        self.context.pages.metrics.waiting(dirty, unwritten);
    }

    /// Plans what is dirty; true if some of it is left.
    fn plan(&mut self) -> bool {
        let start = Instant::now();
        let (commands, more) = self.brain.plan(now(), PLANS);
        if !commands.is_empty() {
            self.context.pages.metrics.planned(start.elapsed());
        }
        self.hand_out(commands);
        more
    }

    fn hand_out(&mut self, commands: Vec<Command>) {
        for command in commands {
            match command {
                Command::Persist(update) => drop(self.updates.send(update)),
                Command::Assign { to, plan, touched, answer } => {
                    let (service, part) = (plan.service.clone(), plan.clusters.get(&to).cloned());
                    self.members.assign(&to, Assignment { service, part, touched, answer });
                }
            }
        }
    }
}

async fn until(due: Option<Instant>) {
    if let Some(due) = due {
        tokio::time::sleep_until(due.into()).await;
    }
}

fn now() -> Now {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let time = Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    Now { instant: Instant::now(), time }
}
