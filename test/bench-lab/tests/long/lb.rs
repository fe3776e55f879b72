//! The benchmark of balancers, in small: that it still runs, and that every balancer in it carries everything.

use anyhow::{Context, ensure};
use atoll_lab::suite::Suite;
use std::process::{Command, Stdio};

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("every_balancer_can_be_measured_in_every_way", every_balancer_in_every_way);
}

async fn every_balancer_in_every_way() -> anyhow::Result<()> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(["lb", "--rounds", "1", "--seconds", "1", "--clients", "8", "--rate", "100"]);
    let child = command.args(["-o", "json"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let its = format!("atoll-bench-lb-{}-", child.id());
    let output = child.wait_with_output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let rows = report["rows"].as_array().context("rows")?;
    ensure!(rows.len() == 42, "seven subjects, six cases: {report:#}");
    for row in rows {
        let round = &row["rounds"][0];
        ensure!(round["failed"] == 0, "{row:#}");
        ensure!(round["perSecond"].as_f64().is_some_and(|rate| rate > 0.0), "{row:#}");
    }
    let left = std::fs::read_dir("/run/netns")?.flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with(&its)).collect();
    ensure!(left.is_empty(), "it leaves nothing: {left:?}");
    Ok(())
}
