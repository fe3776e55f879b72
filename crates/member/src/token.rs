//! The token that the hub shows a member: replaced while it is in use, and asked for anew before it ends.

use std::sync::{Arc, PoisonError, RwLock};

use http::HeaderValue;
use http::header::InvalidHeaderValue;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, PostParams};

/// The Secret in a member that the hub's tokens are bound to. It is empty; whoever deletes it revokes them all.
pub const BOUND_TO: &str = "atoll-hub-credentials";

/// A token. Clones are the same: one that is replaced is replaced in all clients, and no connection ends for it.
#[derive(Clone)]
pub struct Token(Arc<RwLock<HeaderValue>>);

impl Token {
    /// A token as a request carries it.
    pub fn new(token: &str) -> Result<Self, InvalidHeaderValue> {
        Ok(Self(Arc::new(RwLock::new(bearer(token)?))))
    }

    /// From the next request on, this one.
    pub fn replace(&self, token: &str) -> Result<(), InvalidHeaderValue> {
        let new = bearer(token)?;
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    pub(crate) fn header(&self) -> HeaderValue {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

fn bearer(token: &str) -> Result<HeaderValue, InvalidHeaderValue> {
    let mut value = HeaderValue::try_from(format!("Bearer {token}"))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token that was issued.
pub struct Issued {
    /// The token.
    pub token: String,
    /// When it ends, by the API's word: that may be earlier than was asked for.
    pub expires: Timestamp,
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").field("expires", &self.expires).finish_non_exhaustive()
    }
}

/// Why there is no new token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The API refused it, or did not answer.
    #[error("the member's API issued no token")]
    Api(#[from] Box<kube::Error>),
    /// The answer has no token, or no end.
    #[error("the member's API answered without a token")]
    Empty,
}

/// Asks for a token of the hub's account that lasts for so many seconds, bound to [`BOUND_TO`].
pub async fn issue(member: &Client, namespace: &str, seconds: i64) -> Result<Issued, TokenError> {
    let bound = BoundObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Secret".to_owned()),
        name: Some(BOUND_TO.to_owned()),
        uid: None,
    };
    let spec = TokenRequestSpec {
        expiration_seconds: Some(seconds),
        bound_object_ref: Some(bound),
        ..TokenRequestSpec::default()
    };
    let request = TokenRequest { spec: Some(spec), ..TokenRequest::default() };
    let accounts: Api<ServiceAccount> = Api::namespaced(member.clone(), namespace);
    let answer = accounts.create_token_request(crate::ROLE, &PostParams::default(), &request).await;
    let status = answer.map_err(Box::new)?.status.unwrap_or_default();
    match (status.token, status.expiration_timestamp) {
        (Some(token), Some(expires)) => Ok(Issued { token, expires: expires.0 }),
        (Some(_) | None, _) => Err(TokenError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_never_printed_and_counts_from_the_next_request_on() {
        let token = Token::new("swordfish").unwrap();
        let copy = token.clone();
        assert_eq!(copy.header(), "Bearer swordfish");
        assert!(!format!("{token:?} {:?}", token.header()).contains("swordfish"));
        token.replace("marlin").unwrap();
        assert_eq!(copy.header(), "Bearer marlin");
        assert!(token.replace("two\nlines").is_err());
        assert_eq!(copy.header(), "Bearer marlin");
    }
}
