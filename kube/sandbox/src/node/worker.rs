//! Runs one pod: does what its [`Lifecycle`] says and writes what became of it.

use super::lifecycle::{Command, Event, KILLED, Lifecycle, ProbeKind, State};
use super::probe::{Prober, Schedule};
use super::runtime::{CommandRunner, PodKey, RunningContainer};
use super::status::{PodPlacement, status};
use super::{Shared, environment, events, spec};
use crate::network::Alive;
use crate::programs::{self, Context, Log, ProcessEnvironment, Program, Shell, expand, images};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Container, Pod, Probe};
use kube::api::{Api, DeleteParams, Patch, PatchParams, Preconditions};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// How many events of a pod's containers wait.
const WAITING: usize = 64;
/// After a write that failed.
const AGAIN: Duration = Duration::from_millis(500);
/// When a container whose variables are missing is tried again.
const CONFIGURE_AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// One pod that runs here.
pub(super) struct Worker {
    shared: Arc<Shared>,
    key: PodKey,
    pods: Api<Pod>,
    pod: watch::Receiver<Arc<Pod>>,
    placement: PodPlacement,
    life: Lifecycle,
    running: HashMap<usize, Running>,
    /// Which run of a container an event is about.
    runs: u64,
    sender: mpsc::Sender<ContainerEvent>,
    receiver: mpsc::Receiver<ContainerEvent>,
    written: Option<Value>,
    /// What was last said to be wrong.
    warned: String,
    /// The generation of the spec that was last looked at.
    generation: Option<i64>,
    /// Given back when the pod has ended.
    address: Option<Lease>,
    alive: Alive,
}

/// An event of a container.
struct ContainerEvent {
    /// Which run it is about.
    run: u64,
    event: Event,
    /// What people should know of it.
    remark: Option<String>,
}

/// A container that runs. Dropped, it ends at once.
struct Running {
    run: u64,
    stop: watch::Sender<bool>,
    prober: Prober,
    tasks: JoinSet<()>,
}

/// An address in use.
pub(super) struct Lease {
    shared: Arc<Shared>,
    address: Ipv4Addr,
    uid: String,
}

impl Drop for Lease {
    fn drop(&mut self) {
        let mut addresses = self.shared.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        addresses.release(self.address, &self.uid);
    }
}

/// Runs a pod until it has ended for good or is gone.
pub(super) async fn run(shared: Arc<Shared>, pod: watch::Receiver<Arc<Pod>>, alive: Alive) {
    let first = pod.borrow().clone();
    let Some(mut worker) = Worker::new(shared, first.as_ref(), pod, alive) else { return };
    if worker.bind(&first).await {
        worker.work().await;
    }
}

impl Worker {
    fn new(shared: Arc<Shared>, pod: &Pod, changes: watch::Receiver<Arc<Pod>>, alive: Alive) -> Option<Self> {
        let now = Timestamp::now();
        let key = super::key(pod);
        let on_host = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
        let host = *shared.block.api().ip();
        let address = if on_host { host } else { shared.address(pod)? };
        let lease = Lease { shared: Arc::clone(&shared), address, uid: key.uid.clone() };
        let begun = pod.status.as_ref().and_then(|status| status.start_time.as_ref()).map(|time| time.0);
        let (sender, receiver) = mpsc::channel(WAITING);
        Some(Self {
            pods: Api::namespaced(shared.client.clone(), &key.namespace),
            pod: changes,
            placement: PodPlacement { host, address, since: begun.unwrap_or(now), bound: None },
            life: spec::lifecycle(pod, shared.timing, now),
            running: HashMap::new(),
            runs: 0,
            sender,
            receiver,
            written: None,
            warned: String::new(),
            generation: pod.metadata.generation,
            address: Some(lease),
            alive,
            key,
            shared,
        })
    }

