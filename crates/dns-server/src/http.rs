//! Three pages over plain HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::error::ServerError;
use crate::live::Live;
use crate::metrics::Metrics;

/// Listens; nowhere if there is no address.
pub(crate) async fn listen(address: Option<SocketAddr>) -> Result<Option<TcpListener>, ServerError> {
    let Some(address) = address else { return Ok(None) };
    let bound = TcpListener::bind(address).await;
    bound.map(Some).map_err(|source| ServerError::Listen { address, protocol: "TCP", source })
}

/// Serves the pages until it is dropped.
pub(crate) async fn serve(listener: Option<TcpListener>, live: &Arc<Live>, metrics: &Arc<Metrics>) {
    let Some(listener) = listener else { return std::future::pending().await };
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        let (live, metrics) = (Arc::clone(live), Arc::clone(metrics));
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let (status, text) = page(&live, &metrics, request.method(), request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
                async { Ok::<_, Infallible>(response) }
            });
            let io = TokioIo::new(stream);
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(io, answer).await;
        });
    }
}

fn page(live: &Arc<Live>, metrics: &Arc<Metrics>, method: &Method, path: &str) -> (StatusCode, String) {
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match path {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        // Ready stays ready: without its API the cluster needs its names all the more.
        "/readyz" if live.snapshot().complete() => {
            let age = live.age();
            let text = if age.is_zero() {
                "ok\n".to_owned()
            } else {
                format!(
                    "ok: the API has been silent for {} s, answers go on from what was known\n",
                    age.as_secs()
                )
            };
            (StatusCode::OK, text)
        }
        "/readyz" => (StatusCode::SERVICE_UNAVAILABLE, "listing what there is\n".to_owned()),
        "/metrics" => (StatusCode::OK, metrics.page(live)),
        _ => (StatusCode::NOT_FOUND, "try /healthz, /readyz or /metrics\n".to_owned()),
    }
}
