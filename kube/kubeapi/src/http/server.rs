//! The API on a socket: TLS always, clients known by certificates or tokens, no client may take more than its share.

mod link;
mod patience;
mod places;
#[cfg(test)]
mod tests;

pub(crate) use link::Link;

use crate::access::authn::User;
use crate::access::pki::Pki;
use crate::api::{Api, Service};
use crate::http::answer::{Body, Upgraded};
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use link::Connections;
use patience::Patience;
use places::Limits;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// How many connections there may be.
const LIMITS: Limits = Limits { all: 4096, unknown: 512, per_user: 1024, grace: Duration::from_secs(1) };
/// How long a client may take to shake hands.
const HANDSHAKE_WITHIN: Duration = Duration::from_secs(10);
/// How long a client may take until a request's head is there, from the last answer on: longer than clients keep a
/// connection that they do not use (90 s), so that they close it and not we while they send.
const HEAD_WITHIN: Duration = Duration::from_secs(120);
/// How long a client that has shown no certificate may take until its first request's head is there.
const FIRST_WITHIN: Duration = Duration::from_secs(15);
/// The most bytes and lines of a request's head.
const MOST_HEAD: (usize, usize) = (32 << 10, 256);

/// Why a server does not start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address is taken, or not ours.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What is wrong with it.
        source: std::io::Error,
    },
    /// The certificates do not fit.
    #[error("cannot use the server's certificate: {0}")]
    Tls(String),
}

/// A socket that is ready to serve.
pub struct Server {
    listener: TcpListener,
    certificates: Certificates,
}

/// What a server shows, and whose certificates it believes. Clones are of the same server.
#[derive(Clone)]
pub struct Certificates(Arc<RwLock<TlsAcceptor>>);

impl std::fmt::Debug for Certificates {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Certificates").finish_non_exhaustive()
    }
}

impl Certificates {
    fn new(pki: &Pki) -> Result<Self, ServeError> {
        Ok(Self(Arc::new(RwLock::new(acceptor(pki)?))))
    }

    /// New connections see these from now on; those that are there go on.
    ///
    /// # Errors
    /// The certificates can't be used; those before stay.
    pub fn replace(&self, pki: &Pki) -> Result<(), ServeError> {
        let acceptor = acceptor(pki)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = acceptor;
        Ok(())
    }

    fn now(&self) -> TlsAcceptor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn acceptor(pki: &Pki) -> Result<TlsAcceptor, ServeError> {
    Ok(TlsAcceptor::from(Arc::new(config(pki).map_err(ServeError::Tls)?)))
}

impl std::fmt::Debug for Server {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Server").field("listener", &self.listener).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Api {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Api").finish_non_exhaustive()
    }
}

impl Server {
    /// Opens a socket with the certificates of `pki`.
    ///
    /// # Errors
    /// The address can't be had, or the certificates can't be used.
    pub async fn bind(address: SocketAddr, pki: &Pki) -> Result<Self, ServeError> {
        let certificates = Certificates::new(pki)?;
        let listener = TcpListener::bind(address).await;
        let listener = listener.map_err(|source| ServeError::Listen { address, source })?;
        Ok(Self { listener, certificates })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system can't tell.
    pub fn address(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// How its certificates are replaced while it runs.
    #[must_use]
    pub fn certificates(&self) -> Certificates {
        self.certificates.clone()
    }

    /// Serves until it is dropped. Connections end with it.
    pub async fn run(self, api: Api) {
        self.run_within(api, LIMITS).await;
    }

    async fn run_within(self, api: Api, limits: Limits) {
        serve(&self.listener, ApiFront { certificates: self.certificates, api }, limits).await;
    }
}

/// What is behind a socket.
pub(crate) trait Front: Clone + Send + Sync + 'static {
    /// Answers the requests of one connection.
    type Service: Answers;
    /// What a connection was taken by.
    type Taken: Send;
    /// How connections are secured now; none are taken without.
    fn tls(&self) -> Option<(TlsAcceptor, Self::Taken)>;
    /// A connection came about. The handshake verified `certificate`.
    fn connected(&self, taken: Self::Taken, certificate: Option<User>, link: Arc<Link>) -> Self::Service;
}

/// Answers requests.
pub(crate) trait Answers: Clone + Send + Sync + 'static {
    /// Answers one.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Response<Body>> + Send;
}

