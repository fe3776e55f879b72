//! `atoll exec`: executes a command in a container.
//!
//! ```text
//!   stdin (a thread) ─▶ frames ─▶ writer ─▶ ┐ WebSocket ┌ ─▶ session (pure) ─▶ stdout, stderr, exit code
//!   terminal's size  ─▶ ──────────┘         └───────────┘
//! ```

mod connect;
mod session;
mod terminal;

use std::io::{IsTerminal, Read, Write};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use clap::Args;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::context::ClusterApi;
use crate::failure::Failure;
use crate::objects::pods;
use crate::objects::rest::Rest;
use crate::output;
use session::{Outcome, Received, Session};
use terminal::RawMode;

/// What has to be granted in a member for this.
const PERMISSIONS: &str = "pods,pods/exec";
/// How long a server may take to say goodbye after it has told how the command ended.
const GOODBYE: Duration = Duration::from_secs(3);

/// Execute a command in a container.
///
/// The exit code is that of the command.
#[derive(Args)]
#[command(after_help = "Examples:
  # Run a command in a pod of a member
  atoll exec -C member1 serve-5d9c9c6b5-x2x7k -- hostname

  # Run it in one pod of a deployment, in a given container
  atoll exec -C member1 deployment/serve -c serve -- env

  # Open a shell
  atoll exec -C member1 -it tools -- sh

  # Pass stdin
  atoll exec -C member1 -i tools -- cat < file")]
pub(crate) struct Exec {
    /// Pod name, or a workload or Service as KIND/NAME, to use one of its pods.
    #[arg(value_name = "POD")]
    pod: String,
    /// Command and its arguments.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<String>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// Container name [default: the annotation kubectl.kubernetes.io/default-container, or the first container].
    #[arg(short, long, value_name = "NAME")]
    container: Option<String>,
    /// Pass stdin to the container.
    #[arg(short = 'i', long)]
    stdin: bool,
    /// Allocate a terminal (TTY) for the command.
    #[arg(short, long)]
    tty: bool,
}

impl Exec {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut reached = self.cluster.reach().await?;
        // A command may be silent for long, and slow to read.
        (reached.config.read_timeout, reached.config.write_timeout) = (None, None);
        let rest = Rest::of(reached)?;
        let chosen = pods::choose(&rest, &self.pod, self.container.as_deref(), PERMISSIONS).await?;
        let request = connect::ExecRequest { command: &self.command, stdin: self.stdin, tty: self.tty };
        let what =
            format!("cannot run `{}` in {} ({})", self.command.join(" "), chosen.pod, chosen.container);
        let opened = connect::open(&rest.client, &request.path(&rest, &chosen)).await;
        let stream = opened.map_err(|error| error.failure(&rest, &what, PERMISSIONS))?;
        let raw = if self.tty && self.stdin && std::io::stdin().is_terminal() {
            Some(RawMode::enter()?)
        } else {
            None
        };
        if self.tty && raw.is_none() {
            eprintln!("note: raw terminal mode is off, because stdin is not a terminal or -i is missing");
        }
        let ended = carry_streams(stream, self.stdin, raw.is_some()).await;
        drop(raw);
        match ended? {
            Outcome::Code(0) => Ok(()),
            Outcome::Code(code) => Err(Failure::exit(code)),
            Outcome::Failed(why) => Err(Failure::ended(&what, &why).into()),
        }
    }
}

/// Carries bytes both ways until the command has ended.
async fn carry_streams(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    with_stdin: bool,
    with_terminal: bool,
) -> anyhow::Result<Outcome> {
    let (mut reading, mut writing) = tokio::io::split(stream);
    let (frames, mut to_send) = mpsc::channel::<BytesMut>(16);
    // In a task of its own: whoever waits for the other side to read must go on reading.
    tokio::spawn(async move {
        while let Some(bytes) = to_send.recv().await {
            if writing.write_all(&bytes).await.is_err() || writing.flush().await.is_err() {
                return;
            }
        }
    });
    if with_stdin {
        tokio::spawn(forward_stdin(standard_input(), frames.clone()));
    }
    if with_terminal {
        tokio::spawn(terminal::forward_sizes(frames.clone()));
    }
    let (mut session, mut buffer, mut until) = (Session::default(), vec![0; 16 * 1024], None);
    loop {
        let read = match until {
            None => reading.read(&mut buffer).await?,
            Some(deadline) => match timeout_at(deadline, reading.read(&mut buffer)).await {
                Ok(read) => read.unwrap_or(0),
                Err(_) => 0,
            },
        };
        if read == 0 {
            return Ok(session.outcome());
        }
        for received in session.take(&buffer[..read])? {
            match received {
                Received::Stdout(bytes) => drop(output::write_bytes(&bytes)?),
                Received::Stderr(bytes) => {
                    let mut out = std::io::stderr();
                    out.write_all(&bytes).and_then(|()| out.flush())?;
                }
                Received::Ping(bytes) => drop(frames.try_send(session::pong(&bytes))),
                Received::Status => until = Some(Instant::now() + GOODBYE),
                Received::Close => return Ok(session.outcome()),
            }
        }
    }
}

/// What is typed or piped here, piece by piece. By a thread, because a read of stdin can't be broken off, and must not hold us.
fn standard_input() -> mpsc::Receiver<Bytes> {
    let (pieces, received) = mpsc::channel(4);
    std::thread::spawn(move || {
        let (mut input, mut buffer) = (std::io::stdin().lock(), vec![0; 16 * 1024]);
        while let Ok(read) = input.read(&mut buffer) {
            if read == 0 || pieces.blocking_send(Bytes::copy_from_slice(&buffer[..read])).is_err() {
                return;
            }
        }
    });
    received
}

async fn forward_stdin(mut input: mpsc::Receiver<Bytes>, frames: mpsc::Sender<BytesMut>) {
    while let Some(piece) = input.recv().await {
        if frames.send(session::stdin(&piece)).await.is_err() {
            return;
        }
    }
    let _ = frames.send(session::stdin_ends()).await;
}
