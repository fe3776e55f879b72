//! The API as a `tower::Service`: the same for a socket and for a client in the same process.

use super::Api;
use super::dispatch::Admitted;
use crate::access::audit::Record;
use crate::access::authn::User;
use crate::flow::Busy;
use crate::flow::lane::Seat;
use crate::flow::weigh::{self, Traffic};
use crate::http::answer::{Answer, Body};
use crate::http::negotiate::{self, MediaType};
use crate::http::server::Link;
use crate::http::status_error::StatusError;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The most bytes that a request's body may have.
pub(crate) const MOST_BYTES: usize = 3 * 1024 * 1024;
/// How much of a body that is too long is read and dropped, so that the sender gets the error: a connection that is
/// closed while they send is all that they would see.
const MOST_DROPPED: usize = 4 * MOST_BYTES;
/// How long a client may take to send it.
const BODY_WITHIN: Duration = Duration::from_secs(30);
/// How long a client may send nothing of it.
const PIECE_WITHIN: Duration = Duration::from_secs(10);

/// Answers requests.
#[derive(Clone)]
pub struct Service {
    api: Api,
    who: Caller,
    /// The connection; none within the process.
    link: Option<Arc<Link>>,
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
        Self { api, who: Caller::Trusted(user), link: None }
    }

    pub(crate) fn remote(api: Api, certified: Option<User>, link: Arc<Link>) -> Self {
        Self { api, who: Caller::Remote(certified), link: Some(link) }
    }

    /// Answers one request.
    pub async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let peer = self.link.as_ref().map(|link| link.peer());
        let record = self.api.state.audit.as_ref().map(|log| Record::begin(log, &mut parts, &self.who, peer));
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
        let media_type = match negotiate::output(&parts.headers) {
            Ok(output) => output.media_type,
            Err(_) => MediaType::Json,
        };
        let answer = match self.try_answer(parts, body).await {
            Ok(answer) => answer,
            Err(error) => Answer::error(&error, media_type),
        };
        answer.into_response()
    }

    async fn try_answer<B>(&self, parts: &Parts, body: B) -> Result<Answer, StatusError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: std::fmt::Display,
    {
        let (state, link) = (&self.api.state, self.link.as_deref());
        if let Some(link) = link {
            link.asked();
        }
        let mut admitted = state.admitted(parts, &self.who)?;
        admitted.link.clone_from(&self.link);
        let payer = admitted.payer.as_deref();
        let traffic = Traffic::of(&admitted.info);
        if let Some(link) = link {
            link.stream(traffic == Traffic::Long);
            if link.belongs_to(payer).is_err() {
                let refused = Answer::error(&StatusError::too_many_requests(), MediaType::Json);
                return Ok(refused.header(header::CONNECTION, HeaderValue::from_static("close")));
            }
        }
        let flow = &state.flow;
        match traffic {
            Traffic::Health => state.carry_out(parts, Bytes::new(), &admitted).await,
            Traffic::Long => {
                let seat = flow.long(payer).await.map_err(busy)?;
                let answer = state.carry_out(parts, Bytes::new(), &admitted).await?;
                Ok(answer.hold(seat))
            }
            Traffic::Short => {
                let most = weigh::most_bytes(&admitted.info, MOST_BYTES);
                let mut room = None;
                let body = if most == 0 {
                    Bytes::new()
                } else {
                    if body.size_hint().upper().is_none_or(|bytes| bytes > weigh::LARGE_BODY as u64) {
                        room = flow.memory(payer).await.map_err(busy)?;
                    }
                    read(body, most).await?
                };
                self.short(parts, body, admitted, room).await
            }
        }
    }

    /// Carries out what ends by itself: here if it is short, on a thread of its own if it is long.
    async fn short(
        &self,
        parts: &Parts,
        body: Bytes,
        admitted: Admitted,
        room: Option<Seat>,
    ) -> Result<Answer, StatusError> {
        let state = &self.api.state;
        let load = state.load(parts, &admitted, body.len());
        if !load.is_heavy() {
            let _seat = state.flow.light(admitted.payer.as_deref()).await.map_err(busy)?;
            return state.carry_out(parts, body, &admitted).await;
        }
        let payer = admitted.payer.as_deref();
        // A long list takes memory as a long body does, until it is sent.
        let room = if load.listed > 0 && room.is_none() {
            state.flow.memory(payer).await.map_err(busy)?
        } else {
            room
        };
        let seat = state.flow.heavy(payer).await.map_err(busy)?;
        let (state, parts) = (Arc::clone(state), parts.clone());
        let runtime = tokio::runtime::Handle::current();
        let work = tokio::task::spawn_blocking(move || {
            // The thread is in use until the work is done, whether or not a client still waits for it.
            let _seat = seat;
            if negotiate::content_type(&parts.headers) != negotiate::PROTOBUF && weigh::is_too_much(&body) {
                return Err(StatusError::too_large("it has too many fields and elements"));
            }
            runtime.block_on(state.carry_out(&parts, body, &admitted))
        });
        let done = work.await.map_err(|error| StatusError::internal(&error.to_string()))?;
        done.map(|answer| answer.hold(room))
    }
}

pub(crate) fn busy(_: Busy) -> StatusError {
    StatusError::too_many_requests()
}

/// A whole body, unless it is too long or too slow.
pub(crate) async fn read<B>(body: B, most: usize) -> Result<Bytes, StatusError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: std::fmt::Display,
{
    if body.is_end_stream() {
        return Ok(Bytes::new());
    }
    let too_large = || StatusError::too_large(&format!("limit is {most}"));
    if body.size_hint().lower() > MOST_DROPPED as u64 {
        return Err(too_large());
    }
    let slow = |_| StatusError::timeout("the request's body did not arrive in time");
    let collect = async {
        let mut body = pin!(body);
        let mut all = BytesMut::new();
        let mut dropped = 0;
        while let Some(frame) = tokio::time::timeout(PIECE_WITHIN, body.frame()).await.map_err(slow)? {
            let frame = frame.map_err(|error| {
                StatusError::bad_request(format!("cannot read the request's body: {error}"))
            })?;
            if let Ok(data) = frame.into_data() {
                if dropped == 0 && all.len() + data.len() <= most {
                    all.extend_from_slice(&data);
                    continue;
                }
                dropped += data.len();
                all.clear();
                if dropped > MOST_DROPPED {
                    return Err(too_large());
                }
            }
        }
        if dropped > 0 { Err(too_large()) } else { Ok(all.freeze()) }
    };
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
