//! Streams: accept, pick, connect, and carry until both sides have finished.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::task::Poll;
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, timeout};

use super::live::{BackendState, Live, Open, OpenConnection, View};
use super::relay::{Broken, Counted, relay, reset};
use crate::limits::ours;
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
    let view = live.view.load_full();
    match live.admit(from.ip(), view.listener.limits) {
        Some(place) => drop(tokio::spawn(serve(stream, from, view, place))),
        None => reset(&stream),
    }
}

async fn serve(mut client: TcpStream, from: SocketAddr, view: Arc<View>, place: OpenConnection) {
    let Some((mut backend, open)) = connect(&view, from, &place.live).await else {
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
    let relayed = relay(&mut client, &mut backend, first, counted);
    if !unless_ended(relayed, state, idle, &moved).await {
        // Neither side may take what it got for the whole.
        reset(&client);
        reset(&backend);
    }
}

/// Whether it is carried to its end: it may be cut, or nothing moves for `idle`.
///
/// All of it is one task, which any of the three wakes up. To be cut and to be idle are listened for once, and not in every turn: it takes a
/// lock that all connections to a backend share.
async fn unless_ended(
    relayed: impl Future<Output = Result<(), Broken>>,
    backend: &BackendState,
    idle: Duration,
    moved: &AtomicU64,
) -> bool {
    let mut relayed = pin!(relayed);
    let mut cut = pin!(backend.cut.notified());
    let mut silence = pin!(sleep(idle));
    let (mut listening, mut before) = (false, 0);
    poll_fn(|cx| {
        if let Poll::Ready(ended) = relayed.as_mut().poll(cx) {
            return Poll::Ready(ended.is_ok());
        }
        if !listening {
            listening = true;
            if cut.as_mut().poll(cx).is_ready() || silence.as_mut().poll(cx).is_ready() {
                return Poll::Ready(false);
            }
        }
        // Said before it is told: whoever did not hear it sees it.
        if backend.over.load(SeqCst) {
            return Poll::Ready(false);
        }
        if silence.is_elapsed() {
            let now = moved.load(Relaxed);
            if now == before {
                return Poll::Ready(false);
            }
            before = now;
            silence.as_mut().reset(Instant::now() + idle);
            if silence.as_mut().poll(cx).is_ready() {
                cx.waker().wake_by_ref();
            }
        }
        Poll::Pending
    })
    .await
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
