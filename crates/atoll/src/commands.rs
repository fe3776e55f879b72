//! One file per command: its flags, and what it does with them.

pub(crate) mod apply;
pub(crate) mod ask;
pub(crate) mod bench;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod clusters;
pub(crate) mod completion;
pub(crate) mod crds;
pub(crate) mod delete;
pub(crate) mod describe;
pub(crate) mod dns;
pub(crate) mod down;
pub(crate) mod exec;
pub(crate) mod explain;
pub(crate) mod get;
pub(crate) mod hub;
pub(crate) mod join;
pub(crate) mod lb;
pub(crate) mod logs;
pub(crate) mod member;
pub(crate) mod plan;
pub(crate) mod promote;
pub(crate) mod request;
pub(crate) mod status;
pub(crate) mod unjoin;
pub(crate) mod up;
pub(crate) mod version;

use crate::cli::{Arguments, Command};

/// Carries out what was asked.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<()> {
    match arguments.command {
        Command::Up(up) => up.run().await,
        Command::Down(down) => down.run().await,
        Command::Member(member) => member.run().await,
        Command::Request(request) => request.run().await,
        Command::Hub(hub) => hub.run().await,
        Command::Join(join) => Box::pin(join.run()).await,
        Command::Unjoin(unjoin) => unjoin.run().await,
        Command::Clusters(clusters) => clusters.run().await,
        Command::Status(status) => Box::pin(status.run()).await,
        Command::Explain(explain) => Box::pin(explain.run()).await,
        Command::Version(version) => Box::pin(version.run()).await,
        Command::Cluster(cluster) => Box::pin(cluster.run()).await,
        Command::Get(get) => Box::pin(get.run()).await,
        Command::Describe(describe) => Box::pin(describe.run()).await,
        Command::Logs(logs) => Box::pin(logs.run()).await,
        Command::Exec(exec) => Box::pin(exec.run()).await,
        Command::Promote(promote) => Box::pin(promote.run()).await,
        Command::Apply(apply) => Box::pin(apply.run()).await,
        Command::Plan(plan) => Box::pin(plan.run()).await,
        Command::Delete(delete) => Box::pin(delete.run()).await,
        Command::Check(check) => Box::pin(check.run()).await,
        Command::Bench(bench) => bench.run().await,
        Command::Dns(dns) => dns.run().await,
        Command::Lb(lb) => lb.run().await,
        Command::Crds(crds) => crds.run(),
        Command::Completion(completion) => completion.run(),
    }
}
