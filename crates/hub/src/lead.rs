//! One time of leadership: the task that owns the engine, and the I/O around it. It carries out and does not choose.

mod members;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::memory::MemoryUpdate;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::time::Time;
use atoll_member::{Assignment, Permit, Problem, Report};
use kube::{Api, Client};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

use crate::brain::{Brain, Command, Now};
use crate::clusterset;
use crate::http::{Pages, Stage};
use crate::options::Options;
use crate::roster::{self, Roster};
use crate::run::HubError;
use crate::{policies, store, watch};
use members::Members;

/// Reports taken in before the next plan: a member that floods us delays the others by no more than these.
const BATCH: usize = 4096;
/// Services planned before the next reports are taken in.
const PLANS: usize = 256;
/// The figures of what waits are brought up to date this often.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

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
    reports: UnboundedReceiver<(ClusterId, Report)>,
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
    let brain = Brain::new(options.settings, memory, options.lease_time, Instant::now() + options.settle);
    let mut tasks = JoinSet::new();
    let (updates, to_write) = unbounded_channel();
    let (ended, mut written) = unbounded_channel();
    let maps = Api::namespaced(client.clone(), namespace);
    tasks.spawn(store::write_all(maps, permit.clone(), versions, to_write, ended));
    let (seen, mut membership) = unbounded_channel();
    tasks.spawn(watch::membership(watches.clone(), namespace.to_owned(), seen.clone()));
    let (reporter, reports) = unbounded_channel();
    let policies = policies::spawn(
        client.clone(),
        watches.clone(),
        namespace,
        options.sync_namespaces,
        permit.clone(),
        &mut tasks,
    );
    let members = Members::new(context.clone(), hub, clusterset, permit, reporter, seen, policies);
    let roster = Roster::remembering(recorded, remembered);
    let mut lead = Lead { context: context.clone(), brain, roster, members, updates, reports };

    let mut ends = std::pin::pin!(ends);
    let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
    let mut more = false;
    loop {
        let due = lead.brain.next_due();
        tokio::select! {
            biased; // what leads to less comes before what leads to more
            () = &mut ends => break,
            Some(event) = membership.recv() => lead.membership(event),
            Some((key, done)) = written.recv() => lead.written(&key, done),
            Some((id, report)) = lead.reports.recv() => lead.reports_from(&id, report),
            () = until(due), if due.is_some() => lead.due(),
            () = std::future::ready(()), if more => {}
            _ = housekeeping.tick() => lead.housekeeping(),
        }
        more = lead.plan();
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
            while let Ok((id, report)) = self.reports.try_recv() {
                self.report(&id, report);
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

    fn reports_from(&mut self, id: &ClusterId, report: Report) {
        self.report(id, report);
        for _ in 1..BATCH {
            match self.reports.try_recv() {
                Ok((id, report)) => self.report(&id, report),
                Err(_) => return,
            }
        }
    }

    fn report(&mut self, id: &ClusterId, report: Report) {
        let metrics = &self.context.pages.metrics;
        match &report {
            Report::Wrote(written) => metrics.wrote(id, written.kind.plural(), written.verb.as_str()),
            Report::Problem(problem) => {
                metrics.problem(id);
                tracing::warn!(cluster = %id, %problem, "a person has to look at this");
                if let Problem::Forbidden { verb, kind, .. } = problem {
                    self.members.forbidden(id, (verb, *kind), problem.to_string());
                }
            }
            Report::Unreachable { why, .. } => tracing::debug!(cluster = %id, why, "unreachable"),
            Report::Alive(_) => metrics.up(id, true),
            Report::Change(_) | Report::Holds(_) => {}
        }
        let noted = self.brain.report(id, report, now());
        if let Some(propagation) = &noted.propagated {
            metrics.propagated(propagation);
        }
        if let Some(reachable) = noted.reachable {
            tracing::info!(cluster = %id, reachable, "contact has changed");
            metrics.up(id, reachable);
            self.members.look_at(id);
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
            tracing::warn!(cluster = %id, lease = ?self.context.options.lease_time, "lost: silent for a whole lease");
            self.members.look_at(&id);
        }
    }

    fn housekeeping(&mut self) {
        let _ = self.brain.due(now());
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
                Command::Assign { to, plan, touched } => {
                    self.members.assign(&to, Assignment { plan, touched });
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
