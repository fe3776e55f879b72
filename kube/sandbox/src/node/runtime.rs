//! Answers for the pods that run here: logs, commands in them, a way to their input and output.

use super::lifecycle::KILLED;
use crate::programs::{Input, Log, Pipe, ProcessEnvironment, Shell, Stream, followed, selected};
use atoll_kubeapi::pods::{
    Exit, Output, PodAttachOptions, PodError, PodExecOptions, PodLogOptions, PodRef, Pods, Session,
};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};

/// How many pieces of input or output wait.
const WAITING: usize = 64;

/// What runs on one node. Made before the API, which is given it by `Options::pods`; the node then fills it.
#[derive(Debug, Default)]
pub struct Runtime {
    pods: Mutex<HashMap<(String, String), Entry>>,
}

/// One pod.
#[derive(Debug)]
struct Entry {
    uid: String,
    containers: HashMap<String, ContainerEntry>,
}

/// What is kept of a container.
#[derive(Debug)]
struct ContainerEntry {
    log: Log,
    previous: Option<Log>,
    runs: Option<RunningContainer>,
}

/// What a container that runs can be asked for.
pub(super) struct RunningContainer {
    pub(super) inside: CommandRunner,
    /// Where input goes, if the container takes any.
    pub(super) stdin: Option<mpsc::Sender<Bytes>>,
    /// The first client to attach is the only one that sends input.
    pub(super) once: bool,
    /// For one that takes input: how far its log was read. Who attaches first sees what comes after, so that a client which
    /// reads the log and then attaches (kubectl since 1.34) sees every line once, and one that only attaches misses none.
    pub(super) unseen: Option<u64>,
    /// Closed when the container ends.
    pub(super) alive: watch::Receiver<bool>,
}

impl std::fmt::Debug for RunningContainer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RunningContainer")
    }
}

/// How a command is run in a container.
#[derive(Clone)]
pub(super) enum CommandRunner {
    /// By the few commands that there are.
    BuiltIn(Shell),
    /// By this machine.
    Process(ProcessEnvironment),
}

impl CommandRunner {
    /// Runs a command to its end.
    pub(super) async fn run(
        &self,
        command: Vec<String>,
        stdin: Option<mpsc::Receiver<Bytes>>,
        out: Pipe,
        err: Pipe,
    ) -> i32 {
        match self {
            Self::BuiltIn(shell) => {
                shell.run(command, stdin.map_or(Input::Nothing, Input::Client), out, err).await
            }
            Self::Process(around) => around.run(&command, stdin, out, err, None).await,
        }
    }
}

impl Runtime {
    /// A runtime in which nothing runs yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    fn pods(&self) -> MutexGuard<'_, HashMap<(String, String), Entry>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A container runs, with a log of its own; that of its last run is kept beside it.
    pub(super) fn runs(&self, pod: &PodKey, container: &str, log: Log, runs: RunningContainer) {
        let mut pods = self.pods();
        let key = (pod.namespace.clone(), pod.name.clone());
        let entry =
            pods.entry(key).or_insert_with(|| Entry { uid: pod.uid.clone(), containers: HashMap::new() });
        if entry.uid != pod.uid {
            *entry = Entry { uid: pod.uid.clone(), containers: HashMap::new() };
        }
        let previous = entry.containers.remove(container).map(|old| old.log);
        entry.containers.insert(container.to_owned(), ContainerEntry { log, previous, runs: Some(runs) });
    }

    /// A container has ended; its log stays.
    pub(super) fn ended(&self, pod: &PodKey, container: &str) {
        let mut pods = self.pods();
        let entry = pods.get_mut(&(pod.namespace.clone(), pod.name.clone())).filter(|one| one.uid == pod.uid);
        if let Some(container) = entry.and_then(|entry| entry.containers.get_mut(container)) {
            container.runs = None;
            container.log.end();
        }
    }

    /// A pod is gone, and all that is known of it.
    pub(super) fn forget(&self, pod: &PodKey) {
        let mut pods = self.pods();
        let key = (pod.namespace.clone(), pod.name.clone());
        if let Some(entry) = pods.get(&key).filter(|entry| entry.uid == pod.uid) {
            entry.containers.values().for_each(|container| container.log.end());
            pods.remove(&key);
        }
    }

