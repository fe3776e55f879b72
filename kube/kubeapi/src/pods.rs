//! What only a running pod can answer: its logs, a command in it, a way to its input and output.
//!
//! The API stores pods and runs none. What runs them implements [`Pods`] and is given to [`Options::pods`](crate::Options::pods).
//!
//! ```text
//!   kubectl logs ──▶ GET  pods/log ────────────▶ Pods::logs ───▶ bytes as they come
//!   kubectl exec ──▶ GET  pods/exec (WebSocket) ▶ Pods::exec ──▶ Session: stdin ◀── frames ──▶ output, then an Exit
//! ```
//!
//! Channels are bounded, and so is what a client that does not read can make a pod keep: a full channel means "wait".

mod channels;
mod session;
mod upgrade;

pub(crate) use channels::Purpose;
pub(crate) use session::{SessionOptions, carry};
pub(crate) use upgrade::Handshake;

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

/// What runs the pods of an API: answers what only a running pod can.
///
/// Its functions are called after access was checked and the pod and its container were found in the store; they must
/// not block.
pub trait Pods: Send + Sync + 'static {
    /// The log of a container. It ends when the sender is dropped; when the receiver is, the client has gone.
    ///
    /// # Errors
    /// There is no such pod here, or no such log.
    fn logs(&self, pod: &PodRef, options: PodLogOptions) -> Result<mpsc::Receiver<Bytes>, PodError>;

    /// Runs a command in a container.
    ///
    /// # Errors
    /// The pod does not run, or can't run commands.
    fn exec(&self, pod: &PodRef, options: PodExecOptions) -> Result<Session, PodError>;

    /// Joins the program that a container runs: input goes to it, and what it writes from now on comes back. What it
    /// wrote before is in its log, where kubectl looks too.
    ///
    /// # Errors
    /// The pod does not run.
    fn attach(&self, pod: &PodRef, options: PodAttachOptions) -> Result<Session, PodError>;
}

/// A container of a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodRef {
    /// The pod's namespace.
    pub namespace: String,
    /// The pod's name.
    pub name: String,
    /// The container: the one that was asked for, or the pod's default container.
    pub container: String,
}

/// Which part of a log is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodLogOptions {
    /// Go on with what is written later, until the container ends.
    pub follow: bool,
    /// The log of the container's last run, not of this one.
    pub previous: bool,
    /// Only so many lines, the last ones.
    pub tail_lines: Option<usize>,
    /// Only what was written within these seconds.
    pub since_seconds: Option<u64>,
    /// Begin each line with the time when it was written.
    pub timestamps: bool,
    /// End after so many bytes.
    pub limit_bytes: Option<usize>,
}

/// A command to run in a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodExecOptions {
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
    /// Whether it reads what the client sends.
    pub stdin: bool,
    /// Whether the client wants what it writes.
    pub stdout: bool,
    /// Whether the client wants its errors.
    pub stderr: bool,
    /// Whether it is to have a terminal.
    pub tty: bool,
}

/// A way to the program that a container runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PodAttachOptions {
    /// Whether the client sends input.
    pub stdin: bool,
    /// Whether the client wants what it writes.
    pub stdout: bool,
    /// Whether the client wants its errors.
    pub stderr: bool,
    /// Whether it has a terminal.
    pub tty: bool,
}

/// A program that runs, seen from the client's end.
#[derive(Debug)]
pub struct Session {
    /// Where input goes, if there is any; dropped when the client sends no more.
    pub stdin: Option<mpsc::Sender<Bytes>>,
    /// What the program writes. When the receiver is dropped, the client is gone: a command that was run for it ends.
    pub output: mpsc::Receiver<Output>,
    /// How it ended; awaited after the output has ended.
    pub ended: oneshot::Receiver<Exit>,
}

/// A piece of what a program writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// To its standard output.
    Stdout(Bytes),
    /// To its standard error.
    Stderr(Bytes),
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code; 0 is success.
    Code(i32),
    /// It could not be run, or it is not known how it ended; in words.
    Failed(String),
}

/// Why a pod does not answer. The text is for the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PodError {
    /// There is no such pod or container here.
    #[error("{0}")]
    NotFound(String),
    /// It does not run, not yet or no longer.
    #[error("{0}")]
    NotRunning(String),
    /// The question makes no sense.
    #[error("{0}")]
    BadRequest(String),
    /// Something that should not happen.
    #[error("{0}")]
    Internal(String),
}

/// The container of a pod that is meant: the one that was asked for, or the only one.
pub(crate) fn choose_container(pod: &Value, asked: &str) -> Result<String, String> {
    let name = pod["metadata"]["name"].as_str().unwrap_or_default();
    let of = |list: &str| {
        pod["spec"][list].as_array().into_iter().flatten().filter_map(|one| one["name"].as_str())
    };
    let all = || of("initContainers").chain(of("containers")).chain(of("ephemeralContainers"));
    if !asked.is_empty() {
        return match all().any(|container| container == asked) {
            true => Ok(asked.to_owned()),
            false => Err(format!("container {asked} is not valid for pod {name}")),
        };
    }
    match (of("containers").next(), of("containers").count()) {
        (Some(only), 1) => Ok(only.to_owned()),
        (None, _) => Err(format!("a container name must be specified for pod {name}")),
        _ => {
            let all: Vec<&str> = all().collect();
            Err(format!(
                "a container name must be specified for pod {name}, choose one of: [{}]",
                all.join(" ")
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_container_is_named_unless_there_is_one() {
        let pod = |containers: &[&str]| {
            let containers: Vec<_> = containers.iter().map(|name| json!({"name": name})).collect();
            json!({"metadata": {"name": "p"}, "spec": {"initContainers": [{"name": "i"}], "containers": containers}})
        };
        for (containers, asked, want) in [
            (&["a"][..], "", Ok("a")),
            (&["a", "b"], "b", Ok("b")),
            (&["a"], "i", Ok("i")),
            (&["a"], "c", Err("container c is not valid for pod p")),
            (&["a", "b"], "", Err("a container name must be specified for pod p, choose one of: [i a b]")),
            (&[], "", Err("a container name must be specified for pod p")),
        ] {
            let got = choose_container(&pod(containers), asked);
            assert_eq!(got.as_deref().map_err(String::as_str), want, "{containers:?} {asked:?}");
        }
    }
}
