//! HTTP/1.1 as the sandbox's programs speak it: one question, one answer.

use crate::network::{DialError, Dialer};
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full, Limited};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The most that is read of an answer.
const LARGEST: usize = 1024 * 1024;
/// After an accept that failed, most likely because there are too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// An answer, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// What it says.
    pub body: Bytes,
    /// Who answered: an endpoint if a Service was asked.
    pub endpoint: SocketAddr,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// The connection failed.
    #[error(transparent)]
    Dial(#[from] DialError),
    /// It is no HTTP, or broke off.
    #[error("no HTTP answer from {endpoint}: {why}")]
    Broken {
        /// Who was asked.
        endpoint: SocketAddr,
        /// What was wrong.
        why: String,
    },
    /// It took too long.
    #[error("no answer from {host}:{port} within {} ms", .patience.as_millis())]
    TimedOut {
        /// Who was asked.
        host: String,
        /// At which port.
        port: u16,
        /// How long was waited.
        patience: Duration,
    },
}

/// Asks once, on a connection of its own.
///
/// # Errors
/// The connection failed, or no answer came in time.
pub async fn get(
    dialer: &Dialer,
    host: &str,
    port: u16,
    path: &str,
    patience: Duration,
) -> Result<Answer, RequestError> {
    let asked = async {
        let reached = dialer.connect_tcp(host, port).await?;
        let endpoint = reached.endpoint;
        let answer = ask(reached.stream, &format!("{host}:{port}"), path, &[]).await;
        let (status, body) = answer.map_err(|why| RequestError::Broken { endpoint, why })?;
        Ok(Answer { status, body, endpoint })
    };
    match tokio::time::timeout(patience, asked).await {
        Ok(answer) => answer,
        Err(_) => Err(RequestError::TimedOut { host: host.to_owned(), port, patience }),
    }
}

/// Sends one GET over a connection and reads the answer.
pub(crate) async fn ask(
    stream: TcpStream,
    host: &str,
    path: &str,
    headers: &[(String, String)],
) -> Result<(u16, Bytes), String> {
    let text = |error: &dyn std::error::Error| error.to_string();
    let handshake = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| text(&error))?;
    let mut request = Request::get(path).header("Host", host).header("Connection", "close");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let request = request.body(Empty::<Bytes>::new()).map_err(|error| text(&error))?;
    let exchange = async {
        let answer = sender.send_request(request).await.map_err(|error| text(&error))?;
        let status = answer.status().as_u16();
        let body = Limited::new(answer.into_body(), LARGEST).collect().await;
        Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
    };
    // The connection is driven here, so that it ends with us.
    let mut exchange = std::pin::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        biased;
        answer = &mut exchange => answer,
        _ = &mut connection => exchange.await,
    }
}

/// What a server answers: a status, the type of its text, the text.
pub(super) type Reply = (u16, &'static str, String);

/// Answers every request by `reply`, which is told the path and the address that the client connected to.
pub(super) async fn serve(
    listener: TcpListener,
    reply: impl Fn(&str, IpAddr) -> Reply + Send + Sync + 'static,
) -> i32 {
    let reply = Arc::new(reply);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(converse(stream, Arc::clone(&reply)));
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            },
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn converse(stream: TcpStream, reply: Arc<impl Fn(&str, IpAddr) -> Reply>) {
    let Ok(own) = stream.local_addr() else { return };
    let _ = stream.set_nodelay(true);
    let answer = |request: Request<Incoming>| {
        let (status, kind, text) = reply(request.uri().path(), own.ip());
        let mut response = Response::new(Full::new(Bytes::from(text)));
        *response.status_mut() = http::StatusCode::from_u16(status).unwrap_or_default();
        response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(kind));
        std::future::ready(Ok::<_, Infallible>(response))
    };
    let service = hyper::service::service_fn(answer);
    // A client that breaks off needs no answer.
    // One that has said all and listens (`nc`) is answered.
    let mut server = hyper::server::conn::http1::Builder::new();
    let _ = server.half_close(true).serve_connection(TokioIo::new(stream), service).await;
}
