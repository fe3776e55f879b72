//! What happens to objects, as it happens.
//!
//! ```text
//!   state now (when asked for) ──▶ end of it ──▶ events … bookmarks … events ──▶ time is up, or the client fell behind
//! ```
//! A client that does not read costs what is ready for it, some 32 KiB. The state is read from the store while it is sent; what the
//! store has forgotten meanwhile ends the watch, as it ends one that reads its events too slowly. A large object needs a seat in
//! [`crate::flow`] before it is made ready, and must be taken within the time that any answer must.

use super::{RequestContext, Selection, table};
use crate::api::ApiState;
use crate::flow::lane::Seat;
use crate::http::answer::Answer;
use crate::http::encode;
use crate::http::encode::Unrevised;
use crate::http::negotiate::Shape;
use crate::http::request::ListOptions;
use crate::http::server::Link;
use crate::http::status_error::StatusError;
use crate::resources::resource::Resource;
use crate::resources::view;
use crate::storage::store::{Event, EventKind, Key, Object, RevisionError, Watch};
use crate::verbs::list::revision;
use atoll_apimachinery::table::{Include, TableConvertor};
use bytes::{BufMut, Bytes, BytesMut};
use futures_util::stream;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::time::{Instant, Sleep};

/// How often a client hears how far it has come, if it wants to.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);
/// How long a watch lasts when the client does not say, and as much again at random.
const LASTS_SECONDS: u64 = 1800;
/// How many events go out in one piece at most, and how many objects of the state are looked at at a time.
const BATCH: usize = 64;
/// So many bytes are ready at most; an object that has more goes alone.
const READY_MOST: usize = 32 << 10;
/// How often a seat for a large object is waited for before the watch ends.
const SEAT_TRIES: usize = 4;
/// Says that the state is complete.
const INITIAL_END: &str = "k8s.io/initial-events-end";

/// How the state of the beginning is sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The state first, then a bookmark that says so.
    StateThenMark,
    /// The state first.
    State,
    /// From this revision on.
    Since(u64),
    /// From now on.
    Now,
}

impl RequestContext<'_> {
    pub(crate) fn watch(&self) -> Result<Answer, StatusError> {
        let options = ListOptions::parse(&self.info.query, true)?;
        let mut selection = self.selection(&options)?;
        if !self.target.name.is_empty() {
            // The old form of a watch on one object.
            let field = format!("metadata.name={}", self.target.name);
            selection = Selection::parse(&self.resource, &options.label_selector, &field)?;
        }
        let wanted =
            revision(&options.resource_version).map_err(|error| StatusError::plain(error.to_string()))?;
        let start = match (options.initial_events, wanted) {
            (Some(true), _) if options.bookmarks => Start::StateThenMark,
            (Some(true), _) | (None, None | Some(0)) => Start::State,
            (Some(false), None | Some(0)) => Start::Now,
            (_, Some(wanted)) => Start::Since(wanted),
        };
        let current = self.state.store.revision();
        if let (Some(true), Some(wanted)) = (options.initial_events, wanted)
            && wanted > current
        {
            return Err(StatusError::too_new(wanted, current));
        }
        let lasts = options.timeout_seconds.filter(|seconds| *seconds > 0);
        let lasts = lasts.unwrap_or_else(|| LASTS_SECONDS + self.state.environment.below(LASTS_SECONDS));
        let feed = Feed::start(self, selection, start, options.bookmarks, Duration::from_secs(lasts))?;
        let pieces =
            stream::unfold(feed, |mut feed| async move { feed.next().await.map(|piece| (piece, feed)) });
        Ok(Answer::stream(pieces).warn(&self.warnings()))
    }
}

/// One running watch.
struct Feed {
    state: Arc<ApiState>,
    resource: Arc<Resource>,
    selection: Selection,
    shape: Shape,
    include: Include,
    watch: Option<Watch>,
    /// What is left of the state that it begins with.
    initial: Option<Initial>,
    /// An event that came and waits until what is ready was sent.
    kept: Option<Event>,
    ready: VecDeque<Bytes>,
    ready_bytes: usize,
    pace: Pace,
    bookmarks: Option<Pin<Box<Sleep>>>,
    ends: Pin<Box<Sleep>>,
    /// How rows are made, where they are asked for.
    convertor: Option<TableConvertor>,
    /// Columns are named once.
    headed: bool,
    over: bool,
}

/// The state of the beginning, as far as it was not sent yet.
struct Initial {
    prefix: String,
    revision: u64,
    after: Option<Key>,
    marked: bool,
}

/// Whose share large objects take, and how long they may wait to be read.
struct Pace {
    payer: Option<String>,
    link: Option<Arc<Link>>,
    seat: Option<Seat>,
}

impl Pace {
    /// Waits for a seat for a large object.
    async fn large(&mut self, state: &ApiState) -> bool {
        for _ in 0..SEAT_TRIES {
            let Ok(seat) = state.flow.bulky(self.payer.as_deref()).await else { continue };
            if let (Some(_), Some(link)) = (&seat, &self.link) {
                link.stream(false);
            }
            self.seat = seat;
            return true;
        }
        false
    }

