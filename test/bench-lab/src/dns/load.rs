//! dnsperf, and what it says.

use super::data::Questions;
use anyhow::{Context, ensure};
use atoll_lab::Cluster;

/// As many questions as get answered.
pub(super) struct Load {
    pub(super) answered: f64,
    pub(super) per_second: f64,
    pub(super) lost: f64,
}

/// Asks as fast as possible, with EDNS, as resolvers do.
pub(super) async fn as_fast_as_possible(
    cluster: &Cluster,
    port: u16,
    questions: &Questions,
    seconds: u32,
) -> anyhow::Result<Load> {
    let said =
        dnsperf(cluster, port, questions, &["-l", &seconds.to_string(), "-c", "20", "-q", "100"]).await?;
    read_load(&said).with_context(|| format!("dnsperf said: {said}"))
}

fn read_load(said: &str) -> Option<Load> {
    let number = |key: &str| -> Option<f64> {
        let rest = said.lines().find_map(|line| line.trim().strip_prefix(key))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    Some(Load {
        answered: number("Queries completed:")?,
        per_second: number("Queries per second:")?,
        lost: number("Queries lost:")?,
    })
}

/// How long each answer takes, in milliseconds and in order, at a rate that is the same for all.
pub(super) async fn latency(
    cluster: &Cluster,
    port: u16,
    questions: &Questions,
    seconds: u32,
    rate: u32,
) -> anyhow::Result<Vec<f64>> {
    let (seconds, rate) = (seconds.to_string(), rate.to_string());
    let said = dnsperf(cluster, port, questions, &["-v", "-l", &seconds, "-c", "20", "-Q", &rate]).await?;
    let mut times = read_latencies(&said);
    ensure!(!times.is_empty(), "dnsperf said: {said}");
    times.sort_by(f64::total_cmp);
    Ok(times)
}

/// Lines such as `> NOERROR web.shop.svc.clusterset.local A 0.000123`.
fn read_latencies(said: &str) -> Vec<f64> {
    let answers = said.lines().filter_map(|line| line.strip_prefix("> "));
    let seconds = answers.filter_map(|line| line.split_whitespace().last()?.parse::<f64>().ok());
    seconds.map(|seconds| seconds * 1000.0).collect()
}

async fn dnsperf(
    cluster: &Cluster,
    port: u16,
    questions: &Questions,
    flags: &[&str],
) -> anyhow::Result<String> {
    let mut command = cluster.machine().command("dnsperf");
    command.args(["-s", "127.0.0.1", "-p", &port.to_string(), "-e", "-d"]).arg(&questions.file).args(flags);
    let output = tokio::task::spawn_blocking(move || command.output()).await??;
    ensure!(output.status.success(), "dnsperf: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dnsperfs_words_are_understood() {
        let said = "Statistics:\n\n  Queries sent:         300\n  Queries completed:    299 (99.67%)\n  Queries lost:         1 (0.33%)\n
  Queries per second:   1996.007984\n";
        let load = read_load(said).unwrap();
        assert_eq!((load.answered, load.per_second, load.lost), (299.0, 1996.007984, 1.0));
        let said =
            "> NOERROR a.b A 0.000250\n> T a.b A\n[Status] Testing complete\n> NXDOMAIN a.c A 0.001000\n";
        assert_eq!(read_latencies(said), [0.25, 1.0]);
    }
}
