//! Whether a request can become a WebSocket with channels, read off its headers alone.

use super::channels::{PROTOCOLS, Protocol};
use crate::http::status_error::StatusError;
use crate::http::websocket;
use http::header::{CONNECTION, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, HeaderName};

/// A request that can become a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handshake {
    pub(crate) protocol: Protocol,
    /// What the client's key is answered with.
    pub(crate) accept: String,
}

impl Handshake {
    /// Reads a request's headers.
    pub(crate) fn read(headers: &HeaderMap) -> Result<Self, StatusError> {
        if !words(headers, CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade")) {
            return Err(StatusError::bad_request("Upgrade request required"));
        }
        let wanted = text(headers, UPGRADE);
        if !wanted.eq_ignore_ascii_case("websocket") {
            return Err(StatusError::bad_request(format!(
                "unable to upgrade to {wanted:?}: this server streams by WebSocket only, with the subprotocol {}; \
                 use kubectl 1.31 or later, and do not switch KUBECTL_REMOTE_COMMAND_WEBSOCKETS off",
                known()
            )));
        }
        if text(headers, SEC_WEBSOCKET_VERSION) != "13" {
            return Err(StatusError::bad_request("unable to upgrade: Sec-WebSocket-Version has to be 13"));
        }
        let Some(accept) = websocket::accept(text(headers, SEC_WEBSOCKET_KEY)) else {
            return Err(StatusError::bad_request(
                "unable to upgrade: Sec-WebSocket-Key has to be 16 bytes in base64",
            ));
        };
        let offered: Vec<&str> = words(headers, SEC_WEBSOCKET_PROTOCOL).collect();
        let by_name = |name: &&str| PROTOCOLS.into_iter().find(|protocol| protocol.name() == *name);
        let Some(protocol) = offered.iter().find_map(by_name) else {
            return Err(StatusError::bad_request(format!(
                "unable to upgrade: requested protocol(s) are not supported: [{}]; supports [{}]",
                offered.join(" "),
                known()
            )));
        };
        Ok(Self { protocol, accept })
    }
}

fn known() -> String {
    PROTOCOLS.map(Protocol::name).join(" ")
}

fn text(headers: &HeaderMap, name: HeaderName) -> &str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// The words of a list that may be spread over several headers.
fn words(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let lists = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim).filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_static(name), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect()
    }

    const GOOD: [(&str, &str); 5] = [
        ("connection", "keep-alive, Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "channel.k8s.io, v4.channel.k8s.io, v5.channel.k8s.io"),
    ];

    #[test]
    fn the_clients_first_protocol_that_is_known_is_taken() {
        assert_eq!(Handshake::read(&headers(&GOOD)).unwrap().protocol, Protocol::V4);
    }

    #[test]
    fn what_can_not_be_a_websocket_is_told_why() {
        for (name, value, want) in [
            ("connection", "keep-alive", "Upgrade request required"),
            ("upgrade", "SPDY/3.1", "WebSocket only"),
            ("sec-websocket-version", "8", "has to be 13"),
            ("sec-websocket-key", "x", "16 bytes"),
            (
                "sec-websocket-protocol",
                "base64.channel.k8s.io",
                "not supported: [base64.channel.k8s.io]; supports [v5",
            ),
        ] {
            let mut headers = headers(&GOOD);
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            let error = Handshake::read(&headers).unwrap_err();
            assert!(error.to_string().contains(want), "{error}");
        }
    }
}
