//! Kubernetes APIs side by side in one run: how soon they are ready, what they take, how fast they write and tell.
//!
//! ```text
//!   round 1:  embedded ─ start, create, update │ real ─ start, create, update
//!   round 2:  real …                           │ embedded …
//!   then:     100 watchers on each, one change at a time, until all have seen it
//! ```
//!
//! Servers take turns within every round, since machines drift. The clients are the same for all: plain requests, one
//! connection per client. Start at [`measure`]; what only the caller can do (start and stop a server) comes in by
//! [`Server`]. [`measure_running`] measures what runs already.

mod load;
mod options;
mod ready;
mod report;
mod running;
mod watchers;

pub use options::{Amounts, Options};
pub use report::{Rate, Report, Row};
pub use running::{Running, measure_running};

use crate::error::Error;
use crate::usage::Usage;
use futures_util::future::BoxFuture;
use load::Load;
use std::time::Duration;

/// A server that can be measured.
pub trait Server: Send + Sync {
    /// What it is called in the report.
    fn name(&self) -> &str;
    /// Starts its processes and waits for nothing; with no objects if `empty`. It was stopped, or never started.
    fn start(&self, empty: bool) -> BoxFuture<'_, Result<(), String>>;
    /// Ends its processes, politely.
    fn stop(&self) -> BoxFuture<'_, Result<(), String>>;
    /// An administrator's kubeconfig; there once the server was ready for the first time.
    fn kubeconfig(&self) -> Result<String, String>;
    /// The context in it; its current one if there is none.
    fn context(&self) -> Option<&str> {
        None
    }
    /// If it was started and has ended by itself: its last words.
    fn ended(&self) -> Option<String>;
    /// Its processes.
    fn processes(&self) -> Vec<u32>;
}

/// Measures `servers`, which do not run yet and do not run afterwards; with no starts to measure, they run all the time.
///
/// # Errors
/// A server can't be started, isn't ready in time, or refuses a request.
pub async fn measure(
    servers: &[Box<dyn Server>],
    options: &Options,
    progress: &(dyn Fn(&str) + Sync),
) -> Result<Report, Error> {
    let mut rows: Vec<Row> = servers.iter().map(|server| Row::new(server.name())).collect();
    for round in 0..options.starts {
        for at in turns(servers.len(), round) {
            progress(&format!("start {} of {}, {}", round + 1, options.starts, servers[at].name()));
            let (server, row) = (&servers[at], &mut rows[at]);
            if round > 0 {
                stop(server.as_ref()).await?;
            }
            row.start_empty_ms.push(ready::start(server.as_ref(), true).await?);
        }
    }
    settle(options).await;
    for (server, row) in servers.iter().zip(&mut rows) {
        row.rss_empty_mb = memory(server.as_ref());
    }
    let say = |what: &str, round: usize, at: usize| {
        let (of, name) = (options.amounts.rounds, servers[at].name());
        progress(&format!("{what}, round {} of {of}, {name}", round + 1));
    };
    let mut loads = Vec::new();
    for server in servers {
        loads.push(Load::on(server.as_ref(), options.amounts.clients).await?);
    }
    for round in 0..options.amounts.rounds {
        for at in turns(servers.len(), round) {
            say("creates", round, at);
            let names = options.amounts.objects_of(round);
            rows[at].creates.add(loads[at].create(names).await?);
        }
    }
    settle(options).await;
    for (server, row) in servers.iter().zip(&mut rows) {
        row.rss_full_mb = memory(server.as_ref());
    }
    for round in 0..options.amounts.rounds {
        for at in turns(servers.len(), round) {
            say("updates", round, at);
            let names = options.amounts.objects_of(round);
            rows[at].updates.add(loads[at].update(names, round).await?);
        }
    }
    for round in 0..options.amounts.rounds {
        for at in turns(servers.len(), round) {
            say("watchers", round, at);
            let seen = watchers::measure(servers[at].as_ref(), &options.amounts, round).await?;
            rows[at].watch_ms.extend(seen.times);
            rows[at].watches_ended += seen.ended;
        }
    }
    drop(loads);
    for round in 0..options.starts {
        for at in turns(servers.len(), round) {
            let (server, row) = (&servers[at], &mut rows[at]);
            progress(&format!(
                "start {} of {} with {} objects, {}",
                round + 1,
                options.starts,
                options.amounts.objects,
                server.name()
            ));
            stop(server.as_ref()).await?;
            row.start_full_ms.push(ready::start(server.as_ref(), false).await?);
        }
    }
    for server in servers {
        stop(server.as_ref()).await?;
    }
    Ok(Report::new(options, rows))
}

/// Who goes first changes from round to round.
fn turns(servers: usize, round: usize) -> impl Iterator<Item = usize> {
    (0..servers).map(move |at| (at + round) % servers)
}

async fn stop(server: &dyn Server) -> Result<(), Error> {
    server.stop().await.map_err(|why| Error::Hook { action: "stop a server", why })
}

/// Garbage collectors need a moment before memory means anything.
async fn settle(options: &Options) {
    tokio::time::sleep(Duration::from_secs(options.settle_seconds)).await;
}

/// Resident memory of all processes in MB, if they are known.
fn memory(server: &dyn Server) -> Option<f64> {
    let used: Vec<f64> =
        server.processes().into_iter().filter_map(Usage::of).map(|usage| usage.rss_mb).collect();
    (!used.is_empty()).then(|| used.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::turns;

    #[test]
    fn servers_take_turns_in_being_first() {
        assert_eq!(turns(2, 0).collect::<Vec<_>>(), [0, 1]);
        assert_eq!(turns(2, 1).collect::<Vec<_>>(), [1, 0]);
        assert_eq!(turns(2, 2).collect::<Vec<_>>(), [0, 1]);
    }
}
