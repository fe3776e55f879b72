//! Asks, waits, and tells: the shell around [`Position`] and [`Backoff`].

use std::collections::VecDeque;
use std::fmt::Debug;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use crate::position::Position;
use crate::{Backoff, Event, Failure};

/// How many seconds the server keeps a watch.
pub const LIFETIME: u32 = 50;
/// A connection that was cut silently is noticed after this.
const SILENCE: Duration = Duration::from_secs(LIFETIME as u64 + 5);
/// The same for the connection itself, for clients that watch: longer, so that the watch gives up first and says why.
pub const READ_TIMEOUT: Duration = Duration::from_secs(60);
/// A watch that ends sooner did not work, whatever the server says of it.
const SHORT: Duration = Duration::from_secs(1);
/// How many objects are in memory at once while a kind is listed.
const PAGE: u32 = 200;

/// What is watched, and how it is listed.
///
/// Lists are read page by page, and consistently. A streamed list would need no pages, but is at any revision: an API server that lags
/// behind could leave out an object, which would then count as gone.
#[derive(Debug, Clone)]
pub struct Config {
    labels: Option<String>,
    fields: Option<String>,
    page: u32,
}

impl Default for Config {
    /// Everything, 200 objects at a time.
    fn default() -> Self {
        Self { labels: None, fields: None, page: PAGE }
    }
}

impl Config {
    /// Only objects with these labels.
    #[must_use]
    pub fn labels(self, selector: &str) -> Self {
        Self { labels: Some(selector.to_owned()), ..self }
    }

    /// Only objects with these fields.
    #[must_use]
    pub fn fields(self, selector: &str) -> Self {
        Self { fields: Some(selector.to_owned()), ..self }
    }

    /// How many objects are listed at a time.
    #[must_use]
    pub fn page(self, page: u32) -> Self {
        Self { page, ..self }
    }

    fn list(&self, token: Option<String>) -> ListParams {
        ListParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            limit: Some(self.page),
            continue_token: token,
            ..ListParams::default()
        }
    }

    fn watch(&self) -> WatchParams {
        WatchParams {
            label_selector: self.labels.clone(),
            field_selector: self.fields.clone(),
            timeout: Some(LIFETIME),
            ..WatchParams::default()
        }
    }
}

/// Lists a kind, then follows it, for ever. A failure is told, then waited out; where the server still knows what we know, the watch
/// goes on from there, and else everything is listed again. To list again at once, drop it and begin another.
pub fn watch<K>(api: Api<K>, config: Config) -> impl Stream<Item = Event<K>> + Send
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let watch = Watch {
        api,
        config,
        position: Position::default(),
        backoff: Backoff::default(),
        page: VecDeque::new(),
        changes: None,
        pause: None,
        began: Instant::now(),
    };
    // The request in flight is kept here: whoever waits for the next event may stop waiting and come again.
    stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await;
        Some((event, watch))
    })
}

struct Watch<K> {
    api: Api<K>,
    config: Config,
    position: Position,
    backoff: Backoff,
    /// What is yet to be told of a page.
    page: VecDeque<K>,
    changes: Option<BoxStream<'static, kube::Result<WatchEvent<K>>>>,
    /// Before anything else is asked.
    pause: Option<Duration>,
    /// When the watch began.
    began: Instant,
}

impl<K> Watch<K>
where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    async fn next(&mut self) -> Event<K> {
        if let Some(pause) = self.pause.take() {
            tokio::time::sleep(pause).await;
        }
        loop {
            match self.step().await {
                Ok(Some(event)) => return event,
                Ok(None) => {}
                Err(failure) => return self.fail(failure),
            }
        }
    }

    /// One question, or one thing to tell.
    async fn step(&mut self) -> Result<Option<Event<K>>, Failure> {
        if let Some(object) = self.page.pop_front() {
            return Ok(Some(Event::Seen(object)));
        }
        match &mut self.position {
            Position::Start => {
                self.position = Position::Page(None);
                Ok(Some(Event::ListStarted))
            }
            Position::Page(token) => {
                let list = self.api.list(&self.config.list(token.clone())).await.map_err(Failure::List)?;
                self.position =
                    Position::after_page(list.metadata.continue_, list.metadata.resource_version)?;
                self.page = list.items.into();
                Ok(None)
            }
            Position::Listed(version) => {
                self.position = Position::At(std::mem::take(version));
                Ok(Some(Event::Listed))
            }
            Position::At(version) => match &mut self.changes {
                None => {
                    let changes =
                        self.api.watch(&self.config.watch(), version).await.map_err(Failure::Watch)?;
                    self.changes = Some(changes.boxed());
                    self.began = Instant::now();
                    Ok(Some(Event::Following))
                }
                Some(changes) => {
                    let next = tokio::time::timeout(SILENCE, changes.next()).await;
                    let Some(change) = next.map_err(|_| Failure::Silent)? else {
                        // The server has ended it, as it does every time.
                        self.changes = None;
                        if self.began.elapsed() < SHORT {
                            tokio::time::sleep(self.backoff.pause()).await;
                        } else {
                            self.backoff.reset();
                        }
                        return Ok(None);
                    };
                    self.heard(change.map_err(Failure::Broke)?)
                }
            },
        }
    }

    fn heard(&mut self, change: WatchEvent<K>) -> Result<Option<Event<K>>, Failure> {
        let event = match change {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                self.position = Position::after_change(object.resource_version())?;
                Some(Event::Seen(object))
            }
            WatchEvent::Deleted(object) => {
                self.position = Position::after_change(object.resource_version())?;
                Some(Event::Gone(object))
            }
            WatchEvent::Bookmark(bookmark) => {
                self.position = Position::after_change(Some(bookmark.metadata.resource_version))?;
                None
            }
            WatchEvent::Error(status) => return Err(Failure::Reported(status)),
        };
        self.backoff.reset();
        Ok(event)
    }

    fn fail(&mut self, failure: Failure) -> Event<K> {
        if self.changes.is_some() && self.began.elapsed() >= SHORT {
            self.backoff.reset(); // it has worked until now
        }
        self.position = std::mem::take(&mut self.position).after_failure(&failure);
        // One change that can't be read does not end a watch; the next may be all right.
        if self.position == Position::Start || matches!(failure, Failure::Silent) {
            self.changes = None;
        }
        self.pause = Some(self.backoff.after(&failure));
        Event::Failed(failure)
    }
}
