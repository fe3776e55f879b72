//! `lab bench`: how long clusters take to start; and, as commands of their own, how fast changes propagate, and APIs, DNS
//! servers and balancers side by side.

use super::api::Api;
use super::dns::Dns;
use super::lb::Lb;
use super::output::Format;
use super::policies::Policies;
use super::propagation::Propagation;
use atoll_lab::{Lab, Progress, Spec};
use clap::{Args, Subcommand};
use serde::Serialize;
use std::time::Instant;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Bench {
    #[command(subcommand)]
    what: Option<What>,
    /// How many times each.
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// How many clusters.
    #[arg(short = 'n', long, default_value_t = 3, value_name = "N")]
    clusters: u8,
    /// How to print the result.
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Subcommand)]
enum What {
    /// Measure how fast changes propagate, against a floor of the same writes, on two API-only clusters.
    #[command(after_help = "Examples:
  lab bench propagation
  lab bench propagation --quick
  lab bench propagation --only idle,burst --burst 200 -o json
  lab bench propagation --path mcs           the same by MultiClusterServices
  lab bench propagation --floor-only         what this machine can do, without the product")]
    Propagation(Propagation),
    /// Measure how fast templates in the hub become copies in two members, against a floor of the same writes.
    #[command(after_help = "Examples:
  lab bench policies
  lab bench policies --objects 200 --rounds 2 --samples 50 -o json
  lab bench policies --only change           one template at a time")]
    Policies(Policies),
    /// Measure `atoll dns` beside CoreDNS with its own option, on the same objects of one API, by dnsperf.
    #[command(after_help = "Examples:
  lab bench dns
  lab bench dns --rounds 1 --seconds 2 --changes 20")]
    Dns(Dns),
    /// Measure the embedded API and kube-apiserver on etcd side by side: starts, memory, writes, watches.
    #[command(after_help = "Examples:
  lab bench api
  lab bench api --objects 1000 --rounds 2 --starts 2 -o json")]
    Api(Api),
    /// Measure `atoll lb` beside `HAProxy`, nginx, a bare nftables rule and no balancer, in network namespaces. Needs root.
    #[command(after_help = "Examples:
  lab bench lb
  lab bench lb --only connections,streams --rounds 1 --seconds 2 -o json")]
    Lb(Lb),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Result {
    what: String,
    up_seconds: Vec<f64>,
    down_seconds: Vec<f64>,
}

impl Bench {
    pub(super) async fn run(self) -> anyhow::Result<()> {
        // It needs no clusters.
        if let Some(What::Lb(lb)) = self.what {
            super::manageable()?;
            return lb.run().await;
        }
        super::possible()?;
        match self.what {
            Some(What::Propagation(propagation)) => return Box::pin(propagation.run()).await,
            Some(What::Policies(policies)) => return Box::pin(policies.run()).await,
            Some(What::Dns(dns)) => return Box::pin(dns.run()).await,
            Some(What::Api(api)) => return Box::pin(api.run()).await,
            Some(What::Lb(_)) | None => {}
        }
        atoll_lab::install(&atoll_lab::cache_root(), &Progress::to_stderr())?;
        let name = format!("bench-{}", std::process::id());
        let mut results = Vec::new();
        for (what, spec) in [
            (format!("{} whole clusters", self.clusters), Spec::whole(&name, self.clusters)),
            ("1 API-only cluster".to_owned(), Spec::api_only(&name, 1)),
        ] {
            let mut result = Result { what, up_seconds: Vec::new(), down_seconds: Vec::new() };
            for round in 1..=self.rounds {
                let start = Instant::now();
                let lab = Lab::start(&spec, &Progress::silent()).await?;
                result.up_seconds.push(start.elapsed().as_secs_f64());
                let start = Instant::now();
                lab.down()?;
                result.down_seconds.push(start.elapsed().as_secs_f64());
                atoll_lab::say(&format!("{}, round {round} of {}", result.what, self.rounds));
            }
            results.push(result);
        }
        self.output.print_bench(&results)
    }
}

impl Result {
    /// One line for people: the middle and the worst of each.
    pub(super) fn text(&self) -> String {
        let show = |seconds: &[f64]| {
            let mut sorted = seconds.to_vec();
            sorted.sort_by(f64::total_cmp);
            let (middle, worst) = (sorted.get(sorted.len() / 2), sorted.last());
            let [middle, worst] = [middle, worst].map(|seconds| seconds.copied().unwrap_or_default());
            format!("{middle:.1} s (worst {worst:.1} s)")
        };
        format!("{:<18}  up {}  down {}\n", self.what, show(&self.up_seconds), show(&self.down_seconds))
    }
}