    /// What was ready is with the client.
    fn sent(&mut self) {
        if let (Some(_), Some(link)) = (self.seat.take(), &self.link) {
            link.stream(true);
        }
    }
}

fn is_large(object: &Object) -> bool {
    object.body.len() > READY_MOST
}

impl Feed {
    fn start(
        context: &RequestContext<'_>,
        selection: Selection,
        start: Start,
        bookmarks: bool,
        lasts: Duration,
    ) -> Result<Self, StatusError> {
        let prefix = selection.prefix(&context.resource, context.namespace());
        let now = Instant::now();
        let mut feed = Self {
            state: Arc::clone(context.state),
            resource: Arc::clone(&context.resource),
            selection,
            shape: context.output.shape,
            include: context.include()?,
            watch: None,
            initial: None,
            kept: None,
            ready: VecDeque::new(),
            ready_bytes: 0,
            pace: Pace {
                payer: context.admitted.payer.clone(),
                link: context.admitted.link.clone(),
                seat: None,
            },
            bookmarks: bookmarks.then(|| Box::pin(tokio::time::sleep_until(now + BOOKMARK_EVERY))),
            ends: Box::pin(tokio::time::sleep_until(now + lasts)),
            convertor: matches!(context.output.shape, Shape::Table(_))
                .then(|| table::convertor(&context.resource)),
            headed: false,
            over: false,
        };
        let store = context.state.store.clone();
        let since = match start {
            Start::Now => None,
            Start::Since(revision) => Some(revision),
            Start::State | Start::StateThenMark => {
                let (revision, marked) = (store.revision(), start == Start::StateThenMark);
                feed.initial = Some(Initial { prefix: prefix.clone(), revision, after: None, marked });
                Some(revision)
            }
        };
        let oldest = context.state.floor.load(Ordering::Relaxed);
        match store.watch(&prefix, since) {
            _ if since.is_some_and(|since| since < oldest) => {
                feed.fail(RevisionError::Gone { requested: since.unwrap_or(0), oldest });
            }
            Ok(watch) => feed.watch = Some(watch),
            Err(error) => feed.fail(error),
        }
        Ok(feed)
    }

    /// The next piece for the client; `None` when the watch is over.
    async fn next(&mut self) -> Option<Bytes> {
        self.pace.sent();
        loop {
            if !self.ready.is_empty() {
                return Some(self.piece());
            }
            if self.over {
                return None;
            }
            if self.initial.is_some() {
                self.more().await;
                continue;
            }
            if let Some(event) = self.kept.take() {
                self.take(event).await;
                continue;
            }
            let watch = self.watch.as_mut()?;
            let mut retired = self.resource.retired.subscribe();
            let bookmark = async {
                match &mut self.bookmarks {
                    Some(timer) => timer.as_mut().await,
                    None => std::future::pending().await,
                }
            };
            let came = tokio::select! {
                biased;
                event = watch.next() => match event {
                    Ok(event) => Some(event),
                    Err(error) => {
                        self.fail(error);
                        None
                    }
                },
                () = bookmark => {
                    let at = watch.revision();
                    self.mark(at, false);
                    if let Some(timer) = &mut self.bookmarks {
                        timer.as_mut().reset(Instant::now() + BOOKMARK_EVERY);
                    }
                    None
                }
                () = self.ends.as_mut() => {
                    let at = watch.revision();
                    if self.bookmarks.is_some() {
                        self.mark(at, false);
                    }
                    self.over = true;
                    None
                }
                // The resource is described anew: a client that watches again sees it so.
                () = async { drop(retired.wait_for(|retired| *retired).await) } => {
                    self.over = true;
                    None
                }
            };
            if let Some(event) = came {
                self.take(event).await;
            }
        }
    }

    /// More of the state that the watch begins with.
    async fn more(&mut self) {
        let Some(mut initial) = self.initial.take() else { return };
        let store = &self.state.store;
        let found = match store.first(&initial.prefix, initial.revision, initial.after.as_ref(), BATCH) {
            Ok(found) => found,
            Err(error) => return self.fail(error),
        };
        let last = found.len() < BATCH;
        for object in found {
            let selected = self.selection.selects(&self.resource, &object, &object.body);
            if selected && is_large(&object) {
                if !self.ready.is_empty() {
                    self.initial = Some(initial);
                    return;
                }
                if !self.pace.large(&self.state).await {
                    self.over = true;
                    return;
                }
            }
            if selected {
                let bytes = view::shown_bytes(&self.resource, object.revision, &object.body);
                self.send("ADDED", &bytes);
            }
            initial.after = Some(object.key);
            if self.ready_bytes >= READY_MOST {
                self.initial = Some(initial);
                return;
            }
        }
        if !last {
            self.initial = Some(initial);
            // Where little is selected much is looked at.
            tokio::task::yield_now().await;
        } else if initial.marked {
            self.mark(initial.revision, true);
        }
    }

