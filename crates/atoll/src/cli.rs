//! The command line: the list of commands, and how durations are written. Each command's flags stand in its file.

use clap::{Parser, Subcommand};

use crate::commands;

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
    Hub(commands::hub::Hub),
    Join(commands::join::Join),
    Unjoin(commands::unjoin::Unjoin),
    Clusters(commands::clusters::Clusters),
    Cluster(commands::cluster::Cluster),
    Get(commands::get::Get),
    Describe(commands::describe::Describe),
    Logs(commands::logs::Logs),
    Exec(commands::exec::Exec),
    Promote(commands::promote::Promote),
    Apply(commands::apply::Apply),
    Delete(commands::delete::Delete),
    Bench(commands::bench::Bench),
    Dns(commands::dns::Dns),
    Lb(commands::lb::Lb),
    Crds(commands::crds::Crds),
    Completion(commands::completion::Completion),
}

/// Parses a duration such as `10s`, `500ms` or `2m`.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bad = || format!("invalid duration `{text}`: use a number and a unit, such as 10s, 500ms or 2m");
    let number: u64 = number.parse().map_err(|_| bad())?;
    match unit {
        "ms" => Ok(std::time::Duration::from_millis(number)),
        "s" => Ok(std::time::Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(std::time::Duration::from_secs).ok_or_else(bad),
        _ => Err(bad()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_fit_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn durations_have_a_unit() {
        for (text, want) in [
            ("10s", Some(Duration::from_secs(10))),
            ("500ms", Some(Duration::from_millis(500))),
            ("2m", Some(Duration::from_secs(120))),
            ("10", None),
            ("s", None),
            ("-1s", None),
        ] {
            assert_eq!(duration(text).ok(), want, "{text}");
        }
    }
}
