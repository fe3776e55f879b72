//! Streams: accept, pick, connect, and carry until both sides have finished.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::live::{Live, Open, Place, View};
use super::relay::{Counted, relay, reset};
use crate::proxy_protocol;

/// So many backends are tried for one client.
const ATTEMPTS: usize = 3;
/// After an accept that failed for want of files or memory.
const BREATHER: Duration = Duration::from_millis(50);

/// Accepts until `closing`; then takes whoever already waits, and leaves.
pub(crate) async fn accept_all(listener: TcpListener, live: Arc<Live>, mut closing: oneshot::Receiver<()>) {
    loop {
        tokio::select! {
            biased;
            _ = &mut closing => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => begin(stream, from, &live),
                Err(error) if gone_already(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    sleep(BREATHER).await;
                }
            }
        }
    }
    while let Ok(Ok((stream, from))) = timeout(Duration::ZERO, listener.accept()).await {
        begin(stream, from, &live);
    }
}

fn gone_already(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset)
}

fn begin(stream: TcpStream, from: SocketAddr, live: &Arc<Live>) {
    match live.admit(from.ip()) {
        Some(place) => drop(tokio::spawn(serve(stream, from, Arc::clone(live), place))),
        None => reset(&stream),
    }
}

async fn serve(mut client: TcpStream, from: SocketAddr, live: Arc<Live>, _place: Place) {
    let view = live.view.load_full();
    let Some((mut backend, open)) = connect(&view, from, &live).await else {
        reset(&client);
        return;
    };
    let (proxy_protocol, idle) = (view.listener.proxy_protocol, view.listener.idle_timeout);
    // A long connection must not keep an old picture in memory.
    drop(view);
    let first = if proxy_protocol {
        client.local_addr().map_or_else(|_| Vec::new(), |to| proxy_protocol::header(from, to))
    } else {
        Vec::new()
    };
    let moved = AtomicU64::new(0);
    let state = &open.0;
    let counted = Counted { to_backend: &state.to_backend, to_client: &state.to_client, moved: &moved };
    // Heard from here on; whatever was said before shows in `over`.
    let cut = state.cut.notified();
    if state.over.load(SeqCst) {
        reset(&client);
        return;
    }
    let ended = tokio::select! {
        biased;
        ended = relay(&mut client, &mut backend, first, counted) => ended.is_ok(),
        () = cut => false,
        () = idle_for(idle, &moved) => false,
    };
    if !ended {
        // Neither side may take what it got for the whole.
        reset(&client);
        reset(&backend);
    }
}

/// Ends when nothing has moved for `span`.
async fn idle_for(span: Duration, moved: &AtomicU64) {
    loop {
        let before = moved.load(Relaxed);
        sleep(span).await;
        if moved.load(Relaxed) == before {
            return;
        }
    }
}

/// A connection to the backend that is picked; to another one, if that does not answer.
async fn connect(view: &View, from: SocketAddr, live: &Live) -> Option<(TcpStream, Open)> {
    let mut tried = Vec::new();
    while tried.len() < ATTEMPTS {
        let now = live.started.elapsed();
        let Some(number) = view.pick(from, &tried, now) else { break };
        let backend = &view.states[number];
        // Counted from the attempt on, or a burst would all go to the same one.
        let open = Open::new(backend);
        match timeout(view.listener.connect_timeout, open_to(backend.address)).await {
            Ok(Ok(stream)) => {
                live.passed(backend);
                view.went(from.ip(), number, now);
                return Some((stream, open));
            }
            // Our own fault: nothing is to be held against the backend.
            Ok(Err(error)) if ours(&error) => {
                tracing::warn!(%error, backend = %backend.address, "cannot connect");
                break;
            }
            Ok(Err(_)) | Err(_) => live.failed(backend),
        }
        tried.push(number);
    }
    live.nobody.fetch_add(1, Relaxed);
    None
}

async fn open_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_nodelay(true)?;
    socket.connect(address).await
}

/// No ports, files or memory left here.
fn ours(error: &io::Error) -> bool {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    const ENOBUFS: i32 = 105;
    error.kind() == io::ErrorKind::AddrNotAvailable
        || error.kind() == io::ErrorKind::OutOfMemory
        || matches!(error.raw_os_error(), Some(ENFILE | EMFILE | ENOBUFS))
}