    /// Puts the pod on this node. False if it is gone meanwhile.
    async fn bind(&mut self, pod: &Pod) -> bool {
        let placed = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()).unwrap_or_default();
        if !placed.is_empty() {
            return true;
        }
        // A merge patch, because the API has no `binding`; the uid keeps it from another pod of that name.
        let patch = json!({
            "metadata": {"uid": self.key.uid},
            "spec": {"nodeName": self.shared.name},
        });
        loop {
            match self.pods.patch(&self.key.name, &PatchParams::default(), &Patch::Merge(&patch)).await {
                Ok(bound) => {
                    self.placement.bound = bound.metadata.generation;
                    return true;
                }
                // Deleted, or placed on another node: the watch says which.
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return false,
                Err(error) => {
                    tracing::debug!(pod = self.key.name, %error, "cannot place a pod; trying again");
                    tokio::time::sleep(AGAIN).await;
                }
            }
        }
    }

    async fn work(&mut self) {
        let mut todo = self.life.step(Event::Tick, Timestamp::now());
        loop {
            todo.extend(self.noticed());
            if self.carry_out(std::mem::take(&mut todo)).await {
                return;
            }
            // Several things often happen at once: one write for all.
            while let Ok(heard) = self.receiver.try_recv() {
                todo.extend(self.heard(heard));
            }
            if !todo.is_empty() {
                continue;
            }
            let saved = self.save().await;
            if saved == Saved::Gone {
                return;
            }
            if saved == Saved::Yes && self.life.over() {
                // The worker has to be there still when it is deleted.
                drop(self.address.take());
            }
            let wake = match saved {
                Saved::Later => Some(AGAIN),
                Saved::Yes | Saved::Gone => self.life.wake().map(|at| wait_for(at, Timestamp::now())),
            };
            let due = async {
                match wake {
                    Some(wake) => tokio::time::sleep(wake).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Some(heard) = self.receiver.recv() => todo = self.heard(heard),
                changed = self.pod.changed() => match changed {
                    // It is looked at next.
                    Ok(()) => {}
                    Err(_) => return,
                },
                () = due => todo = self.life.step(Event::Tick, Timestamp::now()),
            }
        }
    }

    /// An event of a container, unless it is about an earlier run.
    fn heard(&mut self, ContainerEvent { run, event, remark }: ContainerEvent) -> Vec<Command> {
        let slot = match &event {
            Event::Ended { slot, .. } | Event::Probed { slot, .. } => *slot,
            _ => return Vec::new(),
        };
        if self.running.get(&slot).is_none_or(|running| running.run != run) {
            return Vec::new();
        }
        if let Event::Ended { .. } = event {
            self.leave(slot);
        }
        if let Some(remark) = remark {
            self.warn("Unhealthy", &remark);
        }
        let todo = self.life.step(event, Timestamp::now());
        if let Some(State::Waiting { message, .. }) =
            self.life.containers().get(slot).map(|one| one.state.clone())
        {
            self.warn("BackOff", &message);
        }
        todo
    }

    /// A container has ended: exec and attach no longer reach it.
    fn leave(&mut self, slot: usize) {
        if let Some(running) = self.running.remove(&slot) {
            self.shared.runtime.ended(&self.key, &running.prober.container.name);
        }
    }

    /// What the newest state of the object asks for.
    fn noticed(&mut self) -> Vec<Command> {
        let (generation, by) = {
            let pod = self.pod.borrow_and_update();
            (pod.metadata.generation, pod.metadata.deletion_timestamp.as_ref().map(|time| time.0))
        };
        let mut todo = Vec::new();
        if self.generation != generation {
            self.generation = generation;
            todo.extend(self.life.step(Event::Changed, Timestamp::now()));
        }
        if let Some(by) = by {
            todo.extend(self.life.step(Event::Deleted { by }, Timestamp::now()));
        }
        todo
    }

    /// True when nothing is left to do.
    async fn carry_out(&mut self, mut todo: Vec<Command>) -> bool {
        while !todo.is_empty() {
            let mut next = Vec::new();
            for command in todo {
                match command {
                    Command::Start(slot) => {
                        let event = match self.start(slot).await {
                            Ok(()) => Event::Started(slot),
                            Err(cannot) => cannot,
                        };
                        next.extend(self.life.step(event, Timestamp::now()));
                    }
                    Command::Stop(slot) => self.stop(slot),
                    Command::Kill(slot) => {
                        if let Some(running) = self.running.get_mut(&slot) {
                            // Its sockets are free when this returns.
                            running.tasks.shutdown().await;
                        }
                        self.leave(slot);
                        next.extend(self.life.step(Event::Ended { slot, code: KILLED }, Timestamp::now()));
                    }
                    Command::Finish => {
                        self.finish().await;
                        return true;
                    }
                }
            }
            todo = next;
        }
        false
    }

    async fn start(&mut self, slot: usize) -> Result<(), Event> {
        let pod = self.pod.borrow().clone();
        let cannot = |reason, message, again| Event::CannotStart { slot, reason, message, again };
        let Some(container) = spec::container(&pod, slot).cloned() else {
            return Err(cannot("CreateContainerError", "no such container".to_owned(), None));
        };
        let program = match images::find(container.image.as_deref().unwrap_or_default()) {
            Ok(program) => program,
            Err(unknown) => {
                let message = unknown.to_string();
                self.warn("Failed", &message);
                return Err(cannot("ErrImagePull", message, None));
            }
        };
        let variables = match environment::fetch(&self.shared.client, &self.key.namespace, &container).await {
            Ok(values) => {
                environment::variables(&pod, &container, &self.shared.name, &self.placement, &values)
            }
            Err(error) => Err(error.to_string()),
        };
        let variables = variables.map_err(|message| {
            self.warn("Failed", &format!("Error: {message}"));
            cannot("CreateContainerConfigError", message, Some(CONFIGURE_AGAIN))
        })?;
        self.launch(slot, container, &program, variables).await;
        Ok(())
    }

    /// Says what is wrong, once.
    fn warn(&mut self, reason: &str, message: &str) {
        if self.warned != message {
            message.clone_into(&mut self.warned);
            events::warn(&self.shared, &self.pod.borrow(), reason, message);
        }
    }

    async fn launch(
        &mut self,
        slot: usize,
        container: Container,
        program: &Program,
        variables: std::collections::BTreeMap<String, String>,
    ) {
        let words = |words: &Option<Vec<String>>| -> Vec<String> {
            words.iter().flatten().map(|word| expand(word, &variables)).collect()
        };
        let (command, arguments) = (words(&container.command), words(&container.args));
        let environment = Arc::new(variables);
        let dialer = self.shared.dialer.from_pod(&self.key.namespace, Some(self.placement.address));
        let (stop, stopped) = watch::channel(false);
        let log = Log::default();
        let context = Context {
            pod: self.key.name.clone(),
            address: self.placement.address,
            dns: self.shared.block.dns(),
            command,
            arguments,
            environment: Arc::clone(&environment),
            working_dir: container.working_dir.clone(),
            confinement: self.shared.confinement.clone(),
            member: self.shared.block.0,
            network: self.shared.network.clone(),
            dialer: dialer.clone(),
            log: log.clone(),
            stop: stopped,
        };
        let inside = match program {
            Program::Process(_) => CommandRunner::Process(ProcessEnvironment {
                environment,
                working_dir: container.working_dir.clone(),
                confinement: self.shared.confinement.clone(),
                member: self.shared.block.0,
            }),
            _ => CommandRunner::BuiltIn(Shell {
                dialer: dialer.clone(),
                environment,
                hostname: self.key.name.clone(),
                dns: self.shared.block.dns(),
            }),
        };
        let takes_input = container.stdin == Some(true);
        let (input, stdin) = match takes_input {
            true => {
                let (sender, receiver) = mpsc::channel(WAITING);
                (Some(sender), Some(receiver))
            }
            false => (None, None),
        };
        let once = container.stdin_once == Some(true);
        let runs = RunningContainer {
            inside: inside.clone(),
            stdin: input,
            once,
            unseen: takes_input.then_some(0),
            alive: stop.subscribe(),
        };
        self.shared.runtime.runs(&self.key, &container.name, log, runs);
        self.runs += 1;
        let (run, sender, alive) = (self.runs, self.sender.clone(), self.alive.clone());
        let program = programs::start(program, context, stdin).await;
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _alive = alive;
            let code = program.await;
            let _ =
                sender.send(ContainerEvent { run, event: Event::Ended { slot, code }, remark: None }).await;
        });
        let prober = Prober { container, address: self.placement.address, dialer, inside };
        for (kind, probe) in probes(&prober.container) {
            tasks.spawn(ask_again_and_again(prober.clone(), slot, run, kind, probe, self.sender.clone()));
        }
        self.running.insert(slot, Running { run, stop, prober, tasks });
    }

    /// Runs the container's hook, if it has one, and then asks it to end.
    fn stop(&mut self, slot: usize) {
        let Some(running) = self.running.get_mut(&slot) else { return };
        let (stop, prober) = (running.stop.clone(), running.prober.clone());
        running.tasks.spawn(async move {
            let hooks = prober.container.lifecycle.as_ref();
            if let Some(hook) = hooks.and_then(|hooks| hooks.pre_stop.as_ref())
                && let Err(why) = prober.hook(hook).await
            {
                tracing::debug!(container = prober.container.name, why, "a preStop hook failed");
            }
            stop.send_replace(true);
        });
    }

    /// Writes the status if it is another than before.
    async fn save(&mut self) -> Saved {
        let now = Timestamp::now();
        let status = status(&self.pod.borrow(), &self.life, &self.placement, self.written.as_ref(), now);
        if self.written.as_ref() == Some(&status) {
            return Saved::Yes;
        }
        let patch = json!({"metadata": {"uid": self.key.uid}, "status": status});
        let written =
            self.pods.patch_status(&self.key.name, &PatchParams::default(), &Patch::Merge(&patch)).await;
        match written {
            Ok(_) => {
                self.written = Some(status);
                Saved::Yes
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Saved::Gone,
            Err(error) => {
                tracing::debug!(pod = self.key.name, %error, "cannot write a pod's status; trying again");
                Saved::Later
            }
        }
    }

    /// The pod was deleted and everything in it has ended: removes the object.
    async fn finish(&mut self) {
        while self.save().await == Saved::Later {
            tokio::time::sleep(AGAIN).await;
        }
        let preconditions = Preconditions { uid: Some(self.key.uid.clone()), resource_version: None };
        let now = DeleteParams {
            grace_period_seconds: Some(0),
            preconditions: Some(preconditions),
            ..DeleteParams::default()
        };
        loop {
            match self.pods.delete(&self.key.name, &now).await {
                Ok(_) => return,
                Err(kube::Error::Api(status)) if matches!(status.code, 404 | 409) => return,
                Err(_) => tokio::time::sleep(AGAIN).await,
            }
        }
    }
}

