//! Service accounts' tokens: JWTs signed with ES256 by the key of this data directory.

use super::User;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Signs and checks tokens.
#[derive(Debug)]
pub struct TokenKey {
    pair: EcdsaKeyPair,
    id: String,
}

/// What a token is made for.
#[derive(Debug, Clone)]
pub struct Issue<'a> {
    /// The account's namespace.
    pub namespace: &'a str,
    /// The account's name.
    pub name: &'a str,
    /// The account's uid.
    pub uid: &'a str,
    /// Who may be shown the token; the API itself if empty.
    pub audiences: &'a [String],
    /// The object that the token lives and dies with.
    pub bound: Option<Bound>,
    /// When it is made, in seconds since 1970.
    pub now: i64,
    /// How long it is good for, in seconds.
    pub seconds: i64,
    /// A uid of its own.
    pub id: &'a str,
}

/// An object that a token is bound to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// `Pod`, `Secret` or `Node`.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

/// What a good token says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claims {
    /// The account's namespace, name and uid: the token is void when there is no such account any more.
    pub account: (String, String, String),
    /// The object that the token lives and dies with.
    pub bound: Option<Bound>,
    /// Who may be shown the token.
    pub audiences: Vec<String>,
    /// When it ends, in seconds since 1970.
    pub expires: i64,
    /// The token's own uid.
    pub id: String,
}

/// Why a token is no good.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// It isn't a token of this server at all: another authenticator may know it.
    #[error("not a token of this server")]
    Foreign,
    /// It was signed by another key, or changed.
    #[error("the token's signature is wrong")]
    Signature,
    /// Its time is over.
    #[error("the token has expired")]
    Expired,
    /// Its time hasn't come.
    #[error("the token is not valid yet")]
    Early,
    /// It was made to be shown to others.
    #[error("the token's audiences {found:?} include none of {wanted:?}")]
    Audience {
        /// What the token says.
        found: Vec<String>,
        /// What would do.
        wanted: Vec<String>,
    },
    /// The key can't be read or used.
    #[error("the service account signing key is unusable")]
    Key,
}

/// The issuer's name, and the audience of tokens that don't say for whom they are.
pub const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// A token of ours is shorter: names have at most 253 letters, and audiences are few.
const MOST_BYTES: usize = 16 << 10;

#[derive(Serialize, Deserialize)]
struct Payload {
    aud: Vec<String>,
    exp: i64,
    iat: i64,
    iss: String,
    #[serde(default)]
    jti: String,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Value,
    nbf: i64,
    sub: String,
}

