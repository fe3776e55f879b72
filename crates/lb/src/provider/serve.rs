//! Serves a provider over gRPC, for a process of its own.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, UnixListener};
use tokio_rustls::TlsAcceptor;
use tonic::{Request, Response, Status as Answer};

use super::connect::Stream;
use super::tls::{TlsError, TlsFiles};
use super::wire::{self, Nonsense, v1};
use super::{Failure, Provider, ProviderError, async_trait};
use v1::provider_server::ProviderServer;

/// How long a caller may take to prove itself.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// A spec of ten thousand backends needs one or two megabytes.
const LONGEST_QUESTION: usize = 16 * 1024 * 1024;
/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens at a socket that its owner and its group can call. One that a former process left there is replaced.
pub fn listen_unix(path: &Path) -> io::Result<UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o660))?;
    Ok(listener)
}

/// Serves `provider` at a Unix socket until it is dropped. Whoever may write to the socket is believed.
pub async fn serve_unix(listener: UnixListener, provider: Arc<dyn Provider>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => drop(tokio::spawn(converse(stream, Arc::clone(&provider)))),
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Serves `provider` over TLS until it is dropped, to callers with a certificate of the authority in `files`.
pub async fn serve_tls(
    listener: TcpListener,
    files: TlsFiles,
    provider: Arc<dyn Provider>,
) -> Result<(), TlsError> {
    files.server()?; // what is wrong from the start is said at the start
    loop {
        let stream = atoll_monitoring::accept(&listener).await;
        // Small messages, each awaited.
        let _ = stream.set_nodelay(true);
        let (files, provider) = (files.clone(), Arc::clone(&provider));
        tokio::spawn(async move {
            let config = match files.server() {
                Ok(config) => config,
                Err(error) => return tracing::error!(%error, "cannot speak TLS"),
            };
            let shaken = TlsAcceptor::from(Arc::new(config)).accept(stream);
            match tokio::time::timeout(HANDSHAKE, shaken).await {
                Ok(Ok(stream)) => converse(stream, provider).await,
                Ok(Err(error)) => tracing::warn!(%error, "a caller did not prove itself"),
                Err(_) => tracing::warn!("a caller took too long to prove itself"),
            }
        });
    }
}

/// Serves `provider` in plain text until it is dropped: for trials, on the loopback.
pub async fn serve(listener: TcpListener, provider: Arc<dyn Provider>) {
    loop {
        let stream = atoll_monitoring::accept(&listener).await;
        // Small messages, each awaited.
        let _ = stream.set_nodelay(true);
        tokio::spawn(converse(stream, Arc::clone(&provider)));
    }
}

async fn converse(stream: impl Stream + 'static, provider: Arc<dyn Provider>) {
    let service = ProviderServer::new(Served(provider)).max_decoding_message_size(LONGEST_QUESTION);
    let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
    let http = http.timer(TokioTimer::new());
    // Whoever called knows that it broke off.
    let _ = http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}

struct Served(Arc<dyn Provider>);

impl From<ProviderError> for Answer {
    fn from(error: ProviderError) -> Self {
        match error.kind {
            Failure::Lasting | Failure::Withdrawn => Self::failed_precondition(error.text),
            Failure::Passing => Self::aborted(error.text),
            Failure::NoAnswer => Self::deadline_exceeded(error.text),
            Failure::Unreachable => Self::unavailable(error.text),
            Failure::Nonsense => Self::internal(error.text),
        }
    }
}

fn bad(nonsense: &Nonsense) -> Answer {
    Answer::invalid_argument(nonsense.to_string())
}

#[async_trait]
impl v1::provider_server::Provider for Served {
    async fn get(&self, request: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Answer> {
        let key = wire::key_in(request.into_inner().key).map_err(|nonsense| bad(&nonsense))?;
        let status = self.0.get(&key).await?;
        Ok(Response::new(v1::GetResponse { status: status.as_ref().map(wire::status_out) }))
    }

    async fn ensure(
        &self,
        request: Request<v1::EnsureRequest>,
    ) -> Result<Response<v1::EnsureResponse>, Answer> {
        let request = request.into_inner();
        let key = wire::key_in(request.key).map_err(|nonsense| bad(&nonsense))?;
        let spec = wire::spec_in(request.spec).map_err(|nonsense| bad(&nonsense))?;
        let status = self.0.ensure(&key, &spec).await?;
        Ok(Response::new(v1::EnsureResponse { status: Some(wire::status_out(&status)) }))
    }

    async fn update(
        &self,
        request: Request<v1::UpdateRequest>,
    ) -> Result<Response<v1::UpdateResponse>, Answer> {
        let request = request.into_inner();
        let key = wire::key_in(request.key).map_err(|nonsense| bad(&nonsense))?;
        let spec = wire::spec_in(request.spec).map_err(|nonsense| bad(&nonsense))?;
        let status = self.0.update(&key, &spec).await?;
        Ok(Response::new(v1::UpdateResponse { status: Some(wire::status_out(&status)) }))
    }

    async fn ensure_deleted(
        &self,
        request: Request<v1::EnsureDeletedRequest>,
    ) -> Result<Response<v1::EnsureDeletedResponse>, Answer> {
        let key = wire::key_in(request.into_inner().key).map_err(|nonsense| bad(&nonsense))?;
        self.0.ensure_deleted(&key).await?;
        Ok(Response::new(v1::EnsureDeletedResponse {}))
    }
}