/// What became of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Saved {
    Yes,
    Later,
    Gone,
}

fn wait_for(at: Timestamp, now: Timestamp) -> Duration {
    Duration::try_from(at.duration_since(now)).unwrap_or_default()
}

fn probes(container: &Container) -> Vec<(ProbeKind, Probe)> {
    let kinds = [
        (ProbeKind::Startup, &container.startup_probe),
        (ProbeKind::Readiness, &container.readiness_probe),
        (ProbeKind::Liveness, &container.liveness_probe),
    ];
    kinds.into_iter().filter_map(|(kind, probe)| Some((kind, probe.clone()?))).collect()
}

async fn ask_again_and_again(
    prober: Prober,
    slot: usize,
    run: u64,
    kind: ProbeKind,
    probe: Probe,
    sender: mpsc::Sender<ContainerEvent>,
) {
    let schedule = Schedule::of(&probe);
    tokio::time::sleep(schedule.first).await;
    loop {
        let answer = prober.probe(&probe).await;
        let event = Event::Probed { slot, kind, passed: answer.is_ok() };
        let remark = answer.err().map(|why| format!("{kind:?} probe failed: {why}"));
        if sender.send(ContainerEvent { run, event, remark }).await.is_err() {
            return;
        }
        tokio::time::sleep(schedule.every).await;
    }
}