    fn find<T>(
        &self,
        pod: &PodRef,
        read: impl FnOnce(&mut ContainerEntry) -> Result<T, PodError>,
    ) -> Result<T, PodError> {
        let mut pods = self.pods();
        let entry = pods.get_mut(&(pod.namespace.clone(), pod.name.clone()));
        let PodRef { namespace, name, container } = pod;
        match entry.and_then(|entry| entry.containers.get_mut(container)) {
            Some(found) => read(found),
            None => Err(PodError::NotFound(format!(
                "container \"{container}\" in pod \"{name}\" of namespace \"{namespace}\" has not run since the sandbox was started"
            ))),
        }
    }
}

/// A pod, and which of those that had its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct PodKey {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) uid: String,
}

fn not_running(pod: &PodRef) -> PodError {
    PodError::NotRunning(format!("container \"{}\" in pod \"{}\" does not run", pod.container, pod.name))
}

impl Pods for Runtime {
    fn logs(&self, pod: &PodRef, options: PodLogOptions) -> Result<mpsc::Receiver<Bytes>, PodError> {
        self.find(pod, |container| match (options.previous, &container.previous) {
            (false, _) => {
                let (lines, next) = selected(&container.log, &options);
                if let Some(unseen) = container.runs.as_mut().and_then(|runs| runs.unseen.as_mut()) {
                    *unseen = next;
                }
                Ok(lines)
            }
            (true, Some(previous)) => Ok(selected(previous, &options).0),
            (true, None) => Err(PodError::BadRequest(format!(
                "previous terminated container \"{}\" in pod \"{}\" not found",
                pod.container, pod.name
            ))),
        })
    }

    fn exec(&self, pod: &PodRef, options: PodExecOptions) -> Result<Session, PodError> {
        let (inside, mut alive) = self.find(pod, |container| match &container.runs {
            Some(runs) => Ok((runs.inside.clone(), runs.alive.clone())),
            None => Err(not_running(pod)),
        })?;
        let (stdin, input) = match options.stdin {
            true => {
                let (sender, receiver) = mpsc::channel(WAITING);
                (Some(sender), Some(receiver))
            }
            false => (None, None),
        };
        let (sender, output) = mpsc::channel(WAITING);
        let (end, ended) = oneshot::channel();
        let pipe = |wanted: bool, stream| match wanted {
            true => Pipe::Session(sender.clone(), stream),
            false => Pipe::Null,
        };
        let out = pipe(options.stdout, Stream::Stdout);
        // A terminal has one stream.
        let err = if options.tty { out.clone() } else { pipe(options.stderr, Stream::Stderr) };
        tokio::spawn(async move {
            tokio::select! {
                code = inside.run(options.command, input, out, err) => drop(end.send(Exit::Code(code))),
                // The client is gone, and the command with it.
                () = sender.closed() => {}
                () = async { while alive.changed().await.is_ok() {} } => {
                    drop(end.send(Exit::Code(KILLED)));
                }
            }
        });
        Ok(Session { stdin, output, ended })
    }

    fn attach(&self, pod: &PodRef, options: PodAttachOptions) -> Result<Session, PodError> {
        let (log, from, stdin) = self.find(pod, |container| {
            let log = container.log.clone();
            let runs = container.runs.as_mut().ok_or_else(|| not_running(pod))?;
            let from = runs.unseen.take().unwrap_or_else(|| log.next());
            let stdin = match (options.stdin, runs.once) {
                (false, _) => None,
                (true, true) => runs.stdin.take(),
                (true, false) => runs.stdin.clone(),
            };
            Ok((log, from, stdin))
        })?;
        let (sender, output) = mpsc::channel(WAITING);
        let (end, ended) = oneshot::channel();
        tokio::spawn(async move {
            let mut pieces = followed(log, from);
            while let Some(piece) = pieces.recv().await {
                let piece = match piece.stream {
                    Stream::Stderr if !options.tty => options.stderr.then_some(Output::Stderr(piece.text)),
                    Stream::Stdout | Stream::Stderr => options.stdout.then_some(Output::Stdout(piece.text)),
                };
                if let Some(piece) = piece
                    && sender.send(piece).await.is_err()
                {
                    return;
                }
            }
            // How the container ended is in its status.
            let _ = end.send(Exit::Code(0));
        });
        Ok(Session { stdin, output, ended })
    }
}
