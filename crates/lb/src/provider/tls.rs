//! TLS in which both sides prove themselves: files in, configurations out. They are read again for every connection, so that a certificate
//! can be renewed without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

/// gRPC is HTTP/2.
const PROTOCOL: &[u8] = b"h2";

/// Why TLS can't be spoken.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file can't be read, or has not what it should have.
    #[error("cannot use the {what} in `{}`: {why}", path.display())]
    File {
        /// What should be in it.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// They do not fit together.
    #[error("the certificate `{}` and its key can't be used: {source}", certificate.display())]
    Unusable {
        /// The file of the certificate.
        certificate: PathBuf,
        /// What is wrong.
        source: tokio_rustls::rustls::Error,
    },
}

/// The files of one side, in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate authority that the other side's certificate is of.
    pub ca: PathBuf,
    /// This side's certificate, and those between it and its authority.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

impl TlsFiles {
    fn roots(&self) -> Result<RootCertStore, TlsError> {
        let bad = |why: String| TlsError::File { what: "CA", path: self.ca.clone(), why };
        let mut roots = RootCertStore::empty();
        for one in certificates("CA", &self.ca)? {
            roots.add(one).map_err(|error| bad(error.to_string()))?;
        }
        Ok(roots)
    }

    fn own(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
        let chain = certificates("certificate", &self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key);
        let bad = |error| TlsError::File { what: "key", path: self.key.clone(), why: why(&error) };
        Ok((chain, key.map_err(bad)?))
    }

    fn unusable(&self, source: tokio_rustls::rustls::Error) -> TlsError {
        TlsError::Unusable { certificate: self.certificate.clone(), source }
    }

    /// For the side that calls.
    pub(super) fn client(&self) -> Result<ClientConfig, TlsError> {
        let (chain, key) = self.own()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(error))?
            .with_root_certificates(self.roots()?)
            .with_client_auth_cert(chain, key)
            .map_err(|error| self.unusable(error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }

    /// For the side that is called. Whoever has no certificate of the authority gets no answer.
    pub(super) fn server(&self) -> Result<ServerConfig, TlsError> {
        let (chain, key) = self.own()?;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let callers =
            WebPkiClientVerifier::builder_with_provider(Arc::new(self.roots()?), Arc::clone(&provider))
                .build();
        let callers = callers.map_err(|error| TlsError::File {
            what: "CA",
            path: self.ca.clone(),
            why: error.to_string(),
        })?;
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| self.unusable(error))?
            .with_client_cert_verifier(callers)
            .with_single_cert(chain, key)
            .map_err(|error| self.unusable(error))?;
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(config)
    }
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let bad = |why: String| TlsError::File { what, path: path.to_owned(), why };
    let read = CertificateDer::pem_file_iter(path).map_err(|error| bad(why(&error)))?;
    let all = read.collect::<Result<Vec<_>, _>>().map_err(|error| bad(why(&error)))?;
    if all.is_empty() { Err(bad("it has no certificate".to_owned())) } else { Ok(all) }
}

fn why(error: &rustls_pki_types::pem::Error) -> String {
    match error {
        rustls_pki_types::pem::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}
