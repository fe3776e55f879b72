//! One story, told to these controllers and to kube-controller-manager: their objects must look the same.
//!
//! ```text
//!   story ──┬─▶ a whole cluster of the lab          ──▶ portraits ──┐
//!           └─▶ the embedded API, controllers, and  ──▶ portraits ──┴─▶ equal
//!               the tests' own kubelet
//! ```
//! A portrait leaves out what differs in any two clusters: uids, times, addresses, the letters of generated names.

#![allow(clippy::unwrap_used)] // clippy sees tests, but not the functions that they share

#[path = "../shared/cluster.rs"]
#[allow(dead_code, reason = "the other tests use the rest")]
mod cluster;
mod portrait;
mod story;

use anyhow::ensure;
use atoll_lab::suite::{Suite, evidence_root, name};
use std::process::ExitCode;

fn main() -> ExitCode {
    let spec = atoll_lab::Spec::whole(&name("sandbox"), 1);
    let evidence = evidence_root(env!("CARGO_TARGET_TMPDIR"));
    let mut suite = Suite::new("sandbox", spec, evidence).expect("a runtime can be made");
    suite.test("workloads_look_as_in_a_real_cluster", async |lab| {
        let real = story::tell(&cluster::Objects(lab.member(1).client().await?)).await;
        let ours = cluster::Cluster::start().await;
        let own = story::tell(&ours).await;
        for ((chapter, real), (_, own)) in real.into_iter().zip(own) {
            ensure!(real.len() > 10, "{chapter}: a portrait of nobody");
            let differs: Vec<String> = real
                .iter()
                .filter(|one| !own.contains(one))
                .map(|one| format!("only in the real cluster:\n{one:#}"))
                .chain(
                    own.iter().filter(|one| !real.contains(one)).map(|one| format!("only in ours:\n{one:#}")),
                )
                .collect();
            ensure!(differs.is_empty() && real.len() == own.len(), "{chapter}: {}", differs.join("\n"));
        }
        anyhow::Ok(())
    });
    suite.run()
}
