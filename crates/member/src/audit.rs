//! Every write into the member, for the audit log: seen where it leaves, so that no code can forget to tell.
//!
//! ```text
//!   because(reason, request) ──▶ kube client ──▶ Audited ──▶ member's API
//!                                                  └──▶ one event, when the answer is there
//! ```

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use atoll_api::names::annotation;
use atoll_audit::{Event, Log, ObjectRef, Outcome, UserInfo, verb};
use atoll_engine::names::ClusterId;
use http::{Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use tower::{Layer, Service};

tokio::task_local! {
    /// Why this task writes.
    static CAUSE: Cause;
}

/// Why something is written, and what it is called: the path of a create does not say.
#[derive(Debug, Clone)]
pub(crate) struct Cause {
    pub(crate) name: String,
    pub(crate) reason: String,
}

/// Sends requests with their cause, if requests are audited.
pub(crate) async fn because<F: Future>(cause: Option<Cause>, requests: F) -> F::Output {
    match cause {
        Some(cause) => CAUSE.scope(cause, requests).await,
        None => requests.await,
    }
}

/// Notes what is written into one member.
#[derive(Debug, Clone)]
pub struct Auditor {
    log: Log,
    cluster: ClusterId,
    /// Who writes: the hub.
    user: String,
}

impl Auditor {
    /// For the member of this name; `user` is who writes.
    pub fn new(log: Log, cluster: ClusterId, user: impl Into<String>) -> Self {
        Self { log, cluster, user: user.into() }
    }

    /// What is to be noted of a request; none if it only asks.
    fn event<B>(&self, request: &Request<B>) -> Option<Event> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let object = ObjectRef::of_path(path)?;
        let verb = verb(request.method().as_str(), &object)?;
        let asks = object.resource.ends_with("reviews") || query.contains("dryRun=All");
        if asks {
            return None;
        }
        let uri = request.uri().path_and_query().map_or(path, |uri| uri.as_str());
        let mut event = Event::new(verb, uri, Timestamp::now());
        event.user = UserInfo { username: self.user.clone(), ..UserInfo::default() };
        event.object_ref = Some(object);
        event.annotate(annotation::audit::CLUSTER, self.cluster.as_str());
        Some(event)
    }
}

impl<S> Layer<S> for Auditor {
    type Service = Audited<S>;

    fn layer(&self, inner: S) -> Audited<S> {
        Audited { inner, auditor: self.clone() }
    }
}

/// A member's API with an [`Auditor`] before it.
#[derive(Debug, Clone)]
pub struct Audited<S> {
    inner: S,
    auditor: Auditor,
}

impl<S, B> Service<Request<Body>> for Audited<S>
where
    S: Service<Request<Body>, Response = Response<B>>,
    S::Error: std::fmt::Display,
    S::Future: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Some(event) = self.auditor.event(&request) else { return Box::pin(self.inner.call(request)) };
        let sent = Sent { log: self.auditor.log.clone(), event: Some(event) };
        let answer = self.inner.call(request);
        // kube hands this future to the task that asked, which has the cause.
        Box::pin(async move {
            let answer = answer.await;
            sent.end(match &answer {
                Ok(response) => Outcome::answered(response.status().as_u16()),
                Err(error) => Outcome::unanswered(&error.to_string()),
            });
            answer
        })
    }
}

/// A write under way: also noted if its answer is not awaited any more, because it may have been done.
struct Sent {
    log: Log,
    event: Option<Event>,
}

impl Sent {
    fn end(mut self, outcome: Outcome) {
        self.write(outcome);
    }

    fn write(&mut self, outcome: Outcome) {
        let Some(mut event) = self.event.take() else { return };
        if let Ok(Cause { name, reason }) = CAUSE.try_with(Clone::clone) {
            event.annotate(annotation::audit::REASON, &reason);
            if let Some(object) = &mut event.object_ref
                && object.name.is_empty()
            {
                object.name = name;
            }
        }
        event.response_status = Some(outcome);
        event.stage_timestamp = Timestamp::now();
        self.log.push(event);
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        self.write(Outcome::unanswered("the hub did not wait for the answer"));
    }
}
