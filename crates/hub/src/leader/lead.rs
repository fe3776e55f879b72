//! One time of leadership: the task that owns the engine, and the I/O around it. It carries out and does not choose.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll_engine::fences::Policy;
use atoll_engine::memory::{Memory, MemoryUpdate};
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::time::Time;
use atoll_link::{Assignment, Up};
use atoll_member::Permit;
use atoll_member::events::Events;
use kube::{Api, Client};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinSet;

use crate::explain::registration::{self, Place, Registration};
use crate::explain::{About, Answered, Asked, Known, Question, Tally, plan};
use crate::leader::http::{Pages, Stage};
use crate::leader::run::HubError;
use crate::mcs;
use crate::membership::clusterset;
use crate::membership::members::Members;
use crate::membership::own;
use crate::membership::roster::{self, Roster};
use crate::membership::session::Heard;
use crate::membership::watch;
use crate::options::{Explain, Options};
use crate::policies::{self, Policies};
use crate::services::brain::{Brain, Command, Ended, Now};
use crate::services::fences;
use crate::services::imports;
use crate::services::memory_store;
use crate::services::mirror;

/// What helps when the hub may not create events in its own API.
const MAY_NOT_TELL: &str = "give the hub's user the right to create events";
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
    /// Since when this process runs, in whole seconds.
    pub(crate) started: jiff::Timestamp,
    /// Where questions are answered that another API server passes on.
    pub(crate) place: Option<Place>,
}

impl Context {
    /// What the leader keeps in the hub's API for questions; none if they don't get here.
    fn registration(&self) -> Option<Registration> {
        let namespace = self.options.namespace.clone();
        match self.options.explain {
            Explain::ByApi | Explain::At(_) => Some(Registration { namespace, place: self.place.clone() }),
            Explain::Nowhere => None,
        }
    }
}

/// The running lead.
struct Lead {
    context: Context,
    /// The hub's uid.
    hub: Arc<str>,
    /// How many more plans may be made at the same time.
    planning: Arc<Semaphore>,
    brain: Brain,
    roster: Roster,
    members: Members,
    updates: UnboundedSender<MemoryUpdate>,
    reports: UnboundedReceiver<Heard>,
    multi_cluster_services: mcs::Controller,
    policies: Policies,
    mirror: mirror::Controller,
    about: About,
    /// What is counted of services, for whoever asks.
    tally: Tally,
}

/// What the lead hears, besides the members' reports.
struct Inputs {
    membership: UnboundedReceiver<roster::Event>,
    written: UnboundedReceiver<(ServiceKey, Ended)>,
    multi_cluster_services: UnboundedReceiver<mcs::Seen>,
    policies: UnboundedReceiver<policies::News>,
    exports: UnboundedReceiver<mirror::Exported>,
    fences: UnboundedReceiver<Vec<Policy>>,
    questions: Receiver<Question>,
}

/// Leads until `ends` does; then stops every member.
pub(crate) async fn lead(
    context: Context,
    permit: Permit,
    ends: impl Future<Output = ()>,
) -> Result<(), HubError> {
    let pages = Arc::clone(&context.pages);
    let mut tasks = JoinSet::new();
    let (mut lead, mut inputs) = Lead::start(context, permit.clone(), &mut tasks).await?;
    lead.run(&mut inputs, ends).await;
    lead.context.options.questions.end();
    pages.enter(Stage::Stopping);
    lead.members.stop_all().await;
    tasks.shutdown().await;
    if let Some(registration) = lead.context.registration().filter(|_| permit.holds()) {
        registration.withdraw(&lead.context.client).await;
    }
    Ok(())
}

