//! `atoll up`: a hub and its members on this machine, in one process.
//!
//! ```text
//!   state (who is here, which blocks) ─▶ clusters: hub, members ─▶ join ─▶ ready ─▶ control, until a signal
//! ```

mod clusters;
pub(crate) mod control;
mod detach;
mod kubeconfig;
mod members;
mod report;
pub(crate) mod state;

pub(crate) use clusters::HUB;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Context;
use atoll_hub::balancing::{Balancing, Carrying};
use atoll_hub::connect::Api;
use clap::Args;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::output::Format;
use crate::{logs, signals};
use clusters::Clusters;
use report::Report;
use state::Dir;

/// How many members there are when nobody says.
const MEMBERS: usize = 3;
/// How many there may be: each has a block of loopback addresses, and so has the hub.
const MOST_MEMBERS: usize = 100;
/// How long the members may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Who the hub is in its lease: the same after a restart, so that it leads at once.
const IDENTITY: &str = "atoll-up";
/// How long the hub may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Run a whole clusterset on this machine: a hub and member clusters, in one process, with real sockets. No root, no Kubernetes.
#[derive(Args)]
#[command(after_help = "Examples:
  atoll up                           a hub and three members; Ctrl-C stops them, and the next `up` goes on
  atoll up --example                 the same, with a service exported from member1
  atoll up --members 5 --dir /tmp/five --detach
  atoll up --fresh                   begin anew
  atoll down                         stop what runs in the background

MultiClusterServices of type LoadBalancer get an address of this machine, of 127.x too: see docs/lb.md.
Members have loopback addresses only (127.x), IPv4 only; images that are not built in do not run: see docs/sandbox.md.")]
pub(crate) struct Up {
    /// How many members [default: as many as there were, or 3].
    #[arg(long, value_name = "N")]
    members: Option<usize>,
    /// Where its state is kept [default: ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR")]
    dir: Option<PathBuf>,
    /// Forget what is in the directory, and begin anew.
    #[arg(long)]
    fresh: bool,
    /// Return when everything is ready, and go on in the background.
    #[arg(long)]
    detach: bool,
    /// Apply the walkthrough: a service in member1, exported.
    #[arg(long)]
    example: bool,
    /// What to print when everything is ready.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Up {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if !cfg!(target_os = "linux") {
            let what = "`atoll up` needs Linux: other systems have one loopback address, and members need a network each";
            return Err(Failure::plain(what, "use a virtual machine or a container with Linux").into());
        }
        if self.members.is_some_and(|members| !(1..=MOST_MEMBERS).contains(&members)) {
            let what = format!("there can be 1 to {MOST_MEMBERS} members");
            return Err(Failure::usage(&what, "choose another --members").into());
        }
        let dir = Dir::chosen(self.dir.clone())?;
        if self.detach {
            let report = detach::start(&dir, self.members, self.fresh, self.example).await?;
            return self.print(&report);
        }
        Box::pin(self.stay(dir)).await
    }

    fn print(&self, report: &Report) -> anyhow::Result<()> {
        self.output.print(|| report.text(self.detach), report)
    }

    /// Runs it until a signal comes.
    async fn stay(&self, dir: Dir) -> anyhow::Result<()> {
        let begun = Instant::now();
        let lock = dir.lock()?;
        if self.fresh {
            dir.clear()?;
        }
        let known = dir.load()?;
        if known.is_none() && dir.has_clusters() {
            let what = format!("{} has clusters, and nothing says which", dir.0.display());
            return Err(
                Failure::directory(&what, "its state.json is gone; `atoll up --fresh` begins anew").into()
            );
        }
        let members = match (self.members, &known) {
            (Some(asked), Some(state)) if asked < state.members.len() => {
                let what = format!("{} has {} members already", dir.0.display(), state.members.len());
                return Err(Failure::usage(&what, "--fresh begins anew").into());
            }
            (Some(asked), _) => asked,
            (None, Some(state)) => state.members.len().max(1),
            (None, None) => MEMBERS,
        };
        logs::to_file(&dir.path("log"))
            .with_context(|| format!("cannot write {}", dir.path("log").display()))?;
        let asked = signals::asked_to_end()?;
        let mut asked = std::pin::pin!(asked);
        // Clusters do not take turns with the hub's own work.
        let threads = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 4);
        let runtime = Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("clusters")
            .enable_all()
            .build()?;
        let say = |line: &str| {
            if self.output == Format::Text {
                eprintln!("{:>5.1} s  {line}", begun.elapsed().as_secs_f64());
            }
        };
        let started = tokio::select! {
            started = Clusters::start(&dir, known, members, &runtime, &say) => Some(started),
            () = &mut asked => None,
        };
        let ended = match started {
            None => Ok(()),
            Some(Err(error)) => Err(error),
            Some(Ok(clusters)) => self.lead(&dir, clusters, begun, &say, asked).await,
        };
        // Watches have no end of their own.
        runtime.shutdown_background();
        drop(lock);
        if ended.is_ok() && self.output == Format::Text {
            eprintln!("stopped; `atoll up` goes on from here");
        }
        ended
    }

    /// Runs the hub on the clusters that are there, and makes members of them.
    async fn lead(
        &self,
        dir: &Dir,
        clusters: Clusters,
        begun: Instant,
        say: &dyn Fn(&str),
        asked: impl Future<Output = ()>,
    ) -> anyhow::Result<()> {
        let (stop, stopped) = oneshot::channel::<()>();
        let goodbye = async move {
            // Dropped or told: both mean the end.
            let _ = stopped.await;
        };
        let options = atoll_hub::Options {
            balancing: Balancing::BuiltIn(clusters.pool()?),
            ..atoll_hub::Options::new(IDENTITY)
        };
        let carrying = Carrying { namespace: options.namespace.clone(), ..Carrying::default() };
        let balancer = super::hub::balancer()?;
        let carried = atoll_hub::balancing::carry(clusters.hub_client(), &balancer, &carrying);
        let mut hub = Box::pin(atoll_hub::run(Api::within(clusters.hub_client()), options, goodbye));
        let listener =
            control::listen(dir).with_context(|| format!("cannot listen in {}", dir.0.display()))?;
        let work = async {
            clusters.join(say).await?;
            clusters.ready(READY_WITHIN).await?;
            if self.example {
                clusters.apply_example(say).await?;
            }
            self.print(&Report::new(dir, &clusters, begun.elapsed()).await)?;
            control::serve(listener, clusters.members()).await;
            anyhow::Ok(())
        };
        tokio::select! {
            ended = work => ended,
            () = carried => {
                anyhow::bail!("the load balancer has ended by itself; {} says why", dir.path("log").display())
            }
            ended = &mut hub => {
                ended?;
                anyhow::bail!("the hub has ended by itself; {} says why", dir.path("log").display())
            }
            () = asked => {
                drop(stop);
                if tokio::time::timeout(GOODBYE, hub).await.is_err() {
                    tracing::warn!("the hub did not give back its lease in time");
                }
                clusters.stop().await;
                Ok(())
            }
        }
    }
}
