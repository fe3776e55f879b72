//! The command line: flags here, one file per command that does more than call the library.

mod conformance;
mod output;
mod up;

use anyhow::bail;
use atoll_lab::cli::{Format, Named, running};
use atoll_lab::{Progress, requirements, say};
use clap::{CommandFactory, Parser, Subcommand};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// Real Kubernetes clusters on this Linux host: start, inspect and stop them.
#[derive(Parser)]
#[command(
    name = "lab",
    version,
    after_help = "Examples:
  lab up                         three whole clusters, contexts member1, member2, member3
  lab up -n 2 --api-only         two clusters with an API and no nodes
  lab kubectl --context member2 get pods -A
  lab exec member1 -- ip route   a command in member1's network
  lab down                       stop it and remove everything"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
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
    /// Stop a lab and remove it, also one that was half-made or whose driver was killed.
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
    /// Run a command on the machine of a cluster or bystander: in its network, process and mount namespaces.
    #[command(after_help = "Example:\n  lab exec member1 -- nft list ruleset")]
    Exec {
        #[command(flatten)]
        named: Named,
        /// A cluster's or bystander's name.
        machine: String,
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
    /// Run the official conformance suite of the MCS API, compiled, on two fresh clusters with the product on them.
    #[command(after_help = "Example:\n  lab conformance --suite ./conformance.test -- --ginkgo.v")]
    Conformance(conformance::Conformance),
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
        Command::Status { named, output } => output::print(output, &output::status(&named.name)?)?,
        Command::Kubectl { named, arguments } => return kubectl(&named.name, &arguments).await,
        Command::Exec { named, machine, command } => return exec(&named.name, &machine, &command),
        Command::Collect { named, folder } => {
            running(&named.name)?.collect(&folder).await?;
            println!("{}", folder.display());
        }
        Command::Conformance(conformance) => return conformance.run().await,
        Command::Install => {
            requirements::check()?;
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

fn down(name: &str, all: bool) -> anyhow::Result<()> {
    requirements::check_to_manage()?;
    let names = if all { atoll_lab::names() } else { vec![name.to_owned()] };
    for name in &names {
        let found = atoll_lab::down(name)?;
        say(&format!("`{name}` {}", if found { "is removed" } else { "was not up" }));
    }
    if names.is_empty() {
        say("no lab is up");
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

fn exec(name: &str, machine: &str, command: &[String]) -> anyhow::Result<ExitCode> {
    let lab = running(name)?;
    let clusters = lab.clusters().iter().map(atoll_lab::Cluster::machine);
    let mut machines = clusters.chain(lab.bystanders().iter().map(atoll_lab::Bystander::machine));
    let Some(machine) = machines.find(|candidate| candidate.name() == machine) else {
        bail!(
            "there is no `{machine}` in the lab `{name}`\n  hint: `lab status --name {name}` lists what there is"
        );
    };
    Ok(code(machine.command(&command[0]).args(&command[1..]).status()?))
}

/// The exit code of a command, as a shell would give it.
fn code(status: std::process::ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
