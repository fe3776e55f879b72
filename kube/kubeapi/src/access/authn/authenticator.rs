//! Bearer tokens: the admin's, and those of service accounts.

use super::{Claims, MASTERS, TokenError, TokenKey, User};
use crate::access::pki::{ADMIN, Pki};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use std::fmt;

/// Whom a bearer token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenIdentity {
    /// The admin.
    Admin(User),
    /// A service account: the server still has to find it, and what the token is bound to, by these uids.
    Account(Claims),
}

/// Knows all tokens that this server believes.
pub struct TokenAuthenticator {
    admin: String,
    key: TokenKey,
}

impl TokenAuthenticator {
    /// The tokens of a data directory.
    ///
    /// # Errors
    /// The key for tokens can't be used.
    pub fn new(pki: &Pki) -> Result<Self, TokenError> {
        let der = pki.token_key_der().ok_or(TokenError::Key)?;
        Ok(Self { admin: pki.admin_token.clone(), key: TokenKey::from_pkcs8(der.secret_der())? })
    }

    /// The key that makes service accounts' tokens.
    pub fn key(&self) -> &TokenKey {
        &self.key
    }

    /// Whom `token` stands for, shown to one of `audiences` (the API itself if empty) at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn authenticate(
        &self,
        token: &str,
        audiences: &[String],
        now: i64,
    ) -> Result<TokenIdentity, TokenError> {
        // How long this takes doesn't tell how much of a guess was right.
        if verify_slices_are_equal(token.as_bytes(), self.admin.as_bytes()).is_ok() {
            return Ok(TokenIdentity::Admin(User::authenticated(ADMIN, [MASTERS.to_owned()])));
        }
        self.key.verify(token, audiences, now).map(TokenIdentity::Account)
    }
}

impl fmt::Debug for TokenAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthenticator").field("key", &self.key).finish_non_exhaustive()
    }
}
