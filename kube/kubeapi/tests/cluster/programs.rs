//! Pods of the embedded server, for tests: whatever their image, they know these programs.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex};

use atoll_kubeapi::pods::{
    Exit, Output, PodAttachOptions, PodError, PodExecOptions, PodLogOptions, PodRef, Pods, Session,
};
use bytes::Bytes;
use tokio::sync::{Notify, mpsc, oneshot};

/// What the program `big` writes, and how often.
pub(crate) const BIG: usize = 5 * 1024 * 1024;

/// A signal of its own for every namespace: followed logs go on when it is given; they and `forever` give it when their
/// client is gone.
pub(crate) fn signal(namespace: &str) -> Arc<Notify> {
    static SIGNALS: LazyLock<Mutex<BTreeMap<String, Arc<Notify>>>> = LazyLock::new(Mutex::default);
    let mut signals = SIGNALS.lock().expect("nobody panics with it");
    Arc::clone(signals.entry(namespace.to_owned()).or_default())
}

/// Bytes that show when one is missing or out of place.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|at| u8::try_from((at / 3 + at / 1021) % 251).unwrap_or(0)).collect()
}

pub(crate) struct Programs;

impl Pods for Programs {
    fn logs(&self, pod: &PodRef, options: PodLogOptions) -> Result<mpsc::Receiver<Bytes>, PodError> {
        if options.previous {
            let why =
                format!("previous terminated container {:?} in pod {:?} not found", pod.container, pod.name);
            return Err(PodError::BadRequest(why));
        }
        let (lines, log) = mpsc::channel(1);
        let go_on = signal(&pod.namespace);
        tokio::spawn(async move {
            let all = ["one\n", "two\n", "three\n"];
            let skipped = all.len() - options.tail_lines.unwrap_or(all.len()).min(all.len());
            for line in &all[skipped..] {
                let _ = lines.send(Bytes::from_static(line.as_bytes())).await;
            }
            if options.follow {
                tokio::select! {
                    () = go_on.notified() => {
                        let _ = lines.send(Bytes::from_static(b"later\n")).await;
                    }
                    () = lines.closed() => go_on.notify_one(),
                }
            }
        });
        Ok(log)
    }

    fn exec(&self, pod: &PodRef, options: PodExecOptions) -> Result<Session, PodError> {
        let words: Vec<&str> = options.command.iter().map(String::as_str).collect();
        let (far, session) = ends(options.stdin);
        match words.as_slice() {
            ["echo", rest @ ..] => far.say(format!("{}\n", rest.join(" ")).into(), 0),
            ["exit", code] => far.say(Bytes::new(), code.parse().unwrap_or(0)),
            ["big"] => far.say(pattern(BIG).into(), 0),
            ["cat"] => far.cat(),
            ["forever"] => {
                let gone = signal(&pod.namespace);
                tokio::spawn(async move {
                    let _ = far.output.send(Output::Stdout("started\n".into())).await;
                    far.output.closed().await;
                    gone.notify_one();
                });
            }
            _ => return Err(PodError::NotRunning(format!("{:?} is no program here", words.join(" ")))),
        }
        Ok(session)
    }

    fn attach(&self, _: &PodRef, options: PodAttachOptions) -> Result<Session, PodError> {
        let (far, session) = ends(options.stdin);
        far.cat();
        Ok(session)
    }
}

/// A program's end of a session.
struct Far {
    stdin: mpsc::Receiver<Bytes>,
    output: mpsc::Sender<Output>,
    ended: oneshot::Sender<Exit>,
}

fn ends(with_stdin: bool) -> (Far, Session) {
    let (to_stdin, stdin) = mpsc::channel(4);
    let (output, from_output) = mpsc::channel(4);
    let (ended, exit) = oneshot::channel();
    let session = Session { stdin: with_stdin.then_some(to_stdin), output: from_output, ended: exit };
    (Far { stdin, output, ended }, session)
}

impl Far {
    /// Writes this and ends.
    fn say(self, what: Bytes, code: i32) {
        tokio::spawn(async move {
            for piece in what.chunks(10_000) {
                if self.output.send(Output::Stdout(Bytes::copy_from_slice(piece))).await.is_err() {
                    return;
                }
            }
            let _ = self.ended.send(Exit::Code(code));
        });
    }

    /// Writes what it reads, until there is no more.
    fn cat(mut self) {
        tokio::spawn(async move {
            while let Some(piece) = self.stdin.recv().await {
                if self.output.send(Output::Stdout(piece)).await.is_err() {
                    return;
                }
            }
            let _ = self.output.send(Output::Stderr("no more input\n".into())).await;
            let _ = self.ended.send(Exit::Code(0));
        });
    }
}