impl Lead {
    /// Reads what the hub's API has, and starts what watches and writes it. Nothing is planned before all of it is known.
    async fn start(
        context: Context,
        permit: Permit,
        tasks: &mut JoinSet<()>,
    ) -> Result<(Self, Inputs), HubError> {
        let Context { client, watches, options, .. } = &context;
        let namespace = options.namespace.as_str();
        let (memory, versions) = memory_store::load(client, namespace).await?;
        let recorded = clusterset::recorded(client, namespace).await?;
        let hub = clusterset::hub_uid(client, namespace).await?;
        let clusterset = clusterset::name(client, namespace, &hub, None).await?.name;
        tracing::info!(services = memory.len(), members = recorded.len(), %clusterset, "leading");

        let roster = Roster::remembering(recorded.clone(), remembered(&memory))
            .allowing_insecure(options.allow_insecure_members);
        let settled = Instant::now() + options.settle;
        let mut brain = Brain::new(options.settings, memory, options.lease_time, settled);
        brain.reserve(own::reserved(options));
        // A member that does not answer now may have given slices to others: unknown, it would lose them.
        recorded.keys().for_each(|id| brain.joined(id));
        let (updates, to_write) = unbounded_channel();
        let (ended, written) = unbounded_channel();
        let maps = Api::namespaced(client.clone(), namespace);
        tasks.spawn(memory_store::write_all(maps, permit.clone(), versions, to_write, ended));
        let (seen, membership) = unbounded_channel();
        tasks.spawn(watch::membership(watches.clone(), namespace.to_owned(), seen.clone()));

        let told = Events::start(client.clone(), permit.clone(), "hub".to_owned(), MAY_NOT_TELL);
        let (rules, sealer) = policies::prepare(client, options, context.started).await?;
        let authors = policies::Authors::new(client.clone(), rules.clone());
        let (multi_cluster_services, listed, changes) =
            mcs::Controller::start(&context, &permit, &told, &hub, &clusterset, authors, tasks).await?;
        let (policies, policy_news) = policies::spawn(
            client.clone(),
            watches.clone(),
            rules,
            sealer,
            (permit.clone(), told.clone()),
            listed.implied,
            tasks,
        );
        brain.set_intents(listed.intents, listed.ending);
        brain.set_imports(imports::list(client).await?);
        brain.set_fences(fences::with_flags(options, fences::list(client).await?));
        let (fenced, policy_changes) = unbounded_channel();
        tasks.spawn(fences::follow(watches.clone(), fenced));
        let writes = multi_cluster_services.writes();
        let (mirror, exports) =
            mirror::Controller::start(client, watches.clone(), Arc::clone(&hub), writes, tasks).await?;
        let (reporter, reports) = unbounded_channel();
        let (set, leader) = (clusterset.to_string(), options.identity.clone());
        registration::spawn(client, context.registration(), namespace, &permit, tasks);
        let members = Members::new(
            context.clone(),
            Arc::clone(&hub),
            clusterset,
            (permit, told),
            reporter,
            seen,
            policies.clone(),
        );
        let questions = context.options.questions.hear();
        let about = About { clusterset: set, leader: leader.clone(), version: env!("CARGO_PKG_VERSION") };
        let lead = Self {
            context,
            hub,
            planning: Arc::new(Semaphore::new(plan::AT_ONCE)),
            brain,
            roster,
            members,
            updates,
            reports,
            multi_cluster_services,
            policies,
            mirror,
            about,
            tally: Tally::default(),
        };
        let inputs = Inputs {
            membership,
            written,
            multi_cluster_services: changes,
            policies: policy_news,
            exports,
            fences: policy_changes,
            questions,
        };
        Ok((lead, inputs))
    }

