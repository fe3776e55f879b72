//! An extension API server: serves [`aggregated`] groups behind another API server, as that one's
//! `APIService` says.
//!
//! ```text
//!   user ──▶ kube-apiserver: who, may they ──TLS, its certificate, X-Remote-*──▶ here: is it kube-apiserver, may they ──▶ Handler
//!            └──────────────── the handshake needs a certificate of the request header CA ────────────────┘
//! ```
//!
//! Nothing is believed of a client that shows no certificate of the request header CA with an allowed name: without the one there is
//! no handshake, without the other each answer is a 401. Whether the user may is asked again ([`Reviewer`]), because others than
//! kube-apiserver can have such a certificate. Connections, bodies and users have the limits of all servers of this crate.

mod request_header;

pub use request_header::{BadTrust, Trust};

use crate::access::authn::User;
use crate::access::pki::Pki;
use crate::access::rbac::{self, Attributes, Target};
use crate::aggregated::{self, Group};
use crate::api::service::{busy, read};
use crate::flow::Flow;
use crate::flow::weigh;
use crate::http::answer::{Answer, Body};
use crate::http::negotiate::{self, MediaType};
use crate::http::request::RequestInfo;
use crate::http::server::{Answers, Front, Link, ServeError, serve_all, server_config};
use crate::http::status_error::{StatusError, Subject};
use crate::resources::registry::Registry;
use crate::resources::{discovery, openapi};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, Request, Response, StatusCode, header};
use hyper::body::Incoming;
use jiff::Timestamp;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// The most bytes of a body.
const MOST_BYTES: usize = crate::api::service::MOST_BYTES;

/// What a user wants to do, in the words of a `SubjectAccessReview`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Review {
    /// `get`, `list`, `create`, …; for a path, the HTTP method in lower case.
    pub verb: String,
    /// To what.
    pub target: ReviewTarget,
}

/// To what a user wants to do it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ReviewTarget {
    /// An object, or a collection of them.
    Resource {
        /// The group.
        group: String,
        /// The version.
        version: String,
        /// The resource, in the plural.
        resource: String,
        /// The subresource, empty for the object itself.
        subresource: String,
        /// The namespace, empty for all or none.
        namespace: String,
        /// The name, empty for a collection.
        name: String,
    },
    /// A path that is no resource's.
    Path(String),
}

/// What came of a review.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They may.
    Allowed,
    /// They may not, and why if that is known.
    Denied(String),
    /// It can't be known now.
    Unknown(String),
}

/// A verdict on its way.
pub type Reviewing<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// Who knows what users may.
pub trait Reviewer: Send + Sync {
    /// May this user do that?
    fn review<'a>(&'a self, user: &'a User, review: Review) -> Reviewing<'a>;
}

/// A socket that is ready to serve.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    front: Extension,
}

/// Whose certificates count, for whoever learns it.
#[derive(Clone, Debug)]
pub struct Trusting(Extension);

#[derive(Clone)]
struct Extension(Arc<Shared>);

struct Shared {
    registry: Registry,
    reviewer: Arc<dyn Reviewer>,
    flow: Flow,
    certificate: String,
    key: String,
    /// Whom to believe, and how their connections are secured; no client at first.
    trusted: RwLock<Option<Trusted>>,
}

#[derive(Clone)]
struct Trusted {
    trust: Arc<Trust>,
    tls: TlsAcceptor,
}

impl std::fmt::Debug for Extension {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Extension").finish_non_exhaustive()
    }
}

