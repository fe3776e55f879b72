//! Three pages over plain HTTP: `/healthz`, `/readyz`, `/metrics`.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// How far the hub has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    Starting,
    /// The lease can be neither read nor taken: nobody knows who leads.
    Blind,
    /// Somebody else leads: ready to take over.
    Standby,
    /// Leading, but who is a member has not been listed.
    Leading,
    Ready,
    Stopping,
}

/// What the pages show.
#[derive(Default)]
pub(crate) struct Pages {
    pub(crate) metrics: Metrics,
    stage: AtomicU8,
}

impl Pages {
    pub(crate) fn enter(&self, stage: Stage) {
        self.metrics.leads(matches!(stage, Stage::Leading | Stage::Ready));
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    fn stage(&self) -> Stage {
        let stages =
            [Stage::Starting, Stage::Blind, Stage::Standby, Stage::Leading, Stage::Ready, Stage::Stopping];
        stages[usize::from(self.stage.load(Ordering::Relaxed))]
    }

    fn answer(&self, method: &Method, path: &str) -> (StatusCode, String) {
        if method != Method::GET && method != Method::HEAD {
            return (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
        }
        match path {
            "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
            "/readyz" => match self.stage() {
                Stage::Ready => (StatusCode::OK, "ok: leading\n".to_owned()),
                Stage::Standby => (StatusCode::OK, "ok: standby\n".to_owned()),
                Stage::Starting => (StatusCode::SERVICE_UNAVAILABLE, "starting\n".to_owned()),
                Stage::Blind => {
                    (StatusCode::SERVICE_UNAVAILABLE, "the lease can't be read or taken\n".to_owned())
                }
                Stage::Leading => (StatusCode::SERVICE_UNAVAILABLE, "listing the members\n".to_owned()),
                Stage::Stopping => (StatusCode::SERVICE_UNAVAILABLE, "stopping\n".to_owned()),
            },
            "/metrics" => (StatusCode::OK, self.metrics.page()),
            _ => (StatusCode::NOT_FOUND, "try /healthz, /readyz or /metrics\n".to_owned()),
        }
    }
}

/// Serves the pages until it is dropped.
pub(crate) async fn serve(listener: TcpListener, pages: Arc<Pages>) {
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                continue;
            }
        };
        let pages = Arc::clone(&pages);
        tokio::spawn(async move {
            let answer = service_fn(|request: Request<Incoming>| {
                let (status, text) = pages.answer(request.method(), request.uri().path());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_is_ready_when_it_leads_with_all_members_listed_or_stands_by() {
        let pages = Pages::default();
        for (stage, want) in [
            (Stage::Starting, 503),
            (Stage::Blind, 503),
            (Stage::Standby, 200),
            (Stage::Leading, 503),
            (Stage::Ready, 200),
            (Stage::Stopping, 503),
        ] {
            pages.enter(stage);
            assert_eq!(pages.answer(&Method::GET, "/readyz").0.as_u16(), want, "{stage:?}");
            assert_eq!(pages.answer(&Method::GET, "/healthz").0.as_u16(), 200);
        }
        assert_eq!(pages.answer(&Method::POST, "/healthz").0.as_u16(), 405);
        assert_eq!(pages.answer(&Method::GET, "/").0.as_u16(), 404);
    }

    #[test]
    fn times_are_counted_in_milliseconds_from_one_up() {
        let pages = Pages::default();
        let cluster = |name| atoll_engine::names::ClusterId::parse(name).unwrap();
        pages.metrics.propagated(&crate::brain::Propagation {
            source: cluster("paris"),
            target: cluster("tokyo"),
            took: std::time::Duration::from_micros(1500),
        });
        let page = pages.answer(&Method::GET, "/metrics").1;
        for (bound, count) in [("1.0", 0), ("2.0", 1)] {
            let labels = format!(r#"le="{bound}",source="paris",target="tokyo""#);
            let line = format!("atoll_propagation_milliseconds_bucket{{{labels}}} {count}");
            assert!(page.contains(&line), "{line} in {page}");
        }
    }
}
