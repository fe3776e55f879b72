//! Bearer tokens: the admin's, and those of service accounts.

use super::{Claims, MASTERS, TokenError, TokenKey, User};
use crate::access::pki::{ADMIN, Pki};
use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde_json::{Value, json};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

/// Whom a bearer token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenIdentity {
    /// The admin.
    Admin(User),
    /// A service account: the server still has to find it, and what the token is bound to, by these uids.
    Account(Claims),
}

/// Knows all tokens that this server believes. Clones know the same, also after [`TokenAuthenticator::replace`].
#[derive(Clone)]
pub struct TokenAuthenticator {
    known: Arc<RwLock<Arc<Known>>>,
}

/// The first signs or is handed out; all count.
struct Known {
    admins: Vec<String>,
    keys: Vec<Arc<TokenKey>>,
}

impl Known {
    fn of(pki: &Pki) -> Result<Self, TokenError> {
        let keys = pki.token_keys_der().into_iter().map(|der| {
            let key = TokenKey::from_pkcs8(der.secret_der())?;
            Ok(Arc::new(key))
        });
        let keys = keys.collect::<Result<Vec<_>, TokenError>>()?;
        if keys.is_empty() {
            return Err(TokenError::Key);
        }
        Ok(Self { admins: pki.admin_token.split_whitespace().map(str::to_owned).collect(), keys })
    }
}

impl TokenAuthenticator {
    /// The tokens of a data directory.
    ///
    /// # Errors
    /// The key for tokens can't be used.
    pub fn new(pki: &Pki) -> Result<Self, TokenError> {
        Ok(Self { known: Arc::new(RwLock::new(Arc::new(Known::of(pki)?))) })
    }

    /// Believes these tokens from now on, and no others.
    ///
    /// # Errors
    /// The key for tokens can't be used; those before stay.
    pub fn replace(&self, pki: &Pki) -> Result<(), TokenError> {
        let known = Arc::new(Known::of(pki)?);
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = known;
        Ok(())
    }

    fn known(&self) -> Arc<Known> {
        Arc::clone(&self.known.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The key that makes service accounts' tokens.
    ///
    /// # Errors
    /// There is none.
    pub fn key(&self) -> Result<Arc<TokenKey>, TokenError> {
        self.known().keys.first().cloned().ok_or(TokenError::Key)
    }

    /// The public keys as a JSON Web Key Set, for those who check tokens themselves.
    pub fn key_set(&self) -> Value {
        let keys: Vec<Value> = self.known().keys.iter().map(|key| key.public()).collect();
        json!({ "keys": keys })
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
        let known = self.known();
        // How long this takes doesn't tell how much of a guess was right.
        let is_admin = |admin: &&String| verify_slices_are_equal(token.as_bytes(), admin.as_bytes()).is_ok();
        if known.admins.iter().filter(is_admin).count() > 0 {
            return Ok(TokenIdentity::Admin(User::authenticated(ADMIN, [MASTERS.to_owned()])));
        }
        let mut verified = Err(TokenError::Key);
        for key in &known.keys {
            verified = key.verify(token, audiences, now);
            if !matches!(verified, Err(TokenError::Signature)) {
                break;
            }
        }
        verified.map(TokenIdentity::Account)
    }
}

impl fmt::Debug for TokenAuthenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthenticator").field("keys", &self.known().keys).finish_non_exhaustive()
    }
}
