//! A provider in another process, over gRPC. Whatever it does, a call ends within its deadline.

use std::sync::Arc;
use std::time::Duration;

use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status as Answer};

use super::connect::Connector;
use super::place::{Access, Place, RemoteError};
use super::wire::{self, Nonsense, v1};
use super::{Failure, Key, Provider, ProviderError, Spec, Status, async_trait};
use v1::provider_client::ProviderClient;

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(5);
/// A status of 64 addresses needs a few kilobytes.
const LONGEST_ANSWER: usize = 256 * 1024;
/// So much of a provider's text is shown.
const LONGEST_TEXT: usize = 1024;

/// A provider in another process.
#[derive(Debug, Clone)]
pub struct Remote {
    client: ProviderClient<Channel>,
    deadline: Duration,
}

impl Remote {
    /// The provider at `unix:///PATH` or `grpcs://HOST:PORT`; connected to when it is called first. Every call ends within `deadline`.
    pub fn new(url: &str, access: &Access, deadline: Duration) -> Result<Self, RemoteError> {
        let place = Place::parse(url, access)?;
        let origin: http::Uri =
            place.origin().parse().map_err(|_| RemoteError::Form { url: url.to_owned() })?;
        let endpoint = Endpoint::from(origin.clone()).origin(origin).connect_timeout(CONNECT.min(deadline));
        let channel = endpoint.connect_with_connector_lazy(Connector(Arc::new(place)));
        let client = ProviderClient::new(channel).max_decoding_message_size(LONGEST_ANSWER);
        Ok(Self { client, deadline })
    }

    /// Carries `request` out within the deadline; the provider is told of it too.
    async fn call<Q, A, F>(
        &self,
        request: Q,
        call: impl FnOnce(ProviderClient<Channel>, Request<Q>) -> F,
    ) -> Result<A, ProviderError>
    where
        F: Future<Output = Result<tonic::Response<A>, Answer>> + Send,
    {
        let mut request = Request::new(request);
        request.set_timeout(self.deadline);
        match tokio::time::timeout(self.deadline, call(self.client.clone(), request)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(answer)) => Err(failure(&answer)),
            Err(_) => Err(ProviderError {
                kind: Failure::NoAnswer,
                text: format!("the provider did not answer within {} s", self.deadline.as_secs_f32()),
            }),
        }
    }
}

fn failure(answer: &Answer) -> ProviderError {
    let kind = match answer.code() {
        Code::InvalidArgument | Code::FailedPrecondition | Code::PermissionDenied | Code::Unimplemented => {
            Failure::Lasting
        }
        Code::DeadlineExceeded | Code::Cancelled => Failure::NoAnswer,
        Code::Unavailable => Failure::Unreachable,
        // What can't be read.
        Code::Internal | Code::OutOfRange | Code::DataLoss if std::error::Error::source(answer).is_some() => {
            Failure::Nonsense
        }
        _ => Failure::Passing,
    };
    let said = match kind {
        // Why there is no connection stands behind what gRPC says of it.
        Failure::Unreachable => innermost(answer),
        Failure::Lasting | Failure::Withdrawn | Failure::Passing | Failure::NoAnswer | Failure::Nonsense => {
            answer.message().to_owned()
        }
    };
    let said: String = said.chars().take(LONGEST_TEXT).collect();
    let text =
        if said.is_empty() { format!("the provider answered {}", answer.code().description()) } else { said };
    ProviderError { kind, text }
}

/// What the failure of a connection comes down to: our own word on it if there is one.
fn innermost(answer: &Answer) -> String {
    let mut text = answer.message().to_owned();
    let mut cause = std::error::Error::source(answer);
    while let Some(error) = cause {
        text = error.to_string();
        if error.is::<super::connect::ConnectError>() {
            break;
        }
        cause = error.source();
    }
    text
}

impl From<Nonsense> for ProviderError {
    fn from(nonsense: Nonsense) -> Self {
        Self { kind: Failure::Nonsense, text: format!("invalid response of the provider: {nonsense}") }
    }
}

#[async_trait]
impl Provider for Remote {
    async fn get(&self, key: &Key) -> Result<Option<Status>, ProviderError> {
        let request = v1::GetRequest { key: Some(wire::key_out(key)) };
        let answer =
            self.call(request, |mut client, request| async move { client.get(request).await }).await?;
        answer.status.map(|status| wire::status_in(Some(status))).transpose().map_err(Into::into)
    }

    async fn ensure(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let request = v1::EnsureRequest { key: Some(wire::key_out(key)), spec: Some(wire::spec_out(spec)) };
        let answer =
            self.call(request, |mut client, request| async move { client.ensure(request).await }).await?;
        Ok(wire::status_in(answer.status)?)
    }

    async fn update(&self, key: &Key, spec: &Spec) -> Result<Status, ProviderError> {
        let request = v1::UpdateRequest { key: Some(wire::key_out(key)), spec: Some(wire::spec_out(spec)) };
        let answer =
            self.call(request, |mut client, request| async move { client.update(request).await }).await?;
        Ok(wire::status_in(answer.status)?)
    }

    async fn ensure_deleted(&self, key: &Key) -> Result<(), ProviderError> {
        let request = v1::EnsureDeletedRequest { key: Some(wire::key_out(key)) };
        self.call(request, |mut client, request| async move { client.ensure_deleted(request).await }).await?;
        Ok(())
    }
}
