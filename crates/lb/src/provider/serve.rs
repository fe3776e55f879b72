//! Serves a provider over gRPC, for a process of its own.

use std::sync::Arc;

use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tonic::{Request, Response, Status as Answer};

use super::wire::{self, Nonsense, v1};
use super::{Failure, Provider, ProviderError, async_trait};
use v1::provider_server::ProviderServer;

/// Serves `provider` on `listener` until it is dropped.
pub async fn serve(listener: TcpListener, provider: Arc<dyn Provider>) {
    let service = ProviderServer::new(Served(provider));
    loop {
        let stream = atoll_monitoring::accept(&listener).await;
        // Small messages, each awaited.
        let _ = stream.set_nodelay(true);
        let service = TowerToHyperService::new(service.clone());
        tokio::spawn(async move {
            let mut http = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            let http = http.timer(TokioTimer::new());
            // Whoever called knows that it broke off.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
        });
    }
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
