//! The benchmarks of what lies in the hub, at a size that says whether they work and not how fast.

use anyhow::{Context, ensure};
use atoll_lab::suite::{Suite, name};
use serde_json::Value;

pub(crate) fn tests(suite: &mut Suite) {
    suite.test_alone("policies_can_be_measured_beside_a_floor_of_the_same_writes", policies);
    suite.test_alone("multi_cluster_services_can_be_measured_beside_a_floor", mcs);
}

async fn report(words: &[&str], own: &str) -> anyhow::Result<Value> {
    let output = tokio::process::Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(words)
        .args(["--name", &name(own), "-o", "json"])
        .kill_on_drop(true)
        .output()
        .await?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).context("the report is JSON")
}

fn sum(counts: &Value) -> u64 {
    counts.as_object().into_iter().flat_map(|all| all.values()).filter_map(Value::as_u64).sum()
}

/// A ratio there is, and in members ours and the floor write one copy per template and one update per change, by the audit logs.
async fn policies() -> anyhow::Result<()> {
    let report = report(&["policies", "--objects", "10", "--rounds", "1", "--samples", "10"], "bp").await?;
    let rows = report["rows"].as_array().context("rows")?;
    ensure!(rows.len() == 3 && rows.iter().all(|row| row["ratio"]["p50"].is_f64()), "{report:#}");
    for row in rows {
        for cluster in row["writes"].as_array().context("writes")?.iter().filter(|of| of["cluster"] != "hub")
        {
            for who in ["ours", "floor"] {
                ensure!(sum(&cluster["by"][who]) == 10, "{who} in {cluster:#}");
            }
        }
    }
    Ok(())
}

/// A ratio there is, and a changed slice costs the consumer one update, the provider and the hub nothing.
async fn mcs() -> anyhow::Result<()> {
    let words = [
        "propagation",
        "--path",
        "mcs",
        "--only",
        "idle,cold",
        "--samples",
        "10",
        "--cold",
        "10",
        "--rounds",
        "1",
    ];
    let report = report(&words, "bm").await?;
    let rows = report["rows"].as_array().context("rows")?;
    ensure!(rows.len() == 2 && rows.iter().all(|row| row["ratio"]["p50"].is_f64()), "{report:#}");
    let idle = rows.iter().find(|row| row["scenario"] == "idle").context("single changes")?;
    for counted in idle["requests"].as_array().context("requests")? {
        let want = if counted["cluster"] == "member2" { 10 } else { 0 };
        ensure!(sum(&counted["aboutServices"]) == want, "{counted:#}");
    }
    Ok(())
}
