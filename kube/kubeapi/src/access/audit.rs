//! Each request leaves a line in the audit log: what is noted on its way, and what it comes to.
//!
//! ```text
//!   begin ──▶ authenticated ──▶ impersonated ──▶ decided ──▶ named ──▶ end: one event
//! ```
//!
//! Without a log nothing is noted: every function here is a look into the request's extensions, which have no [`Trail`].

use crate::access::authn::User;
use crate::access::rbac::Decision;
use crate::api::Caller;
use crate::flow::weigh::Traffic;
use crate::http::answer::{Body, Refusal};
use crate::http::request::{RequestInfo, Target};
use atoll_audit::{Event, Log, ObjectRef, Outcome, Stage, UserInfo};
use http::header::USER_AGENT;
use http::request::Parts;
use http::{Extensions, HeaderValue, Method, Response, StatusCode, Uri};
use jiff::Timestamp;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

const DECISION: &str = "authorization.k8s.io/decision";
const REASON: &str = "authorization.k8s.io/reason";

/// What a request was found to be, while it is under way.
#[derive(Clone, Default)]
struct Trail(Arc<Mutex<Noted>>);

#[derive(Default)]
struct Noted {
    user: UserInfo,
    impersonated: Option<UserInfo>,
    decision: Option<(&'static str, String)>,
    /// The name of what was created.
    name: String,
}

/// A request that will be in the log: also one whose client does not wait for the answer, and of which it is not known what was done.
pub(crate) struct Record {
    log: Log,
    trail: Trail,
    received: Timestamp,
    method: Method,
    uri: Uri,
    agent: Option<HeaderValue>,
    peer: Option<IpAddr>,
    /// It comes from the process itself.
    own: bool,
    ended: bool,
}

impl Record {
    /// A request begins.
    pub(crate) fn begin(log: &Log, parts: &mut Parts, who: &Caller, peer: Option<IpAddr>) -> Self {
        let trail = Trail::default();
        parts.extensions.insert(trail.clone());
        Self {
            log: log.clone(),
            trail,
            received: Timestamp::now(),
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            agent: parts.headers.get(USER_AGENT).cloned(),
            peer,
            own: matches!(who, Caller::Trusted(_)),
            ended: false,
        }
    }

    /// It is answered.
    pub(crate) fn end(mut self, response: &Response<Body>) {
        self.ended = true;
        self.write(Some(response));
    }

    fn write(&self, response: Option<&Response<Body>>) {
        let path = self.uri.path();
        let info = RequestInfo::parse(&self.method, path, self.uri.query().unwrap_or_default());
        let Noted { user, impersonated, decision, name } =
            std::mem::take(&mut *self.trail.0.lock().unwrap_or_else(PoisonError::into_inner));
        // Whoever tries a token or a right to impersonate does so where it is seen.
        let tried =
            impersonated.is_some() || response.is_some_and(|response| !response.status().is_success());
        if info.as_ref().is_some_and(|info| is_left_out(info, self.own, tried)) {
            return;
        }
        let uri = self.uri.path_and_query().map_or(path, |uri| uri.as_str());
        let agent = self.agent.as_ref().map_or(&[][..], HeaderValue::as_bytes);
        let verb = info.as_ref().map_or("", |info| info.verb);
        let mut event = Event::new(verb, uri, self.received).from(self.peer, &String::from_utf8_lossy(agent));
        (event.user, event.impersonated_user) = (user, impersonated);
        event.object_ref =
            info.as_ref().and_then(|info| info.target.as_ref()).map(|target| object(target, name));
        let secret = event.object_ref.as_ref().is_some_and(|of| of.resource == "secrets");
        event.response_status = Some(match response {
            Some(response) => outcome(response, secret),
            None => Outcome::unanswered("the client did not wait for the answer"),
        });
        if response.is_some_and(|response| is_open_ended(info.as_ref(), response.status())) {
            event.stage = Stage::ResponseStarted;
        }
        event.stage_timestamp = Timestamp::now();
        if let Some((decision, reason)) = decision {
            event.annotate(DECISION, decision);
            event.annotate(REASON, &reason);
        }
        self.log.push(event);
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if !self.ended {
            self.write(None);
        }
    }
}

fn outcome(response: &Response<Body>, secret: bool) -> Outcome {
    let outcome = Outcome::answered(response.status().as_u16());
    match response.extensions().get() {
        // What is wrong with a Secret may quote it.
        Some(Refusal { reason, message }) => outcome.because(reason, if secret { "" } else { message }),
        None => outcome,
    }
}

/// What would only fill the log: pages that say that the server lives, and what the process itself reads and renews.
fn is_left_out(info: &RequestInfo, own: bool, tried: bool) -> bool {
    let Some(target) = &info.target else {
        return Traffic::of(info) == Traffic::Health && !tried;
    };
    own && (matches!(info.verb, "get" | "list" | "watch") || target.resource == "leases")
}

/// Does the answer go on after its head?
fn is_open_ended(info: Option<&RequestInfo>, code: StatusCode) -> bool {
    let follows = |info: &RequestInfo| {
        let follow = info.query.flag("follow") == Some(true);
        info.verb == "watch" || info.target.as_ref().is_some_and(|of| of.subresource == "log" && follow)
    };
    code == StatusCode::SWITCHING_PROTOCOLS || (code.is_success() && info.is_some_and(follows))
}

fn object(target: &Target, name: String) -> ObjectRef {
    ObjectRef {
        resource: target.resource.clone(),
        namespace: target.namespace.clone(),
        name: if target.name.is_empty() { name } else { target.name.clone() },
        api_group: target.group.clone(),
        api_version: target.version.clone(),
        subresource: target.subresource.clone(),
    }
}

fn note(extensions: &Extensions, note: impl FnOnce(&mut Noted)) {
    if let Some(Trail(noted)) = extensions.get() {
        note(&mut noted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// It is known who asks.
pub(crate) fn authenticated(parts: &Parts, user: &User) {
    note(&parts.extensions, |noted| noted.user = info(user));
}

/// They ask in another's name. Noted before it is known whether they may.
pub(crate) fn impersonated(parts: &Parts, user: &User) {
    note(&parts.extensions, |noted| noted.impersonated = Some(info(user)));
}

/// It is known whether they may.
pub(crate) fn decided(parts: &Parts, decision: &Decision) {
    note(&parts.extensions, |noted| {
        noted.decision = Some(match decision {
            Decision::Allow { reason } => ("allow", reason.clone()),
            Decision::NoOpinion { reason } => ("forbid", reason.clone()),
        });
    });
}

/// It is known what the new object is called.
pub(crate) fn named(parts: &Parts, name: &str) {
    note(&parts.extensions, |noted| name.clone_into(&mut noted.name));
}

fn info(user: &User) -> UserInfo {
    let User { name, uid, groups, extra } = user.clone();
    UserInfo { username: name, uid, groups, extra }
}
