//! The smallest hub there is: an engine between members, with no memory and no lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

use anyhow::Context;
use atoll_engine::engine::{Engine, Outcome};
use atoll_engine::facts::Settings;
use atoll_engine::intent::CrossCluster;
use atoll_engine::memory::Memory;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::Touched;
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_member::{
    Assignment, Dispatched, Handle, Identity, Permit, Problem, Report, Written, enter, spawn,
};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clusters::Clusters;

/// A hub with one member per cluster.
pub(crate) struct Hub {
    said: Arc<Mutex<Said>>,
    pub(crate) permit: Permit,
    task: JoinHandle<BTreeMap<ClusterId, Handle>>,
    stop: mpsc::UnboundedSender<()>,
    intents: mpsc::UnboundedSender<(ServiceKey, Option<CrossCluster>)>,
}

/// What members have said.
#[derive(Default, Debug)]
pub(crate) struct Said {
    pub(crate) wrote: Vec<(ClusterId, Written)>,
    pub(crate) problems: Vec<(ClusterId, Problem)>,
    pub(crate) exported: BTreeSet<String>,
    pub(crate) nodes: BTreeSet<std::net::IpAddr>,
    pub(crate) dispatched: BTreeMap<(ClusterId, ServiceKey), Dispatched>,
}

/// The identity of a member.
pub(crate) fn identity(name: &str) -> anyhow::Result<Identity> {
    Ok(Identity { cluster: ClusterId::parse(name)?, hub: "hub-1".into(), clusterset: "atolls".into() })
}

impl Hub {
    /// Enters the clusters and starts their members.
    pub(crate) async fn start(lab: &Clusters) -> anyhow::Result<Self> {
        Self::start_asking(lab, BTreeMap::new()).await
    }

    /// The same, with `MultiClusterServices` that are there from the beginning.
    pub(crate) async fn start_asking(
        lab: &Clusters,
        asked: BTreeMap<ServiceKey, CrossCluster>,
    ) -> anyhow::Result<Self> {
        let (reports, mut inbox) = mpsc::unbounded_channel::<(ClusterId, Report)>();
        let permit = Permit::forever();
        let mut members = BTreeMap::new();
        for cluster in lab.clusters() {
            let identity = identity(cluster.name())?;
            let clients = cluster.clients();
            enter(&identity, &clients).await.context("the cluster can't be entered")?;
            let id = identity.cluster.clone();
            members.insert(id, spawn(identity, clients, permit.clone(), reports.clone()));
        }
        let said = Arc::new(Mutex::new(Said::default()));
        let (stop, mut stopped) = mpsc::unbounded_channel();
        let (intents, mut changed) = mpsc::unbounded_channel();
        let notes = Arc::clone(&said);
        let task = tokio::spawn(async move {
            let mut engine = Engine::new(Settings::default(), Memory::new());
            for id in members.keys() {
                let _ = engine.apply(id, Change::Joined);
            }
            engine.set_intents(asked);
            let mut held: BTreeSet<ServiceKey> = BTreeSet::new();
            loop {
                let (id, report) = tokio::select! {
                    Some(next) = inbox.recv() => next,
                    Some((key, intent)) = changed.recv() => {
                        engine.intend(key, intent);
                        for outcome in engine.plan_dirty(now()) {
                            assign(&members, &outcome);
                        }
                        continue;
                    }
                    _ = stopped.recv() => return members,
                };
                let mut outcomes = Vec::new();
                match report {
                    Report::Dispatched(state) => {
                        note(&notes).dispatched.insert((id, state.service.clone()), state);
                    }
                    Report::Change(change) => {
                        if let Change::Export(key, Some(_)) = &change {
                            note(&notes).exported.insert(key.name.to_string());
                        }
                        if let Change::Networks(networks) = &change {
                            note(&notes).nodes.extend(&networks.nodes);
                        }
                        let _ = engine.apply(&id, change);
                        // Nobody has told us everything until all have.
                        if engine.world().unheard().next().is_none() {
                            outcomes.extend(engine.plan_dirty(now()));
                            for key in std::mem::take(&mut held) {
                                outcomes.push(engine.plan(&key, now()));
                            }
                        }
                    }
                    Report::Holds(key) => {
                        if engine.world().unheard().next().is_none() {
                            outcomes.push(engine.plan(&key, now()));
                        }
                        held.insert(key);
                    }
                    Report::Wrote(written) => note(&notes).wrote.push((id, written)),
                    Report::Problem(problem) => {
                        eprintln!("{id}: {problem}");
                        note(&notes).problems.push((id, problem));
                    }
                    Report::Alive(_) | Report::Unreachable { .. } => {}
                }
                for outcome in outcomes {
                    assign(&members, &outcome);
                }
            }
        });
        Ok(Self { said, permit, task, stop, intents })
    }

    /// What members have said so far.
    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        note(&self.said)
    }

    /// What a `MultiClusterService` asks for, or that there is none any more.
    pub(crate) fn intend(&self, key: &ServiceKey, intent: Option<CrossCluster>) -> anyhow::Result<()> {
        Ok(self.intents.send((key.clone(), intent))?)
    }

    /// Stops all members.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.send(())?;
        for (_, member) in self.task.await? {
            member.stop().await;
        }
        Ok(())
    }
}

fn assign(members: &BTreeMap<ClusterId, Handle>, outcome: &Outcome) {
    for member in members.values() {
        let (plan, touched) = (outcome.plan.clone(), outcome.touched.clone());
        let answer = (touched == Touched::Everything).then_some(1);
        member.assign(Assignment { plan, touched, answer });
    }
}

fn note(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().expect("nobody panics with it")
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