impl Server {
    /// Opens a socket with the server's certificate of `pki`. No client is let in before [`Trusting::trust`].
    ///
    /// # Errors
    /// The address can't be had.
    pub async fn bind(
        address: SocketAddr,
        pki: &Pki,
        groups: &[Group],
        reviewer: Arc<dyn Reviewer>,
    ) -> Result<Self, ServeError> {
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| ServeError::Listen { address, source })?;
        let mut registry = Registry::default();
        groups.iter().for_each(|group| registry.aggregate(group));
        let shared = Shared {
            registry,
            reviewer,
            flow: Flow::default(),
            certificate: pki.server.certificate.clone(),
            key: pki.server.key.clone(),
            trusted: RwLock::new(None),
        };
        Ok(Self { listener, front: Extension(Arc::new(shared)) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system can't tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Where it is told whom to believe.
    pub fn trusting(&self) -> Trusting {
        Trusting(self.front.clone())
    }

    /// Serves until it is dropped. Connections end with it.
    pub async fn run(self) {
        serve_all(&self.listener, self.front).await;
    }
}

impl Trusting {
    /// From now on these are believed, and no others: connections of before get nothing but 401. None: no client is.
    ///
    /// # Errors
    /// There is no certificate in it that can be used.
    pub fn trust(&self, trust: Option<Trust>) -> Result<(), BadTrust> {
        let shared = &self.0.0;
        let known = shared.trusted();
        if known.as_ref().map(|known| known.trust.as_ref()) == trust.as_ref() {
            return Ok(());
        }
        let trusted = trust.map(|trust| {
            let config = server_config(trust.roots()?, true, &shared.certificate, &shared.key);
            let config = config.map_err(BadTrust)?;
            Ok(Trusted { trust: Arc::new(trust), tls: TlsAcceptor::from(Arc::new(config)) })
        });
        // What can't be used is no reason to go on with what was used before.
        let (trusted, done) = match trusted {
            Some(Ok(trusted)) => (Some(trusted), Ok(())),
            Some(Err(error)) => (None, Err(error)),
            None => (None, Ok(())),
        };
        *shared.trusted.write().unwrap_or_else(PoisonError::into_inner) = trusted;
        done
    }
}

impl Shared {
    fn trusted(&self) -> Option<Trusted> {
        self.trusted.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Front for Extension {
    type Service = Connected;
    type Taken = Arc<Trust>;

    fn tls(&self) -> Option<(TlsAcceptor, Arc<Trust>)> {
        self.0.trusted().map(|trusted| (trusted.tls, trusted.trust))
    }

    fn connected(&self, trust: Arc<Trust>, certificate: Option<User>, link: Arc<Link>) -> Connected {
        let certified = certificate.is_some_and(|user| trust.allows(&user.name));
        Connected { shared: Arc::clone(&self.0), trust, certified, link }
    }
}

/// One connection.
#[derive(Clone)]
pub(crate) struct Connected {
    shared: Arc<Shared>,
    /// What its certificate was checked against.
    trust: Arc<Trust>,
    /// Whether its certificate has an allowed name.
    certified: bool,
    link: Arc<Link>,
}

impl Answers for Connected {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let media_type =
            negotiate::output(&parts.headers).map_or(MediaType::Json, |output| output.media_type);
        self.link.asked();
        let Some(user) = self.user(&parts) else {
            let refused = Answer::error(&StatusError::unauthorized(), media_type);
            return refused.header(header::CONNECTION, HeaderValue::from_static("close")).into_response();
        };
        // All users come by the same few connections: kube-apiserver's.
        let _ = self.link.belongs_to(None);
        let answer = self.try_answer(&parts, body, user).await;
        answer.unwrap_or_else(|error| Answer::error(&error, media_type)).into_response()
    }
}

impl Connected {
    /// For whom the request is, if whoever sends it is to be believed.
    fn user(&self, parts: &Parts) -> Option<User> {
        let current = self.shared.trusted()?;
        let believed = self.certified && Arc::ptr_eq(&current.trust, &self.trust);
        believed.then(|| self.trust.user(&parts.headers)).flatten()
    }

    async fn try_answer(&self, parts: &Parts, body: Incoming, user: User) -> Result<Answer, StatusError> {
        let shared = &self.shared;
        let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
        let info = RequestInfo::parse(&parts.method, path, query)
            .ok_or_else(|| StatusError::bad_request("the path is not valid UTF-8"))?;
        let payer = (!user.is_master()).then(|| user.payer());
        let payer = payer.as_deref();
        let seat = shared.flow.light(payer).await.map_err(busy)?;
        self.authorize(&user, &info).await?;
        let Some(target) = &info.target else { return Ok(page(&shared.registry, parts, &info)) };
        let found = shared.registry.find(&target.group, &target.version, &target.resource);
        let Some((resource, answerer)) = found.and_then(|one| Some((one, one.aggregated.as_ref()?))) else {
            return Err(StatusError::unknown_resource());
        };
        let most = weigh::most_bytes(&info, MOST_BYTES);
        let (body, room) = match most {
            0 => (Bytes::new(), None),
            most => {
                let room = shared.flow.memory(payer).await.map_err(busy)?;
                (read(body, most).await?, room)
            }
        };
        let now = Timestamp::now();
        if !weigh::is_heavy_body(&body) {
            let request = (parts, body);
            return aggregated::answer::carry_out(answerer, resource, request, &user, (&info, target), now)
                .await;
        }
        drop(seat);
        let seat = shared.flow.heavy(payer).await.map_err(busy)?;
        let (parts, resource, answerer) = (parts.clone(), Arc::clone(resource), answerer.clone());
        let (target, info) = (target.clone(), info.clone());
        let runtime = tokio::runtime::Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            let _held = (seat, room);
            if weigh::is_too_much(&body) {
                return Err(StatusError::too_large("it has too many fields and elements"));
            }
            let request = (&parts, body);
            let work =
                aggregated::answer::carry_out(&answerer, &resource, request, &user, (&info, &target), now);
            runtime.block_on(work)
        });
        work.await.map_err(|error| StatusError::internal(&error.to_string()))?
    }

    async fn authorize(&self, user: &User, info: &RequestInfo) -> Result<(), StatusError> {
        if user.is_master() {
            return Ok(());
        }
        let target = match &info.target {
            None => ReviewTarget::Path(info.path.clone()),
            Some(target) => ReviewTarget::Resource {
                group: target.group.clone(),
                version: target.version.clone(),
                resource: target.resource.clone(),
                subresource: target.subresource.clone(),
                namespace: target.namespace.clone(),
                name: info.named.clone(),
            },
        };
        let review = Review { verb: info.verb.to_owned(), target };
        match self.shared.reviewer.review(user, review).await {
            Verdict::Allowed => Ok(()),
            Verdict::Denied(reason) => Err(denied(user, info, &reason)),
            Verdict::Unknown(why) => {
                Err(StatusError::unavailable(format!("cannot check whether this is allowed: {why}")))
            }
        }
    }
}

fn denied(user: &User, info: &RequestInfo, reason: &str) -> StatusError {
    let (target, subject, name) = match &info.target {
        None => (Target::Path(&info.path), Subject { group: "", name: "" }, ""),
        Some(target) => {
            let asked = Target::Resource {
                group: &target.group,
                resource: &target.resource,
                subresource: &target.subresource,
                namespace: &target.namespace,
                name: &info.named,
            };
            (asked, Subject { group: &target.group, name: &target.resource }, info.named.as_str())
        }
    };
    let why = rbac::denial(&Attributes { user, verb: info.verb, target }, reason);
    StatusError::forbidden(subject, name, &why)
}

/// Paths that are no resources.
fn page(registry: &Registry, parts: &Parts, info: &RequestInfo) -> Answer {
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return Answer::error(&StatusError::method_not_allowed(), MediaType::Json);
    }
    match info.path.trim_end_matches('/') {
        "/healthz" | "/livez" | "/readyz" => Answer::text(StatusCode::OK, "ok"),
        path if path.starts_with("/openapi") => openapi::page(registry, path, parts),
        path => discovery::page(registry, path, parts).unwrap_or_else(Answer::no_page),
    }
}
