//! How long until everybody who watches has seen a change: from the request that makes it to the line that tells it.

use super::load::{NAMESPACE, config_map, send};
use super::ready::{client, get};
use super::{Amounts, Server};
use crate::error::{Doing, Error};
use futures_util::{AsyncBufReadExt, StreamExt};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_secs(30);
const WATCHED: &str = "watched";

/// What the watchers of one round saw.
pub(super) struct Seen {
    /// Milliseconds per change and watcher.
    pub(super) times: Vec<f64>,
    /// How often the server ended a watch.
    pub(super) ended: usize,
}

/// What became of a watch.
enum News {
    /// It was told this change, or something else.
    Told(Option<String>, Instant),
    /// The server ended it. The watcher watches again, and is shown first what is there.
    Ended,
    /// It can't watch any more.
    Failed(String),
}

/// Everybody who watches.
struct Watchers {
    server: String,
    news: mpsc::UnboundedReceiver<(usize, News)>,
    count: usize,
    ended: usize,
    // Dropped, they end.
    _tasks: JoinSet<()>,
}

/// One round of changes.
pub(super) async fn measure(server: &dyn Server, amounts: &Amounts, round: usize) -> Result<Seen, Error> {
    let writer = client(server).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    if round == 0 {
        let made = writer.request_text(send("POST", &path, config_map(WATCHED, "nothing yet"))).await;
        made.doing(|| format!("make what is watched in {}", server.name()))?;
    }
    let mut watchers = Watchers::open(server, &path, amounts.watchers).await?;
    let mut times = Vec::new();
    // Each watch begins with the object as it is: from then on it is known to be open.
    watchers.told(None).await?;
    for change in 0..amounts.changes {
        let says = format!("<{}>", round * amounts.changes + change);
        let body = config_map(WATCHED, &says);
        let sent = Instant::now();
        let writing = writer.request_text(send("PUT", &format!("{path}/{WATCHED}"), body));
        let (written, told) = tokio::join!(writing, watchers.told(Some(&says)));
        written.doing(|| format!("change what is watched in {}", server.name()))?;
        times.extend(told?.into_iter().map(|at| at.duration_since(sent).as_secs_f64() * 1e3));
    }
    Ok(Seen { times, ended: watchers.ended })
}

impl Watchers {
    async fn open(server: &dyn Server, path: &str, count: usize) -> Result<Self, Error> {
        let (tell, news) = mpsc::unbounded_channel();
        let wanted = format!("{path}?watch=true&fieldSelector=metadata.name%3D{WATCHED}&timeoutSeconds=600");
        let mut tasks = JoinSet::new();
        for watcher in 0..count {
            // Connections are opened one after the other: a crowd at the door isn't what is measured.
            let client = client(server).await?;
            client.request_text(get("/version")).await.doing(|| format!("ask {}", server.name()))?;
            tasks.spawn(watch(watcher, client, wanted.clone(), tell.clone()));
        }
        Ok(Self { server: server.name().to_owned(), news, count, ended: 0, _tasks: tasks })
    }

    /// When each watcher was first told `says`, or anything.
    async fn told(&mut self, says: Option<&str>) -> Result<Vec<Instant>, Error> {
        let mut told: Vec<Option<Instant>> = vec![None; self.count];
        let mut missing = self.count;
        let deadline = tokio::time::Instant::now() + LIMIT;
        while missing > 0 {
            match tokio::time::timeout_at(deadline, self.news.recv()).await {
                Ok(Some((watcher, News::Told(said, at)))) => {
                    if (says.is_none() || said.as_deref() == says) && told[watcher].is_none() {
                        told[watcher] = Some(at);
                        missing -= 1;
                    }
                }
                Ok(Some((_, News::Ended))) => self.ended += 1,
                Ok(Some((_, News::Failed(why)))) => return Err(Error::Hook { action: "watch", why }),
                Ok(None) | Err(_) => {
                    let what = says.map_or("what is there".to_owned(), |says| format!("the change {says}"));
                    return Err(Error::Deadline {
                        what: format!("every watcher of {} sees {what}", self.server),
                        seconds: LIMIT.as_secs(),
                        missing: format!("{missing} of {}", self.count),
                    });
                }
            }
        }
        Ok(told.into_iter().flatten().collect())
    }
}

/// Watches, and watches again when the server ends it: servers do that to watchers that they find too slow.
async fn watch(
    watcher: usize,
    client: kube::Client,
    wanted: String,
    tell: mpsc::UnboundedSender<(usize, News)>,
) {
    loop {
        let lines = match client.request_stream(get(&wanted)).await {
            Ok(lines) => lines,
            Err(error) => {
                let _ = tell.send((watcher, News::Failed(error.to_string())));
                return;
            }
        };
        let mut lines = Box::pin(lines).lines();
        while let Some(Ok(line)) = lines.next().await {
            let at = Instant::now();
            if tell.send((watcher, News::Told(said(&line), at))).is_err() {
                return;
            }
        }
        if tell.send((watcher, News::Ended)).is_err() {
            return;
        }
    }
}

/// The part of a line that says which change it is, without reading all of it as JSON: this is the clock, not the work.
fn said(line: &str) -> Option<String> {
    // Go's JSON writes < and > as escapes.
    let line = line.replace("\\u003c", "<").replace("\\u003e", ">");
    let (start, end) = (line.find("\"says\":\"<")? + 8, line.find(">\"")? + 1);
    line.get(start..end).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::said;

    #[test]
    fn a_change_is_read_off_its_line() {
        let line = r#"{"type":"MODIFIED","object":{"data":{"says":"<17>","text":"xx"}}}"#;
        assert_eq!(said(line).as_deref(), Some("<17>"));
        assert_eq!(said(&line.replace('<', "\\u003c").replace('>', "\\u003e")).as_deref(), Some("<17>"));
        assert_eq!(said(&line.replace("<17>", "nothing yet")), None);
    }
}
