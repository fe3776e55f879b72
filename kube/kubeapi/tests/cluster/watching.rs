//! An open watch.

use std::time::Duration;

use http::Response;
use http_body_util::BodyExt;
use kube::client::Body;
use serde_json::Value;

use crate::answer::Answer;

/// How long the next event may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// A watch, or the refusal of one.
pub(crate) struct Watching {
    asked: String,
    pub(crate) head: http::response::Parts,
    body: Body,
    read: Vec<u8>,
}

impl Watching {
    pub(crate) async fn of(asked: String, response: Response<Body>) -> Self {
        let (head, body) = response.into_parts();
        Self { asked, head, body, read: Vec::new() }
    }

    /// What the server said instead of opening a watch.
    pub(crate) async fn refusal(self) -> Answer {
        let Self { asked, head, body, .. } = self;
        let bytes = body.collect().await.expect("a refusal comes whole").to_bytes().to_vec();
        Answer::new(asked, head.status.as_u16(), head.headers, bytes)
    }

    /// The next event; `None` when the server ended the watch.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        assert_eq!(self.head.status.as_u16(), 200, "{} did not open", self.asked);
        let event = tokio::time::timeout(PATIENCE, self.line()).await;
        let line = event.unwrap_or_else(|_| panic!("{}: no event came", self.asked))?;
        let mut event: Value = serde_json::from_slice(&line)
            .unwrap_or_else(|error| panic!("{}: {error} in {}", self.asked, String::from_utf8_lossy(&line)));
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Some((kind, event["object"].take()))
    }

    async fn line(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let rest = self.read.split_off(end + 1);
                return Some(std::mem::replace(&mut self.read, rest));
            }
            let frame = self.body.frame().await?;
            let Ok(frame) = frame else { return None };
            if let Ok(data) = frame.into_data() {
                self.read.extend_from_slice(&data);
            }
        }
    }

    /// The next event that is no bookmark must be `kind` of the object called `name`.
    #[track_caller]
    pub(crate) fn expect<'a>(&'a mut self, kind: &'a str, name: &'a str) -> impl Future<Output = Value> + 'a {
        let place = std::panic::Location::caller();
        async move {
            loop {
                let Some((got, object)) = self.next().await else {
                    panic!("{}: ended instead of {kind} {name} ({place})", self.asked)
                };
                if got == "BOOKMARK" && kind != "BOOKMARK" {
                    continue;
                }
                let called = object["metadata"]["name"].as_str().unwrap_or_default();
                assert!(
                    (&*got, called) == (kind, name),
                    "{}: wanted {kind} {name:?}, got {got} {called:?} ({place}): {object:#}",
                    self.asked
                );
                return object;
            }
        }
    }
}
