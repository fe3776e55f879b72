//! A command of this machine: a child in a process group of its own, which ends with the container.

use super::confine::{self, Confinement};
use super::{Context, Pipe, Stdin, command_line};
use bytes::Bytes;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::BTreeMap;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

/// How long the output of a program that has ended is read on.
const LAST_WORDS: Duration = Duration::from_millis(500);
/// What a child gets of our own environment: where programs are, and how people write. No credentials.
const INHERITED: [&str; 7] = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "TZ", "USER"];
/// What a shell says of a command that can't be run.
const CANNOT_RUN: i32 = 126;
const PIECE: usize = 16 * 1024;

/// Where a command runs.
#[derive(Clone, Debug)]
pub(crate) struct ProcessEnvironment {
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) working_dir: Option<String>,
    pub(crate) confinement: Confinement,
    /// A number of its own for each member.
    pub(crate) member: u8,
}

/// Runs the command of a container, until it ends or is dropped. Asked to stop, it gets SIGTERM.
pub(super) async fn run(line: String, context: Context, stdin: Stdin) -> i32 {
    let mut words = match words(&line, &context.environment) {
        Ok(words) => words,
        Err(why) => {
            context.complain(&why);
            return CANNOT_RUN;
        }
    };
    words.extend(context.command.iter().chain(&context.arguments).cloned());
    let around = ProcessEnvironment {
        environment: context.environment.clone(),
        working_dir: context.working_dir.clone(),
        confinement: context.confinement.clone(),
        member: context.member,
    };
    let (out, err) = (Pipe::stdout(&context.log), Pipe::stderr(&context.log));
    around.run(&words, stdin, out, err, Some(context.stop)).await
}

/// The words of an image `process:<command>`.
fn words(line: &str, environment: &BTreeMap<String, String>) -> Result<Vec<String>, String> {
    let value = |name: &str| environment.get(name).cloned().unwrap_or_default();
    let items = command_line::parse(line).map_err(|error| error.to_string())?;
    match items.as_slice() {
        [] => Ok(Vec::new()),
        [one] if one.pipeline.len() == 1 => {
            Ok(one.pipeline[0].words.iter().map(|word| word.text(value)).collect())
        }
        _ => Err(format!("an image has one command, not several; use `process:sh` with arguments: {line}")),
    }
}

impl ProcessEnvironment {
    /// Runs a command here.
    pub(crate) async fn run(
        &self,
        words: &[String],
        stdin: Stdin,
        out: Pipe,
        err: Pipe,
        stop: Option<tokio::sync::watch::Receiver<bool>>,
    ) -> i32 {
        let mut child = match self.spawn(words, stdin.is_some()).await {
            Ok(child) => child,
            Err(why) => {
                err.line(&why).await;
                return CANNOT_RUN;
            }
        };
        let group = Group::of(&child);
        let feeding = feed(child.stdin.take(), stdin);
        let reading =
            futures_util::future::join(drain(child.stdout.take(), out), drain(child.stderr.take(), err));
        let stopping = async {
            if let Some(mut stop) = stop
                && stop.wait_for(|stop| *stop).await.is_ok()
            {
                group.ask_to_end();
            }
            std::future::pending::<()>().await;
        };
        // Output may outlive the child by a moment, and its grandchildren for ever: they end with the group.
        let ended = async {
            let status = child.wait().await;
            group.end();
            status
        };
        // A process that left the group may keep the pipes open: the container has ended all the same.
        let (exit, exited) = tokio::sync::oneshot::channel::<()>();
        let ended = async {
            let status = ended.await;
            let _ = exit.send(());
            status
        };
        let reading = async {
            let left = async {
                let _ = exited.await;
                tokio::time::sleep(LAST_WORDS).await;
            };
            tokio::select! {
                _ = reading => {}
                () = left => {}
            }
        };
        tokio::select! {
            (status, ()) = futures_util::future::join(ended, reading) => code(&status),
            () = stopping => CANNOT_RUN,
            () = feeding => CANNOT_RUN,
        }
    }

    async fn spawn(&self, words: &[String], piped: bool) -> Result<Child, String> {
        let (program, arguments) =
            words.split_first().ok_or("an image `process:` needs a command, there or in the container")?;
        let mut command = Command::new(program);
        command.args(arguments).env_clear();
        command.envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        if confine::changes_user(&self.confinement) {
            command.env("HOME", std::env::temp_dir()); // that of root is not its own
        }
        command.envs(self.environment.iter());
        if let Some(folder) = &self.working_dir {
            command.current_dir(folder);
        }
        command.stdin(if piped { Stdio::piped() } else { Stdio::null() });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.process_group(0).kill_on_drop(true);
        let spawned = confine::spawn(command, &self.confinement, self.member).await;
        spawned.map_err(|error| format!("cannot run `{program}` on this machine: {error}"))
    }
}

/// The child's process group, killed when dropped.
struct Group(AtomicI32);

impl Group {
    fn of(child: &Child) -> Self {
        Self(AtomicI32::new(child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or(0)))
    }

    /// Tells the child alone, as a kubelet does; what it started is its own to end.
    fn ask_to_end(&self) {
        if let Some(pid) = Pid::from_raw(self.0.load(Ordering::Relaxed)) {
            // It may have ended meanwhile.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    /// Ends what is left of it; its number may be another's from now on.
    fn end(&self) {
        if let Some(pid) = Pid::from_raw(self.0.swap(0, Ordering::Relaxed)) {
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// Never returns: a child that reads nothing more has not ended.
async fn feed(into: Option<tokio::process::ChildStdin>, from: Option<mpsc::Receiver<Bytes>>) {
    if let (Some(mut into), Some(mut from)) = (into, from) {
        while let Some(piece) = from.recv().await {
            if into.write_all(&piece).await.is_err() {
                break;
            }
        }
    }
    std::future::pending::<()>().await;
}

async fn drain(from: Option<impl AsyncRead + Unpin>, into: Pipe) {
    let Some(mut from) = from else { return };
    let mut piece = vec![0; PIECE];
    while let Ok(count @ 1..) = from.read(&mut piece).await {
        into.write(&piece[..count]).await;
    }
}

/// As a shell counts: 128 and the signal.
fn code(status: &std::io::Result<ExitStatus>) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => {
            status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(CANNOT_RUN)
        }
        Err(_) => CANNOT_RUN,
    }
}
