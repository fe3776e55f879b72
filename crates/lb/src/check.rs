//! Active checks: a backend is well if a connection to it comes about in time.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::limits::ours;

/// Whether a program takes a connection there; none if a limit of our own, and not the backend, is the cause.
pub(crate) async fn answers(address: SocketAddr, within: Duration) -> Option<bool> {
    match timeout(within, TcpStream::connect(address)).await {
        Ok(Ok(stream)) => {
            // A reset spares both sides the memory of a connection that carried nothing.
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            Some(true)
        }
        Ok(Err(error)) if ours(&error) => None,
        Ok(Err(_)) | Err(_) => Some(false),
    }
}
