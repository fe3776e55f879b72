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
use atoll_hub::balancing::Balancing;
use atoll_hub::connect::Api;
use atoll_lb_kube::{Follow, follow};
use atoll_sandbox::programs::Confinement;
use clap::Args;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::failure::Failure;
use crate::output::Format;
use crate::{logs, signals};
use clusters::Clusters;
use report::Report;
use state::Dir;

/// How many members there are by default.
const MEMBERS: usize = 3;
/// How many there may be: each has a block of loopback addresses, and so has the hub.
const MOST_MEMBERS: usize = 100;
/// How long the members may take to be ready.
const READY_WITHIN: Duration = Duration::from_secs(60);
/// Who the hub is in its lease: the same after a restart, so that it leads at once.
const IDENTITY: &str = "atoll-up";
/// How long the hub may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(5);

/// Run a hub and members on this machine, to try Atoll out.
///
/// Everything runs in one process, without root and without Kubernetes.
#[derive(Args)]
#[command(after_help = "Examples:
  # Run a hub and three members; Ctrl-C stops them, and their state is kept
  atoll up

  # Also export a service from member1
  atoll up --example

  # Run five members in the background
  atoll up --members 5 --dir /tmp/five --detach
  atoll down --dir /tmp/five

  # Delete the state and start over
  atoll up --fresh

Members and load balancers use loopback addresses (127.x), IPv4 only. Pods run
built-in images only: see docs/sandbox.md.")]
pub(crate) struct Up {
    /// Number of members [default: as in the last run, or 3].
    #[arg(long, value_name = "NUMBER")]
    members: Option<usize>,
    /// Directory for the state of the sandbox [default: ~/.atoll/up].
    #[arg(long, value_name = "DIR", env = "ATOLL_UP_DIR")]
    dir: Option<PathBuf>,
    /// Delete existing state first.
    #[arg(long)]
    fresh: bool,
    /// Run in the background; return when everything is ready.
    #[arg(long)]
    detach: bool,
    /// Apply examples/serve.yaml: a service in member1, exported.
    #[arg(long)]
    example: bool,
    /// Run `process:` pods as any program of this user. By default they can't read the keys of the clusters and write to temporary
    /// directories only.
    #[arg(long)]
    allow_unconfined_processes: bool,
    /// Output format of the summary.
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t = Format::Text)]
    output: Format,
}

impl Up {
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        if !cfg!(target_os = "linux") {
            let what = "`atoll up` needs Linux: every member needs a loopback network of its own";
            return Err(Failure::plain(what, "use a Linux virtual machine or container").into());
        }
        if self.members.is_some_and(|members| !(1..=MOST_MEMBERS).contains(&members)) {
            let what = format!("invalid number of members: must be 1 to {MOST_MEMBERS}");
            return Err(Failure::usage(&what, "set --members to a number in this range").into());
        }
        let dir = Dir::for_start(self.dir.clone())?;
        if self.detach {
            let report = detach::start(&dir, self.members, &self.flags()).await?;
            return self.print(&report);
        }
        Box::pin(self.stay(dir)).await
    }

    /// Those that a sandbox in the background is given too.
    fn flags(&self) -> Vec<&'static str> {
        let all = [
            ("--fresh", self.fresh),
            ("--example", self.example),
            ("--allow-unconfined-processes", self.allow_unconfined_processes),
        ];
        all.into_iter().filter(|(_, set)| *set).map(|(flag, _)| flag).collect()
    }

    /// What `process:` pods can't read: every credential for clusters that this user has, in its usual place.
    fn confinement(&self, dir: &Dir) -> Confinement {
        if self.allow_unconfined_processes {
            return Confinement::Off;
        }
        let home = std::env::var_os("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let of_home = home.iter().flat_map(|home| [home.join(".atoll"), home.join(".kube")]);
        let files = std::env::var_os("KUBECONFIG").unwrap_or_default();
        let files = std::env::split_paths(&files).filter(|file| !file.as_os_str().is_empty());
        let all =
            [dir.0.clone()].into_iter().chain(super::hub::default_data_dir()).chain(of_home).chain(files);
        let all = all.filter_map(|path| std::path::absolute(path).ok());
        Confinement::Hidden(all.collect())
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
            let what = format!("{} has the data of clusters, but no state.json", dir.0.display());
            return Err(Failure::directory(
                &what,
                "state.json was deleted; `atoll up --fresh` deletes the rest and starts over",
            )
            .into());
        }
        let members = match (self.members, &known) {
            (Some(asked), Some(state)) if asked < state.members.len() => {
                let what = format!("{} already has {} members", dir.0.display(), state.members.len());
                return Err(Failure::usage(&what, "use --fresh to delete them and start over").into());
            }
            (Some(asked), _) => asked,
            (None, Some(state)) => state.members.len().max(1),
            (None, None) => MEMBERS,
        };
        logs::to_file(&dir.path("log"))
            .with_context(|| format!("cannot write {}", dir.path("log").display()))?;
        let example = dir.path("serve.yaml");
        std::fs::write(&example, clusters::EXAMPLE)
            .with_context(|| format!("cannot write {}", example.display()))?;
        let asked = signals::shutdown()?;
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
            started = Clusters::start(&dir, known, members, (&runtime, self.confinement(&dir)), &say) => Some(started),
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
            eprintln!("stopped; `atoll up` starts it again with its state");
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
            questions: clusters.questions(),
            ..atoll_hub::Options::new(IDENTITY)
        };
        let following = Follow { namespace: options.namespace.clone(), ..Follow::default() };
        let balancer = super::hub::balancer()?;
        let balancing = follow(clusters.hub_client(), &balancer, &following);
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
            () = balancing => {
                anyhow::bail!("the load balancer stopped unexpectedly; see {}", dir.path("log").display())
            }
            ended = &mut hub => {
                ended?;
                anyhow::bail!("the hub stopped unexpectedly; see {}", dir.path("log").display())
            }
            () = asked => {
                drop(stop);
                if tokio::time::timeout(GOODBYE, hub).await.is_err() {
                    tracing::warn!("the hub did not release its lease in time");
                }
                clusters.stop().await;
                Ok(())
            }
        }
    }
}
