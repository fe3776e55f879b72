//! The command line: all flags, and no behaviour.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::commands;

/// One clusterset out of many Kubernetes clusters: a service exported in one is reachable in all.
#[derive(Parser)]
#[command(
    name = "atoll",
    version,
    after_help = "Examples:
  atoll up                                       try it all on this machine
  atoll hub                                      run the hub, with an API of its own
  atoll hub --context hub                        run it on the API of this context
  atoll join paris --cluster-kubeconfig paris.yaml
  atoll clusters                                 who is a member, and how it is
  atoll cluster taint paris maintenance:NoExecute
  atoll unjoin paris
  atoll dns setup                                lead this cluster's CoreDNS to `atoll dns`
  atoll get -C paris,tokyo pods -A               objects of members; describe, logs and exec look closer
  atoll promote deployment web -C paris          what runs in a member becomes a template in the hub
  atoll apply -f examples/serve.yaml
  atoll crds | kubectl apply --server-side -f -

Exit codes: 0 done, 1 failed, 2 asked wrongly."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a whole clusterset on this machine, to try things out.
    Up(commands::up::Up),
    /// Stop what `up` started.
    Down(commands::down::Down),
    /// Stop or start a single member of `up`.
    Member(commands::member::Member),
    /// Call a service from a member of `up`.
    Request(commands::request::Request),
    /// Run the hub.
    Hub(commands::hub::Hub),
    /// Make a cluster a member.
    Join(commands::join::Join),
    /// Make a member leave.
    Unjoin(commands::unjoin::Unjoin),
    /// Show the members.
    Clusters(commands::clusters::Clusters),
    /// Label and taint members.
    Cluster(commands::cluster::Cluster),
    /// Show objects of any kind.
    Get(commands::get::Get),
    /// Tell all about objects, and what happened to them.
    Describe(commands::describe::Describe),
    /// Print what a container has printed.
    Logs(commands::logs::Logs),
    /// Run a command in a container.
    Exec(commands::exec::Exec),
    /// Make a template of what runs in a member.
    Promote(commands::promote::Promote),
    /// Make objects as files have them.
    Apply(commands::apply::Apply),
    /// Take objects away.
    Delete(commands::delete::Delete),
    /// Measure a clusterset.
    Bench(commands::bench::Bench),
    /// Answer clusterset.local names in the cluster that this runs in.
    Dns(commands::dns::Dns),
    /// Carry connections from one address to backends of many clusters.
    Lb(commands::lb::Lb),
    /// Print the CRDs.
    Crds(commands::crds::Crds),
    /// Print a shell completion script.
    Completion(commands::completion::Completion),
}

/// Which API is the hub's; as in kubectl.
#[derive(Args, Debug, Clone)]
pub(crate) struct HubApi {
    /// The kubeconfig of the hub's API, if it is not the hub's own [default: that of the data directory].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context in it [default: its current one].
    #[arg(long)]
    pub(crate) context: Option<String>,
    /// Where a hub with an API of its own keeps its data [default: ~/.atoll].
    #[arg(long, value_name = "DIR", env = "ATOLL_DATA_DIR", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) data_dir: Option<PathBuf>,
    /// The namespace in the hub's API for credentials and memory.
    #[arg(long, default_value = atoll_hub::options::NAMESPACE)]
    pub(crate) namespace: String,
}

impl HubApi {
    /// The data directory of the hub's own API; none if it is to use another one.
    pub(crate) fn own_data_dir(&self) -> Option<PathBuf> {
        if self.kubeconfig.is_some() || self.context.is_some() {
            return None;
        }
        // A hub in a pod has a cluster's API at hand, and often no disk to keep.
        let in_pod = std::env::var_os("KUBERNETES_SERVICE_HOST").is_some();
        match &self.data_dir {
            Some(data_dir) => Some(data_dir.clone()),
            None if in_pod => None,
            None => commands::hub::default_data_dir(),
        }
    }

    pub(crate) async fn config(&self) -> Result<kube::Config, atoll_hub::connect::ConnectError> {
        let own = self.own_data_dir().map(|data_dir| data_dir.join("kubeconfig"));
        // Without a word about it, a hub's own API comes before whatever kubectl is pointed at.
        let own = own.filter(|file| self.data_dir.is_some() || file.is_file());
        // Nor does anybody have to say so who has started `atoll up` and nothing else.
        let nothing_said = self.kubeconfig.is_none() && self.context.is_none() && self.data_dir.is_none();
        let sandbox = crate::context::sandbox_kubeconfig(|key| std::env::var_os(key)).filter(|file| {
            nothing_said && own.is_none() && std::env::var_os("KUBECONFIG").is_none() && file.is_file()
        });
        let own = own.or(sandbox);
        let file = self.kubeconfig.as_deref().or(own.as_deref());
        atoll_hub::connect::config(file, self.context.as_deref()).await
    }

    pub(crate) async fn client(&self) -> Result<kube::Client, atoll_hub::connect::ConnectError> {
        atoll_hub::connect::client(self.config().await?)
    }
}

/// A span of time, as `10s`, `500ms` or `2m`.
pub(crate) fn duration(text: &str) -> Result<std::time::Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let bad = || format!("`{text}` is no span of time such as 10s, 500ms or 2m");
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
    fn spans_of_time_have_a_unit() {
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
