//! What goes back to the client: a status, a body, warnings.

use crate::flow::lane::Seat;
use crate::http::encode;
use crate::http::negotiate::MediaType;
use crate::http::status_error::StatusError;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{
    CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL,
    UPGRADE, WARNING,
};
use http::{HeaderName, Response, StatusCode};
use http_body::{Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

/// The body of an answer: all at once, or as it comes.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// What goes back to the client.
pub(crate) struct Answer {
    code: StatusCode,
    kind: HeaderValue,
    content: Content,
    headers: Vec<(HeaderName, HeaderValue)>,
    session: Option<Upgraded>,
    refusal: Option<Refusal>,
    held: Option<Seat>,
}

/// What an answer says.
enum Content {
    Whole(Bytes),
    Stream(Body),
}

/// Why a request was refused: in the answer's extensions, for the audit log.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// What goes on over the connection when the answer was sent: in the answer's extensions, for the server to run.
#[derive(Clone)]
pub(crate) struct Upgraded(Arc<Mutex<Option<SessionFuture>>>);

type SessionFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Upgraded {
    fn new(session: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::pin(session)))))
    }

    /// The session, for the first who asks.
    pub(crate) fn take(&self) -> Option<SessionFuture> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const YAML: HeaderValue = HeaderValue::from_static("application/yaml");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// Most letters of all warnings together, and of those that do not fit any more: clients bound what headers they read.
const MOST_WARNED: usize = 4096;
const MOST_WARNED_WHEN_FULL: usize = 256;

impl Answer {
    fn of(code: StatusCode, kind: HeaderValue, bytes: Bytes) -> Self {
        Self {
            code,
            kind,
            content: Content::Whole(bytes),
            headers: Vec::new(),
            session: None,
            refusal: None,
            held: None,
        }
    }

    /// Bytes that are JSON.
    pub(crate) fn json(code: StatusCode, bytes: Bytes) -> Self {
        Self::of(code, JSON, bytes)
    }

    /// A value, in the media type that the client wants.
    pub(crate) fn value(code: StatusCode, value: &Value, media_type: MediaType) -> Self {
        match media_type {
            MediaType::Json => Self::of(code, JSON, encode::write(value)),
            MediaType::Yaml => Self::of(code, YAML, yaml(value)),
        }
    }

    /// Bytes that are JSON, in the media type that the client wants.
    pub(crate) fn bytes(code: StatusCode, bytes: Bytes, media_type: MediaType) -> Self {
        match media_type {
            MediaType::Json => Self::json(code, bytes),
            MediaType::Yaml => Self::of(code, YAML, yaml(&encode::read(&bytes))),
        }
    }

    /// Plain text.
    pub(crate) fn text(code: StatusCode, text: &str) -> Self {
        Self::of(code, TEXT, Bytes::copy_from_slice(text.as_bytes()))
    }

    /// A path that nothing is at.
    pub(crate) fn no_page() -> Self {
        Self::text(StatusCode::NOT_FOUND, "404 page not found\n")
    }