impl TokenKey {
    /// A key from its PKCS#8 (DER).
    ///
    /// # Errors
    /// It isn't a P-256 key.
    pub fn from_pkcs8(der: &[u8]) -> Result<Self, TokenError> {
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der).map_err(|_| TokenError::Key)?;
        let id = BASE64.encode(digest(&SHA256, pair.public_key().as_ref()));
        Ok(Self { pair, id })
    }

    /// The public key as a JSON Web Key.
    pub(super) fn public(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let (x, y) = point.get(1..).unwrap_or_default().split_at(32.min(point.len().saturating_sub(1)));
        json!({
            "use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256",
            "x": BASE64.encode(x), "y": BASE64.encode(y),
        })
    }

    /// Makes a token.
    ///
    /// # Errors
    /// The key can't sign.
    pub fn issue(&self, issue: &Issue<'_>) -> Result<String, TokenError> {
        let Issue { namespace, name, uid, audiences, bound, now, seconds, id } = issue;
        let mut kubernetes =
            json!({ "namespace": namespace, "serviceaccount": { "name": name, "uid": uid } });
        if let Some(bound) = bound {
            kubernetes[bound.kind.to_lowercase()] = json!({ "name": bound.name, "uid": bound.uid });
        }
        let payload = Payload {
            aud: if audiences.is_empty() { vec![ISSUER.into()] } else { audiences.to_vec() },
            exp: now.saturating_add(*seconds),
            iat: *now,
            iss: ISSUER.into(),
            jti: (*id).to_owned(),
            kubernetes,
            nbf: *now,
            sub: format!("system:serviceaccount:{namespace}:{name}"),
        };
        let header = json!({ "alg": "ES256", "kid": self.id });
        let payload = serde_json::to_vec(&payload).map_err(|_| TokenError::Key)?;
        let signed = format!("{}.{}", BASE64.encode(header.to_string()), BASE64.encode(payload));
        let signature =
            self.pair.sign(&SystemRandom::new(), signed.as_bytes()).map_err(|_| TokenError::Key)?;
        Ok(format!("{signed}.{}", BASE64.encode(signature)))
    }

    /// Checks a token that is shown to one of `audiences` (the API itself if empty) at `now`.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn verify(&self, token: &str, audiences: &[String], now: i64) -> Result<Claims, TokenError> {
        if token.len() > MOST_BYTES {
            return Err(TokenError::Foreign);
        }
        let (signed, signature) = token.rsplit_once('.').ok_or(TokenError::Foreign)?;
        let (header, payload) = signed.split_once('.').ok_or(TokenError::Foreign)?;
        let header: Value = decoded(header)?;
        // The algorithm is ours to say, not the token's.
        if header["alg"] != "ES256" {
            return Err(TokenError::Foreign);
        }
        // What it says is read when it is known to be ours.
        let signature = BASE64.decode(signature).map_err(|_| TokenError::Signature)?;
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, self.pair.public_key().as_ref())
            .verify(signed.as_bytes(), &signature)
            .map_err(|_| TokenError::Signature)?;
        let payload: Payload = decoded(payload)?;
        if payload.iss != ISSUER {
            return Err(TokenError::Foreign);
        }
        if now >= payload.exp {
            return Err(TokenError::Expired);
        }
        if now < payload.nbf {
            return Err(TokenError::Early);
        }
        let api = [ISSUER.to_owned()];
        let wanted = if audiences.is_empty() { &api } else { audiences };
        if !payload.aud.iter().any(|audience| wanted.contains(audience)) {
            return Err(TokenError::Audience { found: payload.aud, wanted: wanted.to_vec() });
        }
        Claims::of(payload).ok_or(TokenError::Foreign)
    }
}

impl Claims {
    fn of(payload: Payload) -> Option<Self> {
        let about = &payload.kubernetes;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let account = &about["serviceaccount"];
        let bound = ["Pod", "Secret", "Node"].into_iter().find_map(|kind| {
            let object = &about[kind.to_lowercase()];
            Some(Bound { kind: kind.into(), name: text(&object["name"])?, uid: text(&object["uid"])? })
        });
        Some(Self {
            account: (text(&about["namespace"])?, text(&account["name"])?, text(&account["uid"])?),
            bound,
            audiences: payload.aud,
            expires: payload.exp,
            id: payload.jti,
        })
    }

    /// The user that the token stands for.
    pub fn user(&self) -> User {
        let (namespace, name, uid) = &self.account;
        let mut user = User::service_account(namespace, name, uid);
        let mut extra = |key: &str, value: String| {
            user.extra.insert(format!("authentication.kubernetes.io/{key}"), vec![value]);
        };
        if !self.id.is_empty() {
            extra("credential-id", format!("JTI={}", self.id));
        }
        match &self.bound {
            Some(bound) if bound.kind == "Pod" => {
                extra("pod-name", bound.name.clone());
                extra("pod-uid", bound.uid.clone());
            }
            Some(bound) if bound.kind == "Node" => {
                extra("node-name", bound.name.clone());
                extra("node-uid", bound.uid.clone());
            }
            _ => {}
        }
        user
    }
}

fn decoded<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, TokenError> {
    let bytes = BASE64.decode(part).map_err(|_| TokenError::Foreign)?;
    serde_json::from_slice(&bytes).map_err(|_| TokenError::Foreign)
}