    /// An event and those that are there already.
    async fn take(&mut self, first: Event) {
        let mut next = Some(first);
        for _ in 0..BATCH {
            let Some(event) = next.take() else { return };
            if is_large(&event.object) || event.previous.as_ref().is_some_and(|one| one.len() > READY_MOST) {
                if !self.ready.is_empty() {
                    self.kept = Some(event);
                    return;
                }
                if !self.pace.large(&self.state).await {
                    self.over = true;
                    return;
                }
                self.event(&event);
                if self.ready.is_empty() {
                    self.pace.sent(); // it is not selected
                }
                return;
            }
            self.event(&event);
            let Some(watch) = self.watch.as_mut().filter(|_| self.ready_bytes < READY_MOST) else { return };
            match watch.try_next() {
                Ok(found) => next = found,
                Err(error) => return self.fail(error),
            }
        }
        self.kept = next;
    }

    /// What a client with this selection sees of an event.
    fn event(&mut self, event: &Event) {
        let revision = event.object.revision;
        let matches = |body: &Bytes| self.selection.selects(&self.resource, &event.object, body);
        let is = event.kind != EventKind::Deleted && matches(&event.object.body);
        let was = event.previous.as_ref().is_some_and(matches);
        let kind = match (was, is, event.kind) {
            (_, _, EventKind::Deleted) if matches(&event.object.body) || was => "DELETED",
            (true, true, _) => "MODIFIED",
            (false, true, _) => "ADDED",
            (true, false, _) => "DELETED",
            (false, false, _) => return,
        };
        let left = kind == "DELETED" && event.kind != EventKind::Deleted;
        let bytes = match &event.previous {
            // It is still there, but not for this client: it sees what it knew, at the revision of now.
            Some(previous) if left => Unrevised::of(previous).at(revision),
            _ => event.object.body.clone(),
        };
        let shown = view::shown_bytes(&self.resource, revision, &bytes);
        self.send(kind, &shown);
    }

    fn send(&mut self, kind: &str, object: &Bytes) {
        let formed;
        let object = match self.shape {
            Shape::Whole => object,
            Shape::Metadata(version) => {
                formed = encode::write(&table::metadata_only(&encode::read(object), version));
                &formed
            }
            Shape::Table(version) => {
                formed = encode::write(&self.row(version, object));
                &formed
            }
        };
        self.push(kind, object);
    }

    fn row(&mut self, version: &str, object: &Bytes) -> Value {
        let value = encode::read(object);
        let Some(convertor) = &self.convertor else { return value };
        let mut one =
            table::table(convertor, version, &[&value], &value, self.include, self.state.environment.now());
        if self.headed {
            one["columnDefinitions"] = Value::Null;
        }
        self.headed = true;
        one
    }

    fn push(&mut self, kind: &str, object: &[u8]) {
        let mut line = BytesMut::with_capacity(object.len() + 32);
        line.put_slice(b"{\"type\":\"");
        line.put_slice(kind.as_bytes());
        line.put_slice(b"\",\"object\":");
        line.put_slice(object);
        line.put_slice(b"}\n");
        self.ready_bytes += line.len();
        self.ready.push_back(line.freeze());
    }

    /// Says how far the client has come.
    fn mark(&mut self, revision: u64, initial_end: bool) {
        let (api_version, kind) = match self.shape {
            Shape::Whole => (self.resource.api_version(), self.resource.names.kind.clone()),
            Shape::Metadata(version) => {
                (format!("meta.k8s.io/{version}"), "PartialObjectMetadata".to_owned())
            }
            Shape::Table(version) => (format!("meta.k8s.io/{version}"), "Table".to_owned()),
        };
        let mut metadata = json!({"resourceVersion": revision.to_string(), "creationTimestamp": null});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_END: "true"});
        }
        let mut object = json!({"kind": kind, "apiVersion": api_version, "metadata": metadata});
        if let Shape::Table(_) = self.shape {
            object["columnDefinitions"] = Value::Null;
            object["rows"] = json!([]);
        }
        self.push("BOOKMARK", &encode::write(&object));
    }

    fn fail(&mut self, error: RevisionError) {
        let error = match error {
            RevisionError::Gone { requested, oldest } => {
                StatusError::expired(format!("too old resource version: {requested} ({oldest})"))
            }
            RevisionError::Future { requested, current } => StatusError::too_new(requested, current),
        };
        self.push("ERROR", &encode::write(&error.status()));
        self.watch = None;
        self.over = true;
    }

    /// What is ready, in one piece.
    fn piece(&mut self) -> Bytes {
        self.ready_bytes = 0;
        if self.ready.len() == 1 {
            return self.ready.pop_front().unwrap_or_default();
        }
        let taken: Vec<Bytes> = self.ready.drain(..).collect();
        taken.concat().into()
    }
}
