//! The command line: the list of commands, and how durations are written. Each command's flags stand in its file.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::{commands, plugin};

/// Connect Kubernetes clusters into one clusterset: a service exported in one is reachable in all.
#[derive(Parser)]
#[command(
    name = "atoll",
    version,
    after_help = "Examples:
  # Run a hub and three members on this machine, to try Atoll out
  atoll up

  # Run the hub, with an API server of its own
  atoll hub

  # Join a cluster, then list the members
  atoll join paris --cluster-kubeconfig paris.yaml
  atoll clusters

  # Is everything well? Why does a service have no endpoints in tokyo?
  atoll status
  atoll explain web -n shop --in tokyo

  # List the pods of two members
  atoll get pods -A -C paris,tokyo

  # Drain a member, then remove it
  atoll cluster taint paris maintenance:NoExecute
  atoll unjoin paris

Exit codes: 0 success, 1 failure, 2 usage error."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    // The first line of the doc comment at each type is its summary in the list of commands.
    Up(commands::up::Up),
    Down(commands::down::Down),
    Member(commands::member::Member),
    Request(commands::request::Request),
    Hub(Box<commands::hub::Hub>),
    Join(commands::join::Join),
    Unjoin(commands::unjoin::Unjoin),
    Clusters(commands::clusters::Clusters),
    Status(commands::status::Status),
    Explain(Box<commands::explain::Explain>),
    Cluster(commands::cluster::Cluster),
    Get(commands::get::Get),
    Describe(commands::describe::Describe),
    Logs(commands::logs::Logs),
    Exec(commands::exec::Exec),
    Promote(commands::promote::Promote),
    Apply(commands::apply::Apply),
    Plan(commands::plan::Plan),
    Delete(commands::delete::Delete),
    Check(Box<commands::check::Check>),
    Bench(commands::bench::Bench),
    Dns(commands::dns::Dns),
    Lb(commands::lb::Lb),
    Crds(commands::crds::Crds),
    Completion(commands::completion::Completion),
    Version(commands::version::Version),
}

/// All commands, under the name that the program was called by.
pub(crate) fn command() -> clap::Command {
    let command = Arguments::command();
    if plugin::is_plugin() { plugin::renamed(command).bin_name(plugin::name()) } else { command }
}

/// Reads the command line of this process.
pub(crate) fn parse() -> Arguments {
    if !plugin::is_plugin() {
        return Arguments::parse();
    }
    let matches = command().get_matches_from(plugin::reordered(std::env::args_os()));
    Arguments::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_fit_together() {
        Arguments::command().debug_assert();
    }
}
