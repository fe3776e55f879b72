//! How long until everybody who watches has seen a change: from the request that makes it to the line that tells it.

use super::load::{NAMESPACE, config_map, send};
use super::ready::{client, get};
use super::{Options, Server};
use crate::error::{Doing, Error};
use futures_util::{AsyncBufReadExt, StreamExt};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const LIMIT: Duration = Duration::from_secs(30);
const WATCHED: &str = "watched";

/// What a watcher was told, and when; or how its watch ended.
type News = Result<(Option<String>, Instant), String>;

/// Milliseconds per change and watcher.
pub(super) async fn measure(server: &dyn Server, options: &Options, round: usize) -> Result<Vec<f64>, Error> {
    let writer = client(server).await?;
    let path = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
    if round == 0 {
        let made = writer.request_text(send("POST", &path, config_map(WATCHED, "nothing yet"))).await;
        made.doing(|| format!("make what is watched in {}", server.name()))?;
    }
    let (tell, mut seen) = mpsc::unbounded_channel();
    let mut watching = JoinSet::new();
    let wanted = format!("{path}?watch=true&fieldSelector=metadata.name%3D{WATCHED}&timeoutSeconds=600");
    for _ in 0..options.watchers {
        let client = client(server).await?;
        let lines = client.request_stream(get(&wanted)).await.doing(|| format!("watch {}", server.name()))?;
        let tell = tell.clone();
        watching.spawn(async move {
            let mut lines = Box::pin(lines).lines();
            loop {
                let line = lines.next().await;
                let at = Instant::now();
                let news = match line {
                    Some(Ok(line)) => Ok((said(&line), at)),
                    Some(Err(error)) => Err(error.to_string()),
                    None => Err("it came to its end".to_owned()),
                };
                let ended = news.is_err();
                if tell.send(news).is_err() || ended {
                    return;
                }
            }
        });
    }
    let mut times = Vec::new();
    // Each watch begins with the object as it is: from then on it is known to be open.
    wait(&mut seen, options.watchers, None, server.name()).await?;
    for change in 0..options.changes {
        let says = format!("<{}>", round * options.changes + change);
        let body = config_map(WATCHED, &says);
        let says: Arc<str> = says.into();
        let sent = Instant::now();
        let writing = writer.request_text(send("PUT", &format!("{path}/{WATCHED}"), body));
        let (written, told) =
            tokio::join!(writing, wait(&mut seen, options.watchers, Some(&says), server.name()));
        written.doing(|| format!("change what is watched in {}", server.name()))?;
        times.extend(told?.into_iter().map(|at| at.duration_since(sent).as_secs_f64() * 1e3));
    }
    Ok(times)
}

/// When each of `watchers` was told `says`, or anything.
async fn wait(
    seen: &mut mpsc::UnboundedReceiver<News>,
    watchers: usize,
    says: Option<&str>,
    server: &str,
) -> Result<Vec<Instant>, Error> {
    let mut told = Vec::with_capacity(watchers);
    let all = tokio::time::timeout(LIMIT, async {
        while told.len() < watchers {
            match seen.recv().await {
                Some(Ok((said, at))) if says.is_none() || said.as_deref() == says => told.push(at),
                Some(Ok(_)) => {}
                Some(Err(why)) => return Err(Error::Hook { action: "watch", why }),
                None => break,
            }
        }
        Ok(())
    });
    if let Ok(ended) = all.await {
        ended?;
    }
    if told.len() == watchers {
        return Ok(told);
    }
    let what = match says {
        Some(says) => format!("every watcher of {server} sees the change {says}"),
        None => format!("every watcher of {server} sees what is there"),
    };
    let missing = format!("{} of {watchers}", watchers - told.len());
    Err(Error::Deadline { what, seconds: LIMIT.as_secs(), missing })
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