#[derive(Clone)]
struct ApiFront {
    certificates: Certificates,
    api: Api,
}

impl Front for ApiFront {
    type Service = Service;

    type Taken = ();

    fn tls(&self) -> Option<(TlsAcceptor, ())> {
        Some((self.certificates.now(), ()))
    }

    fn connected(&self, (): (), certificate: Option<User>, link: Arc<Link>) -> Service {
        self.api.connection(certificate, link)
    }
}

impl Answers for Service {
    async fn answer(&self, request: Request<Incoming>) -> Response<Body> {
        self.answer(request).await
    }
}

/// Serves until it is dropped, with the usual number of connections.
pub(crate) async fn serve_all(listener: &TcpListener, front: impl Front) {
    serve(listener, front, LIMITS).await;
}

async fn serve(listener: &TcpListener, front: impl Front, limits: Limits) {
    let all = Connections::new(limits);
    let mut connections = JoinSet::new();
    loop {
        // A client that connects when all connections are in use waits in the kernel's queue.
        all.room().await;
        let (stream, from) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let link = all.arrive(from.ip());
        let task = connections.spawn(connection(stream, front.clone(), Arc::clone(&link)));
        all.ended_by(&link, task);
    }
}

async fn connection(stream: TcpStream, front: impl Front, link: Arc<Link>) {
    let _ = stream.set_nodelay(true);
    let Some((tls, taken)) = front.tls() else { return };
    let Ok(Ok(stream)) = tokio::time::timeout(HANDSHAKE_WITHIN, tls.accept(stream)).await else { return };
    let certificates = stream.get_ref().1.peer_certificates();
    let certified =
        match certificates.and_then(|chain| chain.first()).map(|first| User::from_certificate(first)) {
            None => None,
            Some(Ok(user)) => Some(user),
            Some(Err(error)) => {
                tracing::debug!(%error, "a client's certificate names no user");
                None
            }
        };
    let is_certified = certified.is_some();
    let service = front.connected(taken, certified, Arc::clone(&link));
    // A session that takes the connection over runs here, so that it counts as a connection and ends with the server.
    let upgraded: Arc<Mutex<Option<Upgraded>>> = Arc::default();
    let slot = Arc::clone(&upgraded);
    let answer = service_fn(move |request: Request<Incoming>| {
        let (service, slot) = (service.clone(), Arc::clone(&slot));
        async move {
            let mut response = service.answer(request).await;
            if let Some(session) = response.extensions_mut().remove::<Upgraded>() {
                *slot.lock().unwrap_or_else(PoisonError::into_inner) = Some(session);
            }
            Ok::<_, Infallible>(response)
        }
    });
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(MOST_HEAD.0)
        .max_headers(MOST_HEAD.1)
        .serve_connection(TokioIo::new(Patience::new(stream, Arc::clone(&link))), answer)
        .with_upgrades();
    let mut served = std::pin::pin!(served);
    let ended = match tokio::time::timeout(FIRST_WITHIN, served.as_mut()).await {
        Ok(ended) => ended,
        // It never asked for anything.
        Err(_) if !is_certified && !link.was_asked() => return,
        Err(_) => served.await,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended with an error");
        return;
    }
    let session = upgraded.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(session) = session.and_then(|session| session.take()) {
        session.await;
    }
}

fn config(pki: &Pki) -> Result<ServerConfig, String> {
    server_config(pki.authorities()?, false, &pki.server.certificate, &pki.server.key)
}

/// A server with a certificate and its key (PEM), whose clients' certificates are checked against `roots`. Where they are not
/// `required`, a client may show none.
pub(crate) fn server_config(
    roots: impl IntoIterator<Item = CertificateDer<'static>>,
    required: bool,
    certificate: &str,
    key: &str,
) -> Result<ServerConfig, String> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut store = RootCertStore::empty();
    for root in roots {
        store.add(root).map_err(|error| error.to_string())?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(&provider));
    let verifier = if required { verifier } else { verifier.allow_unauthenticated() };
    let verifier = verifier.build().map_err(|error| error.to_string())?;
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| error.to_string())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, key)
        .map_err(|error| error.to_string())?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}
