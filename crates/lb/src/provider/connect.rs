//! Connections to a provider in another process. Nothing is said to one that has not proved who it is.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;
use tonic::codegen::Service;

use super::place::Place;
use super::tls::TlsError;

const BY_OTHERS: u32 = 0o002;
const BY_GROUP_OR_OTHERS: u32 = 0o022;
/// Whoever may write into the directory can't replace what others have there.
const STICKY: u32 = 0o1000;

/// A stream of bytes to a provider.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum ConnectError {
    #[error("cannot connect to the provider: {0}")]
    Io(#[from] io::Error),
    #[error("cannot connect to the provider by TLS: {0}")]
    Handshake(io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("the provider's socket `{}` is not safe: {why}", path.display())]
    Socket { path: PathBuf, why: Unsafe },
}

/// What is wrong with a Unix socket.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Unsafe {
    #[error("it is not a socket")]
    NoSocket,
    #[error("everybody on this machine may write to it; set its mode to 660")]
    Open,
    #[error("others may replace it; take the right to write into its directory from group and others")]
    Directory,
    #[error("user {0} has it, who is neither root nor this user nor the owner of its directory")]
    Owner(u32),
    #[error("user {0} listens there, who is neither root nor this user nor the owner of its directory")]
    Peer(u32),
}

/// Makes connections to one place.
#[derive(Clone)]
pub(super) struct Connector(pub(super) Arc<Place>);

impl Service<http::Uri> for Connector {
    type Response = TokioIo<Box<dyn Stream>>;
    type Error = ConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, ConnectError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let place = Arc::clone(&self.0);
        Box::pin(async move { connect(&place).await.map(TokioIo::new) })
    }
}

async fn connect(place: &Place) -> Result<Box<dyn Stream>, ConnectError> {
    Ok(match place {
        Place::Unix(path) => Box::new(unix(path).await?),
        Place::Plain(address) => Box::new(tcp(address).await?),
        Place::Tls { authority, files, name } => {
            let files = files.clone();
            let config = tokio::task::spawn_blocking(move || files.client()).await;
            let config = config.map_err(io::Error::other)??;
            let stream = tcp(authority.as_str()).await?;
            let connector = TlsConnector::from(Arc::new(config));
            let stream = connector.connect(name.clone(), stream).await;
            Box::new(stream.map_err(ConnectError::Handshake)?)
        }
    })
}

async fn tcp(to: impl tokio::net::ToSocketAddrs) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?; // small messages, each awaited
    Ok(stream)
}

async fn unix(path: &Path) -> Result<UnixStream, ConnectError> {
    let bad = |why| ConnectError::Socket { path: path.to_owned(), why };
    let us = rustix::process::geteuid().as_raw();
    let directory = std::fs::metadata(path.parent().unwrap_or(Path::new("/")))?;
    let trusted = [0, us, directory.uid()];
    judge(&std::fs::symlink_metadata(path)?, &directory, &trusted).map_err(bad)?;
    let stream = UnixStream::connect(path).await?;
    // Whoever answers by now, whatever the file was.
    let peer = stream.peer_cred()?.uid();
    if trusted.contains(&peer) { Ok(stream) } else { Err(bad(Unsafe::Peer(peer))) }
}

fn judge(socket: &Metadata, directory: &Metadata, trusted: &[u32]) -> Result<(), Unsafe> {
    if !socket.file_type().is_socket() {
        return Err(Unsafe::NoSocket);
    }
    if socket.mode() & BY_OTHERS != 0 {
        return Err(Unsafe::Open);
    }
    if directory.mode() & BY_GROUP_OR_OTHERS != 0 && directory.mode() & STICKY == 0 {
        return Err(Unsafe::Directory);
    }
    if trusted.contains(&socket.uid()) { Ok(()) } else { Err(Unsafe::Owner(socket.uid())) }
}