    /// Routes what comes in to its subject, and plans, until `ends` does.
    async fn run(&mut self, inputs: &mut Inputs, ends: impl Future<Output = ()>) {
        let mut ends = std::pin::pin!(ends);
        let mut housekeeping = tokio::time::interval(HOUSEKEEPING);
        let mut showing = tokio::time::interval(SHOWING);
        showing.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut more = false;
        loop {
            let due = self.brain.next_due();
            tokio::select! {
                biased; // what leads to less comes before what leads to more
                () = &mut ends => return,
                Some(event) = inputs.membership.recv() => self.membership(event),
                Some(policies) = inputs.fences.recv() => {
                    self.brain.set_fences(fences::with_flags(&self.context.options, policies));
                }
                Some((key, ended)) = inputs.written.recv() => self.written(&key, ended),
                Some(heard) = self.reports.recv() => self.reports_from(heard),
                () = until(due), if due.is_some() => self.due(),
                () = std::future::ready(()), if more => {}
                Some(seen) = inputs.multi_cluster_services.recv() => {
                    let listed = self.roster.listed();
                    self.multi_cluster_services.seen(seen, listed, &mut self.brain, &self.policies);
                }
                Some(news) = inputs.policies.recv() => self.policies_say(news),
                Some(change) = inputs.exports.recv() => self.mirror.exported(change),
                _ = showing.tick() => self.show(),
                Some(question) = inputs.questions.recv() => self.answer(question),
                _ = housekeeping.tick() => self.housekeeping(),
            }
            more = self.plan();
            let planned = self.brain.handed_out();
            self.mirror.planned(&planned);
            self.tally.touch(&planned);
            self.multi_cluster_services.balance(planned, self.roster.listed(), &self.brain);
        }
    }

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
            roster::Command::Networks(id, networks) => {
                self.brain.declare(&id, networks.clone());
                self.members.show_networks(id, networks);
            }
            roster::Command::ShowNetworks(id, networks) => self.members.show_networks(id, networks),
            roster::Command::BindNetworks(id) => self.members.bind_networks(id),
            roster::Command::Ask(id, link, when) => {
                self.members.ask(&id, link, when, self.roster.is_leaving(&id));
            }
            roster::Command::Unask(id) => self.members.unask(&id),
            roster::Command::Start(id, link) => {
                self.members.start(&id, &link);
                let commands = self.brain.started(&id);
                self.hand_out(commands);
            }
            roster::Command::Token(id, link) => self.members.show_token(&id, &link),
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
        if let Some(learnt) = noted.learnt {
            self.members.pin(id.clone(), learnt);
        }
        if let Some(reachable) = noted.reachable {
            tracing::info!(cluster = %id, reachable, "reachability changed");
            metrics.up(&id, reachable);
            self.members.look_at(&id);
        }
    }

    fn answer(&mut self, question: Question) {
        let Question { asked, answer } = question;
        if plan::is_asked(&asked) {
            return self.plan_for(&asked, answer);
        }
        let known = Known {
            brain: &self.brain,
            roster: &self.roster,
            balancers: self.multi_cluster_services.load_balancers(),
            about: &self.about,
            now: now(),
        };
        let answered = crate::explain::answer(&known, &mut self.tally, &asked);
        match crate::explain::template_of(&asked).filter(|_| answered.status == 200) {
            Some(key) => self.policies.explain(key, move |template| {
                drop(answer.send(crate::explain::with_template(answered, template)));
            }),
            None => drop(answer.send(answered)), // whoever asked may have gone
        }
    }

    /// Copies what the plan is about; it is made elsewhere.
    fn plan_for(&self, asked: &Asked, answer: oneshot::Sender<Answered>) {
        let Ok(permit) = Arc::clone(&self.planning).try_acquire_owned() else {
            return drop(answer.send(plan::busy()));
        };
        let balances = self.context.options.balancing.is_on();
        let job = match plan::prepare(&self.brain, &self.hub, balances, asked, now().time) {
            Ok(job) => job,
            Err(refused) => return drop(answer.send(refused)),
        };
        let policies = self.policies.clone();
        tokio::spawn(async move {
            let trial = policies.trial().await;
            let made = tokio::task::spawn_blocking(move || job.run(trial));
            if let Ok(answered) = made.await {
                let _ = answer.send(answered); // whoever asked may have gone
            }
            drop(permit);
        });
    }

    fn policies_say(&mut self, news: policies::News) {
        match news {
            policies::News::Copied(key, copied) => self.multi_cluster_services.copied(key, copied),
            policies::News::Imports(news) => self.brain.imports(news),
        }
    }

    /// Brings what is shown in the hub's API up to date.
    fn show(&mut self) {
        self.multi_cluster_services.show(&mut self.brain);
        self.mirror.show(&self.brain, &self.roster, &self.policies);
    }

    fn written(&mut self, key: &ServiceKey, ended: Ended) {
        if ended == Ended::Written {
            self.context.pages.metrics.remembered();
        }
        let commands = self.brain.persisted(key, ended);
        self.hand_out(commands);
    }

    fn due(&mut self) {
        for id in self.brain.due(now()) {
            tracing::warn!(cluster = %id, lease_s = self.context.options.lease_time.as_secs(), "member lost: no contact for the duration of a lease");
            self.members.look_at(&id);
        }
    }

    fn housekeeping(&mut self) {
        let _ = self.brain.due(now());
        self.multi_cluster_services.show_overdue(&self.brain);
        let (dirty, unwritten) = self.brain.waiting();
        self.context.pages.metrics.waiting(dirty, unwritten);
        if let Some(refused) = self.brain.refusals() {
            let counts = refused.into_iter().map(|((id, reason), count)| (id, reason, count));
            self.context.pages.metrics.refusals(counts);
        }
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

/// The clusters that memory speaks of.
fn remembered(memory: &Memory) -> BTreeSet<ClusterId> {
    memory.values().flat_map(|service| service.exports.keys().chain(&service.hashed_in)).cloned().collect()
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
