//! What a process says of itself over plain HTTP: `/healthz`, `/readyz`, `/metrics`.
//!
//! ```text
//!   GET /readyz ─▶ serve ─▶ answer ─▶ Pages::ready, Pages::metrics ─▶ a line of text
//! ```

pub mod door;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

/// So many connections read pages at once, and so many of one address; for one too many the oldest is closed.
const MOST: usize = 128;
const MOST_OF_ONE: usize = 16;
/// How long a client may take to ask, from the last answer on.
const ASKED_WITHIN: Duration = Duration::from_secs(30);

/// What there is to say.
pub trait Pages: Send + Sync + 'static {
    /// Whether it can be used, and a line about that: what it does, or what it waits for.
    fn ready(&self) -> Result<String, String>;
    /// Everything that is counted, as Prometheus reads it.
    fn metrics(&self) -> String;
}

/// The next connection. A failure, such as too many open files, is logged and waited out.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves the pages until it is dropped. Whoever only holds connections open keeps no other client from them.
pub async fn serve(listener: TcpListener, pages: Arc<impl Pages>) {
    let door = door::Door::new(MOST, MOST_OF_ONE);
    let one = |stream| {
        let pages = Arc::clone(&pages);
        async move {
            let respond = service_fn(|request: Request<Incoming>| {
                let (status, text) = answer(&*pages, request.method(), request.uri().path());
                let mut response = Response::new(Full::new(Bytes::from(text)));
                *response.status_mut() = status;
                let kind = http::HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
                response.headers_mut().insert(http::header::CONTENT_TYPE, kind);
                async { Ok::<_, Infallible>(response) }
            });
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(ASKED_WITHIN);
            let _ = http.serve_connection(TokioIo::new(stream), respond).await;
        }
    };
    door::attend(&listener, &door, one).await;
}

fn answer(pages: &impl Pages, method: &Method, path: &str) -> (StatusCode, String) {
    if method != Method::GET && method != Method::HEAD {
        return (StatusCode::METHOD_NOT_ALLOWED, "only GET\n".to_owned());
    }
    match path {
        "/healthz" => (StatusCode::OK, "ok\n".to_owned()),
        "/readyz" => match pages.ready() {
            Ok(how) => (StatusCode::OK, format!("{how}\n")),
            Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        },
        "/metrics" => (StatusCode::OK, pages.metrics()),
        _ => (StatusCode::NOT_FOUND, "try /healthz, /readyz or /metrics\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Process(Result<&'static str, &'static str>);

    impl Pages for Process {
        fn ready(&self) -> Result<String, String> {
            self.0.map(str::to_owned).map_err(str::to_owned)
        }

        fn metrics(&self) -> String {
            "up 1\n".to_owned()
        }
    }

    #[test]
    fn there_are_three_pages_to_read() {
        let (ready, waiting) = (Process(Ok("ok: leading")), Process(Err("starting")));
        for (process, method, path, code, text) in [
            (&ready, Method::GET, "/readyz", 200, "ok: leading\n"),
            (&waiting, Method::GET, "/readyz", 503, "starting\n"),
            (&waiting, Method::GET, "/healthz", 200, "ok\n"),
            (&waiting, Method::HEAD, "/metrics", 200, "up 1\n"),
            (&ready, Method::POST, "/healthz", 405, "only GET\n"),
            (&ready, Method::GET, "/", 404, "try /healthz, /readyz or /metrics\n"),
        ] {
            let (status, said) = answer(process, &method, path);
            assert_eq!((status.as_u16(), said.as_str()), (code, text), "{method} {path}");
        }
    }
}
