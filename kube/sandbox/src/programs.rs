//! What runs in the sandbox's pods: programs of this process with real sockets, or commands of this machine.
//!
//! ```text
//!   image ─▶ images::find ─▶ Program ─▶ start (binds its sockets) ─▶ a future that ends with an exit code
//!   exec  ─▶ shell: the few commands that documents and suites run in pods
//! ```

mod arguments;
mod command_line;
mod confine;
mod echo;
pub mod http;
pub mod images;
mod log;
mod names;
mod netcat;
mod process;
mod request;
mod serve;
mod shell;
mod template;
mod tools;

pub(crate) use arguments::expand;
pub use confine::Confinement;
pub(crate) use images::Program;
pub(crate) use log::{Log, Stream, followed, selected};
pub(crate) use process::ProcessEnvironment;
pub(crate) use shell::{Input, Pipe, Shell};

use crate::network::{Dialer, ListenAddress, Network, OFFSET};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// What a program needs to know and to have.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) pod: String,
    pub(crate) address: Ipv4Addr,
    pub(crate) dns: Ipv4Addr,
    /// What the pod says in place of the image's entry point.
    pub(crate) command: Vec<String>,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) working_dir: Option<String>,
    /// What keeps commands of this machine from what is not theirs, and a number of its own for each member.
    pub(crate) confinement: Confinement,
    pub(crate) member: u8,
    pub(crate) network: Network,
    pub(crate) dialer: Dialer,
    pub(crate) log: Log,
    /// Becomes true when the program is asked to end.
    pub(crate) stop: watch::Receiver<bool>,
}

impl Context {
    fn at(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.address.into(), port)
    }

    /// What the image's own program is given.
    fn given(&self) -> Vec<String> {
        self.command.iter().skip(1).chain(&self.arguments).cloned().collect()
    }

    fn complain(&self, text: &str) {
        self.log.write(Stream::Stderr, format!("{text}\n").as_bytes());
    }

    /// Says where a socket really listens, if that is not where it should.
    fn note(&self, place: &ListenAddress) {
        if place.asked != place.actual {
            let (protocol, asked, actual) = (place.protocol, place.asked, place.actual);
            self.complain(&format!(
                "sandbox: {protocol} port {} of {} is refused by this machine; outside of pods it is {actual} (port + {OFFSET})",
                asked.port(),
                asked.ip()
            ));
        }
    }
}

/// A program on its way: ends with its exit code. Dropped, it ends at once.
pub(crate) type Run = BoxFuture<'static, i32>;

/// Input that a client attached, if the container takes any.
pub(crate) type Stdin = Option<mpsc::Receiver<Bytes>>;

/// Starts a program: when this returns, its sockets are open.
pub(crate) async fn start(program: &Program, context: Context, stdin: Stdin) -> Run {
    let mut stop = context.stop.clone();
    let run: Run = match program {
        Program::Serve => serve::message(&context),
        Program::Web => serve::page(&context),
        Program::Echo => echo::start(&context),
        Program::Request => Box::pin(request::run(context)),
        Program::Tools => Box::pin(tools::run(context, stdin)),
        Program::Pause => Box::pin(std::future::pending()),
        // It is asked by a signal and decides by itself when it ends.
        Program::Process(line) => return Box::pin(process::run(line.clone(), context, stdin)),
    };
    Box::pin(async move {
        tokio::select! {
            code = run => code,
            _ = stop.wait_for(|stop| *stop) => 0,
        }
    })
}

/// A program that can't begin.
fn failed(context: &Context, why: &str) -> Run {
    context.complain(why);
    Box::pin(std::future::ready(1))
}
