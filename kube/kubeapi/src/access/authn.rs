//! Who asks: a client certificate, a bearer token, or neither (the anonymous user).
//!
//! Pure but for the keys: time is an argument. A service account's token says who it was made for; whether that
//! account still exists is the server's to check ([`Claims::account`]).

mod authenticator;
mod certificate;
mod token;

pub use authenticator::{TokenAuthenticator, TokenIdentity};
pub use token::{Bound, Claims, ISSUER, Issue, TokenError, TokenKey};

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The group of all authenticated users.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of all others.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// The group that may do everything, whatever the roles say.
pub const MASTERS: &str = "system:masters";

/// The user of a request without certificate and token.
pub(crate) const ANONYMOUS: &str = "system:anonymous";

/// The user that sends a request, as `userInfo` has it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct User {
    /// The user's name.
    pub name: String,
    /// Empty if there is none.
    pub uid: String,
    /// In the order that they were given in.
    pub groups: Vec<String>,
    /// What else was said of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// A user who has shown who they are: the group of all such is added.
    pub fn authenticated(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.into());
        }
        Self { name: name.into(), groups, ..Self::default() }
    }

    /// May they do everything?
    pub(crate) fn is_master(&self) -> bool {
        self.groups.iter().any(|group| group == MASTERS)
    }

    /// Whose share of the server they use up. Accounts of one namespace have one: whoever may make one can make many.
    pub(crate) fn payer(&self) -> String {
        let account = self.name.strip_prefix("system:serviceaccount:").and_then(|rest| rest.split_once(':'));
        match account {
            Some((namespace, _)) => format!("system:serviceaccounts:{namespace}"),
            None => self.name.clone(),
        }
    }

    /// As a review or a policy sees them.
    pub(crate) fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = self.uid.as_str().into();
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// The user of a request without certificate and token.
    pub fn anonymous() -> Self {
        Self { name: ANONYMOUS.into(), groups: vec![UNAUTHENTICATED.into()], ..Self::default() }
    }

    /// A service account.
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let groups = ["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let mut user = Self::authenticated(format!("system:serviceaccount:{namespace}:{name}"), groups);
        user.uid = uid.into();
        user
    }

    /// Who a client certificate is for: its common name is the user, its organisations are the groups. The
    /// certificate (DER) must have been verified before.
    ///
    /// # Errors
    /// It can't be read, or has no common name.
    pub fn from_certificate(der: &[u8]) -> Result<Self, CertificateError> {
        let subject = certificate::subject(der).ok_or(CertificateError::Unreadable)?;
        let name = subject.common_name.ok_or(CertificateError::Nameless)?;
        Ok(Self::authenticated(name, subject.organisations))
    }
}

/// Why a client certificate names no user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateError {
    /// It isn't DER as certificates have it.
    #[error("the client certificate can't be read")]
    Unreadable,
    /// Its subject has no common name.
    #[error("the client certificate has no common name, which would be the user's name")]
    Nameless,
}
