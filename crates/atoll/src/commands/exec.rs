//! `atoll exec`: runs a command in a container.
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
use session::{Ended, Said, Session};
use terminal::Raw;

/// What has to be granted in a member for this.
const RIGHT: &str = "pods,pods/exec";
/// How long a server may take to say goodbye after it has told how the command ended.
const GOODBYE: Duration = Duration::from_secs(3);

/// Run a command in a container; its exit code is that of this program.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll exec -C member1 serve-5d9c9c6b5-x2x7k -- hostname
  atoll exec -C member1 deployment/serve -c serve -- env
  atoll exec -C member1 -it tools -- sh
  atoll exec -C member1 -i tools -- cat < file")]
pub(crate) struct Exec {
    /// A pod, or a workload or Service as KIND/NAME: then in one of its pods.
    #[arg(value_name = "POD")]
    pod: String,
    /// The command and its arguments, behind --.
    #[arg(last = true, required = true)]
    command: Vec<String>,
    #[command(flatten)]
    cluster: ClusterApi,
    /// The container [default: the first].
    #[arg(short, long)]
    container: Option<String>,
    /// Hand on what is typed or piped here.
    #[arg(short = 'i', long)]
    stdin: bool,
    /// With a terminal.
    #[arg(short, long)]
    tty: bool,
}

impl Exec {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let mut reached = self.cluster.reach().await?;
        // A command may be silent for long, and slow to read.
        (reached.config.read_timeout, reached.config.write_timeout) = (None, None);
        let rest = Rest::of(reached)?;
        let chosen = pods::choose(&rest, &self.pod, self.container.as_deref(), RIGHT).await?;
        let wish = connect::Wish { command: &self.command, stdin: self.stdin, tty: self.tty };
        let what =
            format!("cannot run `{}` in {} ({})", self.command.join(" "), chosen.pod, chosen.container);
        let opened = connect::open(&rest.client, &wish.path(&rest, &chosen)).await;
        let stream = opened.map_err(|error| error.told(&rest, &what, RIGHT))?;
        let raw =
            if self.tty && self.stdin && std::io::stdin().is_terminal() { Some(Raw::enter()?) } else { None };
        if self.tty && raw.is_none() {
            eprintln!("note: input is no terminal, or -i was not said: lines are handed on as they come");
        }
        let ended = converse(stream, self.stdin, raw.is_some()).await;
        drop(raw);
        match ended? {
            Ended::Code(0) => Ok(()),
            Ended::Code(code) => Err(Failure::exit(code)),
            Ended::Failed(why) => Err(Failure::ended(&what, &why).into()),
        }
    }
}

/// Carries bytes both ways until the command has ended.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + 'static,
    with_stdin: bool,
    with_terminal: bool,
) -> anyhow::Result<Ended> {
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
        tokio::spawn(hand_on(standard_input(), frames.clone()));
    }
    if with_terminal {
        tokio::spawn(terminal::tell_sizes(frames.clone()));
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
            return Ok(session.ended());
        }
        for said in session.take(&buffer[..read])? {
            match said {
                Said::Stdout(bytes) => drop(output::bytes_are_read(&bytes)?),
                Said::Stderr(bytes) => {
                    let mut out = std::io::stderr();
                    out.write_all(&bytes).and_then(|()| out.flush())?;
                }
                Said::Ping(bytes) => drop(frames.try_send(session::pong(&bytes))),
                Said::Status => until = Some(Instant::now() + GOODBYE),
                Said::Close => return Ok(session.ended()),
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

async fn hand_on(mut input: mpsc::Receiver<Bytes>, frames: mpsc::Sender<BytesMut>) {
    while let Some(piece) = input.recv().await {
        if frames.send(session::stdin(&piece)).await.is_err() {
            return;
        }
    }
    let _ = frames.send(session::stdin_ends()).await;
}
