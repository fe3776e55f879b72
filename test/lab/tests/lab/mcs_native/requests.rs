//! A pod that asks a Service again and again, as a user's client would, and what it was answered.

use anyhow::{Context, ensure};
use atoll_lab::{Cluster, Deadline, until};
use std::collections::BTreeMap;
use std::time::Duration;

/// Requests under way from the pod `tools`, fifty in a second while they are answered.
pub(super) struct Requests<'a> {
    client: &'a Cluster,
    file: String,
    process: String,
}

/// What was answered.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// How often each cluster answered.
    pub(super) by: BTreeMap<String, usize>,
    /// How often none did.
    pub(super) failed: Vec<String>,
}

impl Said {
    pub(super) fn from(&self, cluster: &str) -> usize {
        self.by.get(cluster).copied().unwrap_or(0)
    }
}

impl<'a> Requests<'a> {
    /// Begins to ask `native`, once it answers at all.
    pub(super) async fn begin(client: &'a Cluster, native: &str) -> anyhow::Result<Self> {
        let file = format!("/tmp/{native}.said");
        let once = format!("workload fetch --timeout=2s --address={native}:80");
        client.exec_until("default", "tools", &once, |said| said.starts_with("member")).await?;
        let begin = format!(
            "workload request --address={native}:80 --interval=20ms --duration=10m > {file} 2>&1 < /dev/null & echo $!"
        );
        let process = client.exec("default", "tools", &["sh", "-c", &begin]).await?.trim().to_owned();
        ensure!(process.parse::<u32>().is_ok(), "no process: {process}");
        let requests = Self { client, file, process };
        requests.more(20).await?;
        Ok(requests)
    }

    async fn lines(&self) -> anyhow::Result<Vec<String>> {
        let said = self.client.exec("default", "tools", &["cat", &self.file]).await?;
        // The last line may be half-written.
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        Ok(whole.lines().map(str::to_owned).collect())
    }

    /// What was answered so far.
    pub(super) async fn so_far(&self) -> anyhow::Result<Said> {
        Ok(read(&self.lines().await?))
    }

    /// Waits for `count` more requests, and says how those were answered.
    pub(super) async fn more(&self, count: usize) -> anyhow::Result<Said> {
        let before = self.lines().await?.len();
        let deadline = Deadline::after(Duration::from_secs(90), format!("{count} more requests are made"));
        let lines = until(deadline, async || {
            Ok(match self.lines().await {
                Ok(lines) if lines.len() >= before + count => Ok(lines),
                Ok(lines) => Err(format!("{} of {}", lines.len(), before + count)),
                Err(error) => Err(format!("{error:#}")),
            })
        })
        .await?;
        Ok(read(&lines[before..]))
    }

    /// Ends it.
    pub(super) async fn end(self) -> anyhow::Result<Said> {
        let end = format!("kill {}; cat {}", self.process, self.file);
        let said =
            self.client.exec("default", "tools", &["sh", "-c", &end]).await.context("end the requests")?;
        let whole = said.rfind('\n').map_or("", |end| &said[..end]);
        Ok(read(&whole.lines().map(str::to_owned).collect::<Vec<_>>()))
    }
}

/// Lines of the day, the time, and then who answered.
fn read(lines: &[String]) -> Said {
    let mut said = Said::default();
    for line in lines {
        match line.split(' ').nth(2) {
            Some(cluster) if cluster.starts_with("member") => {
                *said.by.entry(cluster.to_owned()).or_default() += 1;
            }
            Some(_) | None => said.failed.push(line.clone()),
        }
    }
    said
}
