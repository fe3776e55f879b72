//! The smallest hub there is: an engine between members, with no memory and no lease.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use atoll_engine::engine::{Engine, Outcome};
use atoll_engine::facts::Settings;
use atoll_engine::intent::CrossCluster;
use atoll_engine::memory::Memory;
use atoll_engine::names::{ClusterId, ServiceKey};
use atoll_engine::plan::Touched;
use atoll_engine::time::Time;
use atoll_engine::world::Change;
use atoll_link::{Assignment, Dispatched, Down, Identity, Lease, Problem, Up, Written};
use atoll_member::{Downlink, Handle, Uplink, enter, spawn};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::clusters::Clusters;

/// A hub with one member per cluster.
pub(crate) struct Hub {
    said: Arc<Mutex<Said>>,
    members: Vec<Handle>,
    task: JoinHandle<()>,
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
    pub(crate) stopped: BTreeSet<ClusterId>,
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
        let (reports, mut inbox) = mpsc::unbounded_channel::<(ClusterId, Up)>();
        let (mut members, mut handles) = (BTreeMap::new(), Vec::new());
        for cluster in lab.clusters() {
            let identity = identity(cluster.name())?;
            let clients = cluster.clients();
            enter(&identity, &clients).await.context("the cluster can't be entered")?;
            let id = identity.cluster.clone();
            let (from, reports) = (id.clone(), reports.clone());
            let up = Uplink::new(move |up| drop(reports.send((from.clone(), up))));
            let handle = spawn(id.clone(), clients, up);
            lend(&handle, Lease::Held(Duration::from_secs(3600)));
            handle.downlink().send(Instant::now(), Down::Start(identity));
            members.insert(id, handle.downlink().clone());
            handles.push(handle);
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
                let (id, up) = tokio::select! {
                    Some(next) = inbox.recv() => next,
                    Some((key, intent)) = changed.recv() => {
                        engine.intend(key, intent);
                        for outcome in engine.plan_dirty(now()) {
                            assign(&members, &outcome);
                        }
                        continue;
                    }
                    Some(()) = stopped.recv() => {
                        for member in members.values() {
                            member.send(Instant::now(), Down::Stop);
                        }
                        continue;
                    }
                };
                let mut outcomes = Vec::new();
                match up {
                    Up::Dispatched(state) => {
                        note(&notes).dispatched.insert((id, state.service.clone()), state);
                    }
                    Up::Change(change) => {
                        if let Change::Export(key, Some(_)) = &change {
                            note(&notes).exported.insert(key.name.to_string());
                        }
                        if let Change::Nodes(nodes) = &change {
                            note(&notes).nodes.extend(&nodes.addresses);
                        }
                        let _ = engine.apply(&id, change);
                        // Not everything is known until all members have told.
                        if engine.world().unheard().next().is_none() {
                            outcomes.extend(engine.plan_dirty(now()));
                            for key in std::mem::take(&mut held) {
                                outcomes.push(engine.plan(&key, now()));
                            }
                        }
                    }
                    Up::Holds(key) => {
                        if engine.world().unheard().next().is_none() {
                            outcomes.push(engine.plan(&key, now()));
                        }
                        held.insert(key);
                    }
                    Up::Wrote(written) => note(&notes).wrote.push((id, written)),
                    Up::Problem(problem) => {
                        eprintln!("{id}: {problem}");
                        note(&notes).problems.push((id, problem));
                    }
                    Up::Stopped => {
                        let all = {
                            let mut said = note(&notes);
                            said.stopped.insert(id);
                            said.stopped.len() == members.len()
                        };
                        if all {
                            return;
                        }
                    }
                    Up::Alive
                    | Up::Unreachable { .. }
                    | Up::Copy(_)
                    | Up::Health(_)
                    | Up::Identity { .. }
                    | Up::Cleaned
                    | Up::GaveBack
                    | Up::NotCleaned { .. } => {}
                }
                for outcome in outcomes {
                    assign(&members, &outcome);
                }
            }
        });
        Ok(Self { said, members: handles, task, stop, intents })
    }

    /// What members have said so far.
    pub(crate) fn said(&self) -> MutexGuard<'_, Said> {
        note(&self.said)
    }

    /// What a `MultiClusterService` asks for, or that there is none any more.
    pub(crate) fn intend(&self, key: &ServiceKey, intent: Option<CrossCluster>) -> anyhow::Result<()> {
        Ok(self.intents.send((key.clone(), intent))?)
    }

    /// Lends all members the right to write, or takes it back.
    pub(crate) fn lend(&self, lease: Lease) {
        self.members.iter().for_each(|member| lend(member, lease));
    }

    /// Stops all members.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.send(())?;
        self.task.await?;
        Ok(())
    }
}

fn lend(member: &Handle, lease: Lease) {
    member.downlink().send(Instant::now(), Down::Lease(lease));
}

fn assign(members: &BTreeMap<ClusterId, Downlink>, outcome: &Outcome) {
    for (id, member) in members {
        let (service, touched) = (outcome.plan.service.clone(), outcome.touched.clone());
        let part = outcome.plan.clusters.get(id).cloned();
        let answer = (touched == Touched::Everything).then_some(1);
        member.send(Instant::now(), Down::Assign(Assignment { service, part, touched, answer }));
    }
}

fn note(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().expect("no holder panics with it")
}

fn now() -> Time {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
