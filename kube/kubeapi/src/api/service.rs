//! The API as a `tower::Service`: the same for a socket and for a client in the same process.

use super::Api;
use crate::access::audit::Record;
use crate::access::authn::User;
use crate::http::answer::{Answer, Body};
use crate::http::negotiate::MediaType;
use crate::http::status_error::StatusError;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{Request, Response};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

/// The most bytes that a request's body may have.
pub(crate) const MOST_BYTES: usize = 3 * 1024 * 1024;
/// How much of a body that is too long is read and dropped, so that the sender gets the error: a connection that is
/// closed while they send is all that they would see.
const MOST_DROPPED: usize = 4 * MOST_BYTES;
/// How long a client may take to send it.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Answers requests.
#[derive(Clone)]
pub struct Service {
    api: Api,
    who: Caller,
    /// Where the connection comes from; none within the process.
    peer: Option<IpAddr>,
}

/// How the asking user is known.
#[derive(Clone)]
pub(crate) enum Caller {
    /// The process itself vouches for them.
    Trusted(User),
    /// By a client certificate, or by what the request says.
    Remote(Option<User>),
}

impl Service {
    pub(crate) fn trusted(api: Api, user: User) -> Self {
        Self { api, who: Caller::Trusted(user), peer: None }
    }

    pub(crate) fn remote(api: Api, certified: Option<User>, peer: Option<IpAddr>) -> Self {
        Self { api, who: Caller::Remote(certified), peer }
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let record =
            self.api.state.audit.as_ref().map(|log| Record::begin(log, &mut parts, &self.who, self.peer));
        let response = self.respond(&parts, body).await;
        if let Some(record) = record {
            record.end(&response);
        }
        response
    }

    async fn respond<B>(&self, parts: &Parts, body: B) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let answer = match read(body).await {
            Ok(body) => self.api.state.answer(parts, body, &self.who).await,
            Err(error) => Answer::error(&error, MediaType::Json),
        };
        answer.into_response()
    }
}

/// A whole body, unless it is too long or too slow.
async fn read<B>(body: B) -> Result<Bytes, StatusError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || StatusError::too_large(&format!("limit is {MOST_BYTES}"));
    if body.size_hint().lower() > MOST_DROPPED as u64 {
        return Err(too_large());
    }
    let collect = async {
        let mut body = pin!(body);
        let mut all = BytesMut::new();
        let mut dropped = 0;
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                StatusError::bad_request(format!("cannot read the request's body: {error}"))
            })?;
            if let Ok(data) = frame.into_data() {
                if dropped == 0 && all.len() + data.len() <= MOST_BYTES {
                    all.extend_from_slice(&data);
                    continue;
                }
                dropped += data.len();
                if dropped > MOST_DROPPED {
                    return Err(too_large());
                }
            }
        }
        if dropped > 0 { Err(too_large()) } else { Ok(all.freeze()) }
    };
    let slow = |_| StatusError::timeout("the request's body did not arrive in time");
    tokio::time::timeout(BODY_WITHIN, collect).await.map_err(slow)?
}

impl<B> tower_service::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: std::fmt::Display,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}
