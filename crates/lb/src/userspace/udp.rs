//! Datagrams: a client's flow keeps its backend until it falls silent or the backend is lost.
//!
//! The kernel gives all datagrams of a client to the same socket, so a thread's flows are its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::{Notify, oneshot};
use tokio::time::timeout;

use super::live::{Live, Open, OpenConnection, lock};

const LONGEST: usize = 65_535;
/// A client's datagram is tried with so many backends.
const ATTEMPTS: usize = 2;

/// So many answers at once, then others of this thread get their turn.
const BURST: usize = 32;

thread_local! {
    /// For answers: a buffer per flow would be most of what a flow costs.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; LONGEST]);
}

struct Flow {
    socket: UdpSocket,
    open: Open,
    _place: OpenConnection,
    /// Goes up with every datagram, either way.
    moved: AtomicU64,
    /// Told when another has taken its place, or its listener has ended.
    ended: Notify,
}

type Flows = Arc<Mutex<HashMap<SocketAddr, Arc<Flow>>>>;

/// Carries datagrams until `closing`.
pub(crate) async fn carry_all(socket: UdpSocket, live: Arc<Live>, mut closing: oneshot::Receiver<()>) {
    let (socket, flows) = (Arc::new(socket), Flows::default());
    let mut buffer = vec![0; LONGEST];
    loop {
        tokio::select! {
            biased;
            _ = &mut closing => break,
            received = socket.recv_from(&mut buffer) => match received {
                Ok((length, from)) => forward(&buffer[..length], from, &socket, &flows, &live).await,
                // An answer found no listening client, which the kernel tells the next reader.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
                Err(error) => {
                    tracing::warn!(%error, "cannot read a datagram");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }
    // They hold the socket, and the kernel would go on giving it clients whom no task hears.
    for (_, flow) in lock(&flows).drain() {
        flow.ended.notify_one();
    }
}

async fn forward(
    datagram: &[u8],
    from: SocketAddr,
    socket: &Arc<UdpSocket>,
    flows: &Flows,
    live: &Arc<Live>,
) {
    let mut tried = Vec::new();
    while tried.len() < ATTEMPTS {
        let known = lock(flows).get(&from).map(Arc::clone);
        let flow = match known.filter(|flow| !flow.open.0.lost.load(Relaxed)) {
            Some(flow) => flow,
            None => match open_flow(from, &tried, socket, flows, live).await {
                Some(flow) => flow,
                None => return,
            },
        };
        // Not tokio's: it would not try a socket that it has just been given before it was told that it can be written to.
        match SockRef::from(&flow.socket).send(datagram) {
            Ok(_) => {
                flow.moved.fetch_add(1, Relaxed);
                flow.open.0.to_backend.fetch_add(datagram.len() as u64, Relaxed);
                return;
            }
            // An earlier datagram found no backend there.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                live.failed(&flow.open.0);
                end(flows, from, &flow);
                tried.push(flow.open.0.address);
            }
            // Full buffers lose datagrams, here as anywhere.
            Err(_) => return,
        }
    }
}

/// Begins a flow to the backend that is picked, and carries its answers.
async fn open_flow(
    from: SocketAddr,
    tried: &[SocketAddr],
    socket: &Arc<UdpSocket>,
    flows: &Flows,
    live: &Arc<Live>,
) -> Option<Arc<Flow>> {
    let view = live.view.load_full();
    let now = live.started.elapsed();
    let tried: Vec<usize> = tried.iter().filter_map(|address| view.picture.number_of(*address)).collect();
    let Some(number) = view.pick(from, &tried, now) else {
        live.nobody.fetch_add(1, Relaxed);
        return None;
    };
    let place = live.admit(from.ip(), view.listener.limits)?;
    let backend = &view.states[number];
    let open = Open::new(backend);
    let upstream = match connected(backend.address).await {
        Ok(upstream) => upstream,
        Err(error) => {
            tracing::warn!(%error, backend = %backend.address, "cannot open a flow");
            live.nobody.fetch_add(1, Relaxed);
            return None;
        }
    };
    backend.opened.fetch_add(1, Relaxed);
    view.went(from.ip(), number, now);
    let (moved, ended) = (AtomicU64::new(0), Notify::new());
    let flow = Arc::new(Flow { socket: upstream, open, _place: place, moved, ended });
    if let Some(lost) = lock(flows).insert(from, Arc::clone(&flow)) {
        lost.ended.notify_one();
    }
    let idle = view.listener.idle_timeout;
    tokio::spawn(answers(
        from,
        Arc::clone(&flow),
        Arc::clone(socket),
        Arc::clone(flows),
        Arc::clone(live),
        idle,
    ));
    Some(flow)
}

async fn connected(address: SocketAddr) -> io::Result<UdpSocket> {
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).await?;
    socket.connect(address).await?;
    Ok(socket)
}

/// Carries what the backend sends, until the flow is idle, replaced or cut.
async fn answers(
    client: SocketAddr,
    flow: Arc<Flow>,
    socket: Arc<UdpSocket>,
    flows: Flows,
    live: Arc<Live>,
    idle: Duration,
) {
    let mut cut = pin!(flow.open.0.cut.notified());
    let mut ended = pin!(flow.ended.notified());
    loop {
        if flow.open.0.over.load(SeqCst) {
            break; // said before it could be heard here
        }
        let before = flow.moved.load(Relaxed);
        tokio::select! {
            readable = timeout(idle, flow.socket.readable()) => match readable {
                Ok(Ok(())) => {}
                Err(_) if flow.moved.load(Relaxed) != before => continue,
                Ok(Err(_)) | Err(_) => break,
            },
            () = &mut cut => break,
            () = &mut ended => break,
        }
        match answer_some(client, &flow, &socket) {
            Ok(()) => live.answered(&flow.open.0),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                if error.kind() == io::ErrorKind::ConnectionRefused {
                    live.failed(&flow.open.0);
                }
                break;
            }
        }
        if flow.open.0.lost.load(Relaxed) {
            break;
        }
    }
    end(&flows, client, &flow);
}

/// Carries what is there, up to a burst.
fn answer_some(client: SocketAddr, flow: &Flow, socket: &UdpSocket) -> io::Result<()> {
    BUFFER.with_borrow_mut(|buffer| {
        for number in 0..BURST {
            let length = match flow.socket.try_recv(buffer) {
                Err(error) if number > 0 && error.kind() == io::ErrorKind::WouldBlock => break,
                other => other?,
            };
            flow.moved.fetch_add(1, Relaxed);
            flow.open.0.to_client.fetch_add(length as u64, Relaxed);
            // Lost if the client's side is full.
            let _ = socket.try_send_to(&buffer[..length], client);
        }
        Ok(())
    })
}

/// Forgets the flow, unless another has its place already.
fn end(flows: &Flows, client: SocketAddr, flow: &Arc<Flow>) {
    let mut flows = lock(flows);
    if flows.get(&client).is_some_and(|known| Arc::ptr_eq(known, flow)) {
        flows.remove(&client);
    }
}
