//! `bench`: benchmarks that start what they measure, on the lab.
//!
//! ```text
//!   bench propagation, policies ─▶ clusters and a hub of the lab ─▶ atoll_bench measures them from outside
//!   bench api                   ─▶ the embedded API beside kube-apiserver on etcd
//!   bench attack                ─▶ the embedded API beside a hostile user
//!   bench dns                   ─▶ `atoll dns` beside CoreDNS, by dnsperf
//!   bench lb                    ─▶ `atoll lb` beside HAProxy, nginx and a bare rule, in network namespaces
//!   bench start                 ─▶ the lab's own clusters
//! ```
//!
//! What runs already is measured by `atoll bench`, with the same library.

mod api;
mod attack;
mod dns;
mod environment;
mod lb;
mod policies;
mod propagation;
mod start;

use atoll_lab::requirements;
use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Benchmarks that start what they measure: clusters, hubs, APIs, DNS servers and balancers.
///
/// `atoll bench` measures clusters and APIs that run already.
#[derive(Parser)]
#[command(
    name = "bench",
    version,
    after_help = "Examples:
  bench propagation --quick
  bench dns --rounds 1 -o json
  bench start -n 3 --rounds 10"
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure how fast changes propagate, against a floor of the same writes, on two API-only clusters.
    #[command(after_help = "Examples:
  bench propagation
  bench propagation --quick
  bench propagation --only idle,burst --burst 200 -o json
  bench propagation --path mcs           the same by MultiClusterServices
  bench propagation --floor-only         what this machine can do, without the product")]
    Propagation(propagation::Propagation),
    /// Measure how fast templates in the hub become copies in two members, against a floor of the same writes.
    #[command(after_help = "Examples:
  bench policies
  bench policies --objects 200 --rounds 2 --samples 50 -o json
  bench policies --only change           one template at a time")]
    Policies(policies::Policies),
    /// Measure the embedded API and kube-apiserver on etcd side by side: starts, memory, writes, watches.
    #[command(after_help = "Examples:
  bench api
  bench api --objects 1000 --rounds 2 --starts 2 -o json")]
    Api(api::Api),
    /// Measure what honest users and `/healthz` feel of one hostile user and 500 stalled connections, on the loopback.
    #[command(after_help = "Examples:
  bench attack
  bench attack --only rules,lists --seconds 2 --clients 4 --stalled 50 -o json")]
    Attack(attack::Attack),
    /// Measure `atoll dns` beside CoreDNS with its own option, on the same objects of one API, by dnsperf.
    #[command(after_help = "Examples:
  bench dns
  bench dns --rounds 1 --seconds 2 --changes 20")]
    Dns(dns::Dns),
    /// Measure `atoll lb` beside `HAProxy`, nginx, a bare nftables rule and no balancer, in network namespaces. Needs root.
    #[command(after_help = "Examples:
  bench lb
  bench lb --only connections,streams --rounds 1 --seconds 2 -o json")]
    Lb(lb::Lb),
    /// Measure how long the lab's clusters take to start and to stop, whole and API-only.
    #[command(after_help = "Examples:\n  bench start\n  bench start -n 1 --rounds 10 -o json")]
    Start(start::Start),
    /// Query a name until an address is among the answers; a part of `bench dns`.
    #[command(hide = true)]
    AwaitAnswer {
        /// The server.
        server: String,
        /// The name.
        name: String,
        /// The address.
        address: std::net::Ipv4Addr,
    },
    /// Answer connections; a part of `bench lb`.
    #[command(hide = true)]
    LbBackend {
        /// The address to listen on.
        address: std::net::SocketAddr,
    },
    /// Load a balancer and print the result; a part of `bench lb`.
    #[command(hide = true)]
    LbLoad(lb::Load),
}

#[tokio::main]
async fn main() -> ExitCode {
    let outcome = run(Arguments::parse().command).await;
    atoll_lab::cli::exit_code(outcome.map(|()| ExitCode::SUCCESS))
}

async fn run(command: Command) -> anyhow::Result<()> {
    match &command {
        Command::Propagation(_)
        | Command::Policies(_)
        | Command::Api(_)
        | Command::Dns(_)
        | Command::Start(_) => {
            requirements::check()?;
        }
        // It needs no clusters.
        Command::Lb(_) => requirements::check_to_manage()?,
        // Nor does this, nor does it need root.
        Command::Attack(_) => {}
        Command::AwaitAnswer { .. } | Command::LbBackend { .. } | Command::LbLoad(_) => {}
    }
    match command {
        Command::Propagation(propagation) => Box::pin(propagation.run()).await,
        Command::Policies(policies) => Box::pin(policies.run()).await,
        Command::Api(api) => Box::pin(api.run()).await,
        Command::Attack(attack) => Box::pin(attack.run()).await,
        Command::Dns(dns) => Box::pin(dns.run()).await,
        Command::Lb(lb) => lb.run().await,
        Command::Start(start) => start.run().await,
        Command::AwaitAnswer { server, name, address } => dns::await_answer(&server, &name, address),
        Command::LbBackend { address } => lb::serve(address),
        Command::LbLoad(load) => load.run(),
    }
}
