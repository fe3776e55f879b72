//! The command line: flags here, one file per command that does more than call the library.

mod api;
mod bench;
mod conformance;
mod dns;
mod facts;
mod lb;
mod measured;
mod output;
mod policies;
mod propagation;
mod up;

use anyhow::{Context, bail};
use atoll_lab::{Lab, Progress, say};
use clap::{Args, CommandFactory, Parser, Subcommand};
use output::Format;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Real Kubernetes clusters on this Linux host: start them, look into them, take them away.
#[derive(Parser)]
#[command(
    name = "lab",
    version,
    after_help = "Examples:
  lab up                         three whole clusters, contexts member1, member2, member3
  lab up -n 2 --api-only         two clusters with an API and no nodes
  lab kubectl --context member2 get pods -A
  lab exec member1 -- ip route   a command in member1's network
  lab down                       take it all away"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Args)]
struct Named {
    /// Which lab; labs of different names can be up side by side.
    #[arg(long, default_value = "default", env = "ATOLL_LAB_NAME")]
    name: String,
}

#[derive(Subcommand)]
enum Command {
    /// Start a lab, installing what is missing; an equal one that is up is left as it is.
    #[command(after_help = "Examples:
  lab up -n 3
  lab up -n 2 --api-only --name apis --fsync
  lab up --bystander client      and one host outside all clusters
  export KUBECONFIG=$(lab up -o json | jq -r .kubeconfig)")]
    Up(up::Up),
    /// Take a lab away, also one that was half-made or whose driver was killed.
    #[command(after_help = "Examples:\n  lab down\n  lab down --name apis\n  lab down --all")]
    Down {
        #[command(flatten)]
        named: Named,
        /// Every lab on this host.
        #[arg(long)]
        all: bool,
    },
    /// Show what is up, and the state of each component.
    #[command(after_help = "Examples:\n  lab status\n  lab status -o json")]
    Status {
        #[command(flatten)]
        named: Named,
        /// How to print it.
        #[arg(short, long, value_enum, default_value_t = Format::Text)]
        output: Format,
    },
    /// Run kubectl of the lab's own version on the lab's kubeconfig.
    #[command(after_help = "Example:\n  lab kubectl --context member2 get nodes -o wide")]
    Kubectl {
        #[command(flatten)]
        named: Named,
        /// kubectl's arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run a command in the namespaces of a cluster or bystander.
    #[command(after_help = "Example:\n  lab exec member1 -- nft list ruleset")]
    Exec {
        #[command(flatten)]
        named: Named,
        /// A cluster's or bystander's name.
        place: String,
        /// The command.
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Copy logs and objects of every cluster into a folder.
    #[command(after_help = "Example:\n  lab collect ./what-happened")]
    Collect {
        #[command(flatten)]
        named: Named,
        /// The folder.
        folder: PathBuf,
    },
    /// Measure how long clusters take to start and to go, how fast changes propagate, or APIs, DNS and balancers side by side.
    #[command(
        after_help = "Examples:\n  lab bench\n  lab bench --rounds 10 -o json\n  lab bench propagation --quick"
    )]
    Bench(bench::Bench),
    /// Run a compiled official MCS suite on two fresh clusters with the product on them.
    #[command(after_help = "Example:\n  lab conformance --suite ./conformance.test -- --ginkgo.v")]
    Conformance(conformance::Conformance),
    /// Ask a name until an address is among the answers; a part of `lab bench dns`.
    #[command(hide = true)]
    AwaitAnswer {
        /// The server.
        server: String,
        /// The name.
        name: String,
        /// The address.
        address: std::net::Ipv4Addr,
    },
    /// Answer connections; a part of `lab bench lb`.
    #[command(hide = true)]
    LbBackend {
        /// Where.
        address: std::net::SocketAddr,
    },
    /// Load a balancer and print what came of it; a part of `lab bench lb`.
    #[command(hide = true)]
    LbLoad(lb::Load),
    /// Write the facts about Kubernetes' own kinds that the product compiles in, from a lab that is up.
    #[command(after_help = "Example:\n  lab facts openapi kube/apimachinery/facts/openapi.tsv")]
    Facts(facts::Facts),
    /// Install packages, build Kubernetes and make the images, and start nothing.
    Install,
    /// Print a shell completion script.
    #[command(after_help = "Example:\n  source <(lab completion bash)")]
    Completion {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Carries out what was asked.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<ExitCode> {
    match arguments.command {
        Command::Up(up) => up.run().await?,
        Command::Down { named, all } => down(&named.name, all)?,
        Command::Status { named, output } => output.print(&output::status(&named.name)?)?,
        Command::Kubectl { named, arguments } => return kubectl(&named.name, &arguments).await,
        Command::Exec { named, place, command } => return exec(&named.name, &place, &command),
        Command::Collect { named, folder } => {
            running(&named.name)?.collect(&folder).await?;
            println!("{}", folder.display());
        }
        Command::Bench(bench) => bench.run().await?,
        Command::Conformance(conformance) => return conformance.run().await,
        Command::AwaitAnswer { server, name, address } => dns::await_answer(&server, &name, address)?,
        Command::LbBackend { address } => lb::serve(address)?,
        Command::LbLoad(load) => load.run()?,
        Command::Facts(facts) => facts.run().await?,
        Command::Install => {
            possible()?;
            let installed = atoll_lab::install(&atoll_lab::cache_root(), &Progress::to_stderr())?;
            println!("{}", installed.programs.kubernetes.display());
        }
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "lab", &mut script);
            std::io::stdout().write_all(&script)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Says at once why nothing can work here, rather than failing at some step of many.
fn possible() -> anyhow::Result<()> {
    match atoll_lab::requirements::missing() {
        Some(missing) => bail!("real clusters can't run here: {missing}"),
        None => Ok(()),
    }
}

/// Says at once that labs can't even be looked at.
fn manageable() -> anyhow::Result<()> {
    match atoll_lab::requirements::missing_to_manage() {
        Some(missing) => bail!("labs can't be managed here: {missing}"),
        None => Ok(()),
    }
}

/// The lab called `name`, even if some of its components have ended: that is when one wants to look.
fn running(name: &str) -> anyhow::Result<Lab> {
    manageable()?;
    Lab::find_broken(name)?
        .with_context(|| format!("the lab `{name}` is not up\n  hint: run `lab up --name {name}`"))
}

fn down(name: &str, all: bool) -> anyhow::Result<()> {
    manageable()?;
    let names = if all { atoll_lab::names() } else { vec![name.to_owned()] };
    for name in &names {
        let found = atoll_lab::down(name)?;
        say(&format!("`{name}` {}", if found { "is gone" } else { "was not there" }));
    }
    if names.is_empty() {
        say("there was nothing");
    }
    Ok(())
}

async fn kubectl(name: &str, arguments: &[String]) -> anyhow::Result<ExitCode> {
    let lab = running(name)?;
    let mut command = lab.member(1).kubectl();
    // kubectl takes the last --kubeconfig that it is given.
    let status = command.arg("--kubeconfig").arg(lab.layout().kubeconfig()).args(arguments).status().await?;
    Ok(code(status))
}

fn exec(name: &str, place: &str, command: &[String]) -> anyhow::Result<ExitCode> {
    let lab = running(name)?;
    let clusters = lab.clusters().iter().map(atoll_lab::Cluster::place);
    let mut places = clusters.chain(lab.bystanders().iter().map(atoll_lab::Bystander::place));
    let Some(place) = places.find(|candidate| candidate.name() == place) else {
        bail!(
            "there is no `{place}` in the lab `{name}`\n  hint: `lab status --name {name}` lists what there is"
        );
    };
    Ok(code(place.command(&command[0]).args(&command[1..]).status()?))
}

/// The exit code of a command, as a shell would give it.
fn code(status: std::process::ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