    /// One piece after the other, as they come.
    pub(crate) fn stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        use futures_util::StreamExt;
        let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        Self {
            code: StatusCode::OK,
            kind: JSON,
            content: Content::Stream(StreamBody::new(frames).boxed_unsync()),
            headers: Vec::new(),
            session: None,
            refusal: None,
            held: None,
        }
    }

    /// Text, as it comes.
    pub(crate) fn text_stream(pieces: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::stream(pieces).kind(HeaderValue::from_static("text/plain"))
    }

    /// There is nothing to say.
    pub(crate) fn nothing() -> Self {
        Self::of(StatusCode::NO_CONTENT, TEXT, Bytes::new())
    }

    /// The connection becomes a WebSocket, and `session` goes on over it.
    pub(crate) fn upgrade(
        protocol: &'static str,
        accept: &str,
        session: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        let mut answer = Self::of(StatusCode::SWITCHING_PROTOCOLS, TEXT, Bytes::new());
        answer.headers.extend([
            (CONNECTION, HeaderValue::from_static("Upgrade")),
            (UPGRADE, HeaderValue::from_static("websocket")),
            (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol)),
        ]);
        // Base64 is always a header's value.
        answer
            .headers
            .extend(HeaderValue::from_str(accept).ok().map(|accept| (SEC_WEBSOCKET_ACCEPT, accept)));
        answer.session = Some(Upgraded::new(session));
        answer
    }

    /// An error.
    pub(crate) fn error(error: &StatusError, media_type: MediaType) -> Self {
        Self::refusal(error.code(), &error.status(), media_type)
    }

    /// A `Status` that says what is wrong.
    pub(crate) fn refusal(code: StatusCode, status: &Value, media_type: MediaType) -> Self {
        let mut answer = Self::value(code, status, media_type);
        let text = |name: &str| status[name].as_str().unwrap_or_default().to_owned();
        answer.refusal = Some(Refusal { reason: text("reason"), message: text("message") });
        if let Some(seconds) = status["details"]["retryAfterSeconds"].as_u64()
            && let Ok(value) = HeaderValue::from_str(&seconds.to_string())
        {
            answer.headers.push((http::header::RETRY_AFTER, value));
        }
        answer
    }

    /// Says something to the user beside the answer.
    pub(crate) fn warn(mut self, warnings: &[String]) -> Self {
        let mut room = MOST_WARNED;
        for text in warnings {
            if room == 0 {
                break;
            }
            let long = if text.len() > room { MOST_WARNED_WHEN_FULL } else { text.len() };
            let plain = text.chars().filter(|letter| !letter.is_control());
            let plain: String = plain.take(long).collect();
            room = room.saturating_sub(text.len());
            let quoted = plain.replace('\\', "\\\\").replace('"', "\\\"");
            if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
                self.headers.push((WARNING, value));
            }
        }
        self
    }

    /// Keeps a seat until the answer is sent, or what follows it is over.
    pub(crate) fn hold(mut self, seat: Option<Seat>) -> Self {
        self.held = seat;
        self
    }

    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.push((name, value));
        self
    }

    pub(crate) fn kind(mut self, kind: HeaderValue) -> Self {
        self.kind = kind;
        self
    }

    pub(crate) fn into_response(self) -> Response<Body> {
        let mut held = self.held;
        let session = self.session.map(|session| match (session.take(), held.take()) {
            (Some(inner), Some(seat)) => Upgraded::new(async move {
                inner.await;
                drop(seat);
            }),
            (Some(inner), None) => Upgraded::new(inner),
            (None, _) => session,
        });
        let body = match (self.content, held) {
            (Content::Whole(bytes), None) => Full::new(bytes).boxed_unsync(),
            (Content::Whole(bytes), Some(seat)) => Pieces { bytes, _seat: seat }.boxed_unsync(),
            (Content::Stream(stream), None) => stream,
            (Content::Stream(stream), Some(seat)) => Held { stream, _seat: seat }.boxed_unsync(),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        if let Some(session) = session {
            response.extensions_mut().insert(session);
        }
        if let Some(refusal) = self.refusal {
            response.extensions_mut().insert(refusal);
        }
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, self.kind);
        for (name, value) in self.headers {
            headers.append(name, value);
        }
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        response
    }
}

/// A large answer in pieces, so that it is gone, and its seat free, only when nearly all of it was sent.
struct Pieces {
    bytes: Bytes,
    _seat: Seat,
}

impl http_body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        const PIECE: usize = 64 << 10;
        if self.bytes.is_empty() {
            return Poll::Ready(None);
        }
        let length = self.bytes.len().min(PIECE);
        Poll::Ready(Some(Ok(Frame::data(self.bytes.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}

/// A stream and its seat.
struct Held {
    stream: Body,
    _seat: Seat,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.stream).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.stream.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.stream.size_hint()
    }
}

fn yaml(value: &Value) -> Bytes {
    serde_saphyr::to_string(value).unwrap_or_default().into()
}
