//! Why a server can't start.

use std::io;
use std::net::SocketAddr;

/// Why a server can't start.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// An address can't be listened on.
    #[error("cannot listen on {address} over {protocol}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// UDP or TCP.
        protocol: &'static str,
        /// Why.
        source: io::Error,
    },
    /// No thread can be started.
    #[error("cannot start a worker thread")]
    Thread(#[source] io::Error),
}

impl ServerError {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Listen { source, address, .. } => match source.kind() {
                io::ErrorKind::AddrInUse => Some(format!(
                    "another process listens there: use another port, or stop the process (find it with `ss -lnp 'sport = {}'`)",
                    address.port()
                )),
                io::ErrorKind::PermissionDenied => Some(
                    "ports below 1024 need the capability NET_BIND_SERVICE: use a higher port".to_owned(),
                ),
                io::ErrorKind::AddrNotAvailable => Some("this host does not have the address".to_owned()),
                _ => None,
            },
            Self::Thread(_) => None,
        }
    }
}
