//! Why a balancer can't start.

use std::io;
use std::net::SocketAddr;

/// Why a balancer can't start.
#[derive(Debug, thiserror::Error)]
pub enum LbError {
    /// No thread can be started.
    #[error("cannot start a worker thread")]
    Thread(#[source] io::Error),
    /// Health and metrics can't be served.
    #[error("cannot serve health and metrics on {address}")]
    Pages {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
}

/// What to do about an address that can't be listened on.
pub(crate) fn hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => "another process listens there; use another address or port",
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need the capability NET_BIND_SERVICE; use a higher port"
        }
        io::ErrorKind::AddrNotAvailable => "this host does not have the address (yet)",
        _ => "see the reason",
    }
}
