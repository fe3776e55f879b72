//! The keys of a data directory, made on the first start and kept; the certificates, made at every start.
//!
//! ```text
//!   <data-dir>/pki/ca.crt, ca.key   signs the certificates of server and admin, and nothing else
//!                  tokens.key       signs service accounts' tokens
//!                  admin.token      a bearer token of the admin
//!   <data-dir>/kubeconfig           the admin's certificate
//! ```
//! Of `ca.crt`, `tokens.key` and `admin.token` the first signs or is handed out, and all count: so each can be replaced while the server
//! runs ([`Pki::again`]). `ca.key` belongs to the first certificate of `ca.crt`.
//!
//! Every file is mode 0600, in directories of mode 0700. Open the store first: its lock is also the keys'.

mod files;
mod kubeconfig;
mod make;

use files::Files;
pub(crate) use files::{NAMES as KEPT, write_private};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::fmt;
use std::path::{Path, PathBuf};

/// The user that the admin's certificate and token stand for.
pub const ADMIN: &str = "atoll-admin";

/// What a server shows, trusts and signs with. PEM throughout.
#[derive(Clone)]
pub struct Pki {
    /// The certificate authority's certificate: a client's certificate must be signed by it.
    pub ca: String,
    /// What the listener shows.
    pub server: Identity,
    /// The admin's client certificate, in the group `system:masters`.
    pub admin: Identity,
    /// The admin's bearer tokens, one a line.
    pub admin_token: String,
    /// The keys for service accounts' tokens, PKCS#8.
    pub token_key: String,
}

/// A certificate and its key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its key, PKCS#8.
    pub key: String,
}

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A file can't be read or written.
    #[error("cannot use {}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file isn't what it should be.
    #[error("{} is unusable: {why}; put the right file back, or restore a backup", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Others can read a key.
    #[error("{} can be read by other users (mode {mode:04o}); run `chmod 600` on it, and if somebody else may have read it, start a new data directory and join the members again", path.display())]
    Exposed {
        /// Which.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// A name for the server's certificate isn't one, or a key can't be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// The system gives no randomness.
    #[error("cannot make a key: the system gives no random bytes")]
    Random,
}

/// What is kept of a [`Pki`].
struct StoredKeys {
    ca: String,
    ca_key: String,
    token_key: String,
    admin_token: String,
}

impl Pki {
    /// The keys of `data_dir`, made if there are none, with certificates for a server that is reached by `names` (DNS
    /// names and addresses) from `now` on, in seconds since 1970.
    ///
    /// # Errors
    /// The directory can't be read or written, or what is in it isn't usable.
    pub fn open(data_dir: &Path, names: &[String], now: i64) -> Result<Self, PkiError> {
        let files = Files::open(data_dir)?;
        let kept = match files.read()? {
            Some(kept) => kept,
            None => {
                let kept = make::keys(now)?;
                files.write(&kept)?;
                kept
            }
        };
        Self::of(kept, names, now)
    }

    /// The keys as they are now, with certificates made anew; none if they were taken away.
    ///
    /// # Errors
    /// The directory can't be read, or what is in it isn't usable.
    pub fn again(data_dir: &Path, names: &[String], now: i64) -> Result<Option<Self>, PkiError> {
        Files::open(data_dir)?.read()?.map(|kept| Self::of(kept, names, now)).transpose()
    }

    /// Whether both have the same authorities and tokens.
    pub(crate) fn has_the_keys_of(&self, other: &Self) -> bool {
        (&self.ca, &self.token_key, &self.admin_token) == (&other.ca, &other.token_key, &other.admin_token)
    }

    /// Keys and certificates that are kept nowhere.
    ///
    /// # Errors
    /// They can't be made.
    pub fn ephemeral(names: &[String], now: i64) -> Result<Self, PkiError> {
        Self::of(make::keys(now)?, names, now)
    }

    fn of(kept: StoredKeys, names: &[String], now: i64) -> Result<Self, PkiError> {
        let StoredKeys { ca, ca_key, token_key, admin_token } = kept;
        let (server, admin) = make::certificates(&ca_key, names, now)?;
        Ok(Self { ca, server, admin, admin_token, token_key })
    }

    /// The admin's kubeconfig for a server at `url`.
    pub fn kubeconfig(&self, url: &str) -> String {
        kubeconfig::text(self, url)
    }

    /// Writes the admin's kubeconfig for a server at `url` to `<data-dir>/kubeconfig`, mode 0600.
    ///
    /// # Errors
    /// It can't be written.
    pub fn write_kubeconfig(&self, data_dir: &Path, url: &str) -> Result<PathBuf, PkiError> {
        let path = data_dir.join("kubeconfig");
        write_private(&path, &self.kubeconfig(url))?;
        Ok(path)
    }

    /// The authority's certificate, for who checks clients.
    pub fn ca_der(&self) -> Option<CertificateDer<'static>> {
        CertificateDer::from_pem_slice(self.ca.as_bytes()).ok()
    }

    /// The certificates of all authorities that clients' certificates may be of.
    pub(crate) fn authorities(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        let all = CertificateDer::pem_slice_iter(self.ca.as_bytes()).collect::<Result<Vec<_>, _>>();
        all.map_err(|error| error.to_string())
    }

    /// The keys for service accounts' tokens.
    pub fn token_keys_der(&self) -> Vec<PrivateKeyDer<'static>> {
        PrivateKeyDer::pem_slice_iter(self.token_key.as_bytes()).filter_map(Result::ok).collect()
    }
}

impl Identity {
    /// The certificate, as a listener wants it.
    pub fn certificate_der(&self) -> Option<CertificateDer<'static>> {
        CertificateDer::from_pem_slice(self.certificate.as_bytes()).ok()
    }
}

// Keys don't belong into logs.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pki {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pki").field("ca", &self.ca).finish_non_exhaustive()
    }
}
