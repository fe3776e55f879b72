//! Opens the WebSocket that a command is run through.

use atoll_kubeapi::websocket;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION,
    UPGRADE,
};
use http::{Request, StatusCode};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use kube::client::Body;

use super::session;
use crate::failure::Failure;
use crate::objects::catalog::escaped;
use crate::objects::pods::Chosen;
use crate::objects::rest::{Rest, refusal};

/// The only version in which input can end before the command does; Kubernetes has it since 1.30.
const PROTOCOL: &str = "v5.channel.k8s.io";

/// What is to be run, and how.
pub(super) struct ExecRequest<'a> {
    pub(super) command: &'a [String],
    pub(super) stdin: bool,
    pub(super) tty: bool,
}

impl ExecRequest<'_> {
    pub(super) fn path(&self, rest: &Rest, chosen: &Chosen) -> String {
        // A terminal has one stream for both.
        let flags = format!("stdin={}&stdout=true&stderr={}&tty={}", self.stdin, !self.tty, self.tty);
        let words: String = self.command.iter().map(|word| format!("&command={}", escaped(word))).collect();
        format!("{}?container={}&{flags}{words}", chosen.path(rest, "exec"), escaped(&chosen.container))
    }
}

/// Why there is no connection.
pub(super) enum OpenError {
    /// The API said no, or nothing.
    Api(kube::Error),
    /// It answered, but not as a WebSocket does.
    NoWebSocket(String),
}

impl OpenError {
    pub(super) fn failure(&self, rest: &Rest, what: &str, permissions: &str) -> Failure {
        match self {
            Self::Api(error) => rest.failure(what, error, permissions),
            Self::NoWebSocket(why) => Failure::ended(what, why),
        }
    }
}

/// Asks for the path, and for a WebSocket in its place.
pub(super) async fn open(client: &kube::Client, path: &str) -> Result<TokioIo<Upgraded>, OpenError> {
    let key = STANDARD.encode(session::random::<16>());
    let request = Request::get(path)
        .header(CONNECTION, "Upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, &key)
        .header(SEC_WEBSOCKET_PROTOCOL, PROTOCOL)
        .body(Body::empty())
        .map_err(|error| OpenError::Api(kube::Error::HttpError(error)))?;
    let response = client.send(request).await.map_err(OpenError::Api)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let (head, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(OpenError::Api)?;
        if head.status.is_success() {
            return Err(OpenError::NoWebSocket(format!(
                "the API server answered {} instead of opening a WebSocket",
                head.status
            )));
        }
        return Err(OpenError::Api(refusal(head.status, &bytes)));
    }
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    if header(SEC_WEBSOCKET_ACCEPT) != websocket::accept(&key).as_deref() {
        return Err(OpenError::NoWebSocket(
            "the response has a wrong Sec-WebSocket-Accept header".to_owned(),
        ));
    }
    if header(SEC_WEBSOCKET_PROTOCOL) != Some(PROTOCOL) {
        return Err(OpenError::NoWebSocket(format!(
            "the API server does not support {PROTOCOL}; Kubernetes 1.30 or newer is required"
        )));
    }
    let upgraded = hyper::upgrade::on(response).await;
    upgraded.map(TokioIo::new).map_err(|error| OpenError::NoWebSocket(error.to_string()))
}
