//! Where a provider is, and how it is spoken to: by a Unix socket, or by TLS that both sides prove themselves in. What a provider is told
//! (backends, annotations) and what it answers (addresses) is no other program's, so plain text is for trials on one machine only.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use rustls_pki_types::ServerName;

use super::tls::{TlsError, TlsFiles};

/// How a provider may be spoken to, by the operator's word.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// The file of the certificate authority that the provider's certificate is of.
    pub ca: Option<PathBuf>,
    /// The file of our certificate.
    pub certificate: Option<PathBuf>,
    /// The file of its key.
    pub key: Option<PathBuf>,
    /// The name in the provider's certificate, if it is not the host of its address.
    pub server_name: Option<String>,
    /// Plain text is allowed, to an address of this machine's loopback.
    pub plaintext: bool,
}

impl Access {
    /// For a trial on one machine: plain text, by the loopback.
    pub fn plaintext() -> Self {
        Self { plaintext: true, ..Self::default() }
    }
}

/// Why an address leads to no provider.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// It is none.
    #[error("invalid address of a provider `{url}`: write it as unix:///PATH or grpcs://HOST:PORT")]
    Form {
        /// What came.
        url: String,
    },
    /// It is not safe.
    #[error(
        "plain text to `{url}` is not allowed: use a Unix socket (unix:///PATH), or grpcs://HOST:PORT with a CA, a certificate and its key; to try a provider on this machine, allow plain text to a loopback address"
    )]
    Plaintext {
        /// What came.
        url: String,
    },
    /// Something is missing.
    #[error("`{url}` needs three files: the provider's CA, our certificate and its key")]
    Files {
        /// What came.
        url: String,
    },
    /// The name of the server can't be one.
    #[error("invalid TLS server name `{name}`")]
    ServerName {
        /// What came.
        name: String,
    },
    /// The files can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

/// Where a provider is.
#[derive(Debug, Clone)]
pub(super) enum Place {
    /// At a socket of this machine.
    Unix(PathBuf),
    /// At `HOST:PORT`; both sides have certificates.
    Tls { authority: String, files: TlsFiles, name: ServerName<'static> },
    /// On the loopback, in plain text.
    Plain(SocketAddr),
}

impl Place {
    /// Whether this is the address of a provider in another process, and not a name.
    pub(super) fn is_address(text: &str) -> bool {
        ["grpc:", "grpcs:", "unix:"].iter().any(|scheme| text.starts_with(scheme))
    }

    /// Reads `unix:///PATH`, `grpcs://HOST:PORT` or `grpc://LOOPBACK:PORT`, and whether that is allowed.
    pub(super) fn parse(url: &str, access: &Access) -> Result<Self, RemoteError> {
        let bad = || RemoteError::Form { url: url.to_owned() };
        if let Some(path) = url.strip_prefix("unix://") {
            let path = PathBuf::from(path);
            return if path.is_absolute() && path.file_name().is_some() {
                Ok(Self::Unix(path))
            } else {
                Err(bad())
            };
        }
        let (tls, rest) = match url.split_once("://") {
            Some(("grpcs", rest)) => (true, rest),
            Some(("grpc", rest)) => (false, rest),
            Some(_) | None => return Err(bad()),
        };
        let uri: http::Uri = format!("http://{rest}").parse().map_err(|_| bad())?;
        let authority =
            uri.authority().filter(|_| uri.path().len() <= 1 && uri.query().is_none()).ok_or_else(bad)?;
        if authority.port_u16().is_none_or(|port| port == 0) || authority.as_str().contains('@') {
            return Err(bad());
        }
        if tls {
            return Self::tls(url, authority.as_str(), authority.host(), access);
        }
        // A name may lead anywhere tomorrow.
        let address: Option<SocketAddr> = authority.as_str().parse().ok();
        let address = address.filter(|address| access.plaintext && address.ip().is_loopback());
        address.map(Self::Plain).ok_or_else(|| RemoteError::Plaintext { url: url.to_owned() })
    }

    fn tls(url: &str, authority: &str, host: &str, access: &Access) -> Result<Self, RemoteError> {
        let Access { ca: Some(ca), certificate: Some(certificate), key: Some(key), .. } = access.clone()
        else {
            return Err(RemoteError::Files { url: url.to_owned() });
        };
        let files = TlsFiles { ca, certificate, key };
        files.client()?; // what is wrong from the start is said at the start
        let name = access.server_name.clone().unwrap_or_else(|| host.trim_matches(['[', ']']).to_owned());
        let read = match name.parse::<IpAddr>() {
            Ok(ip) => Ok(ServerName::from(ip)),
            Err(_) => ServerName::try_from(name.clone()),
        };
        let name = read.map_err(|_| RemoteError::ServerName { name })?;
        Ok(Self::Tls { authority: authority.to_owned(), files, name })
    }

    /// What the provider sees as the host that was asked for.
    pub(super) fn origin(&self) -> String {
        match self {
            Self::Unix(_) => "http://localhost".to_owned(),
            Self::Tls { authority, .. } => format!("https://{authority}"),
            Self::Plain(address) => format!("http://{address}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_text_leaves_this_machine_by_no_address() {
        for (url, plaintext, want) in [
            ("unix:///run/atoll/provider.sock", false, "Unix"),
            ("grpc://127.0.0.1:7070", true, "Plain"),
            ("grpc://[::1]:7070", true, "Plain"),
            ("grpc://127.0.0.1:7070", false, "Plaintext"),
            ("grpc://localhost:7070", true, "Plaintext"),
            ("grpc://192.0.2.1:7070", true, "Plaintext"),
            ("grpc://0.0.0.0:7070", true, "Plaintext"),
            ("grpc://[::ffff:192.0.2.1]:7070", true, "Plaintext"),
            ("grpc://127.0.0.1.example.com:7070", true, "Plaintext"),
            ("grpc://127.0.0.1:7070@192.0.2.1:7070", true, "Form"),
            ("grpc://", true, "Form"),
            ("grpc://host", true, "Form"),
            ("grpc://host:1/path", true, "Form"),
            ("grpc://127.0.0.1:0", true, "Form"),
            ("http://127.0.0.1:7070", true, "Form"),
            ("unix://provider.sock", false, "Form"),
            ("unix:/run/provider.sock", false, "Form"),
            ("unix:///", false, "Form"),
            ("grpcs://192.0.2.1:7070", true, "Files"),
        ] {
            let access = Access { plaintext, ..Access::default() };
            let got = match Place::parse(url, &access) {
                Ok(Place::Unix(_)) => "Unix",
                Ok(Place::Tls { .. }) => "Tls",
                Ok(Place::Plain(_)) => "Plain",
                Err(RemoteError::Form { .. }) => "Form",
                Err(RemoteError::Plaintext { .. }) => "Plaintext",
                Err(RemoteError::Files { .. }) => "Files",
                Err(RemoteError::ServerName { .. } | RemoteError::Tls(_)) => "other",
            };
            assert_eq!(got, want, "{url}");
        }
    }
}
