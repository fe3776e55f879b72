//! Carries bytes between a client at a Service's socket and the endpoint that was chosen for it.

use super::{Proxy, Route};
use crate::network::{Alive, ListenAddress, Network, Protocol};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// How long an endpoint is remembered for a client that sends no more datagrams.
const IDLE: Duration = Duration::from_secs(30);
/// How many clients send datagrams to one port at once; more are not heard.
const MOST_CLIENTS: usize = 1024;
/// How many datagrams of one client wait; more are lost, as they may be.
const WAITING: usize = 64;
const LARGEST_DATAGRAM: usize = 64 * 1024;
/// After an accept that failed, most likely because there are too many open files.
const BREATH: Duration = Duration::from_millis(100);

/// What a socket's task needs.
#[derive(Clone)]
pub(super) struct RelayContext {
    pub(super) proxy: Proxy,
    pub(super) network: Network,
    pub(super) _alive: Alive,
}

pub(super) async fn connections(context: RelayContext, listener: TcpListener, place: ListenAddress) {
    let mut carried = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((client, from)) => {
                    carried.spawn(carry(context.clone(), place.asked, client, from));
                }
                Err(_) => tokio::time::sleep(BREATH).await,
            },
            Some(_) = carried.join_next() => {}
        }
    }
}

async fn carry(context: RelayContext, asked: SocketAddr, mut client: TcpStream, from: SocketAddr) {
    let Route::To(endpoint) = context.proxy.route(asked, Protocol::Tcp, Some(from.ip())) else { return };
    match context.network.connect(None, endpoint).await {
        Ok(mut server) => {
            let _ = client.set_nodelay(true);
            // Either side may end it; there is nothing to report.
            let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
        }
        Err(error) => tracing::debug!(%asked, %endpoint, %error, "an endpoint does not answer"),
    }
}

pub(super) async fn datagrams(context: RelayContext, socket: UdpSocket, place: ListenAddress) {
    let socket = Arc::new(socket);
    let mut clients: HashMap<SocketAddr, mpsc::Sender<Vec<u8>>> = HashMap::new();
    let mut carried = JoinSet::new();
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        tokio::select! {
            received = socket.recv_from(&mut buffer) => {
                // An error is an earlier datagram's that a client did not want.
                let Ok((count, from)) = received else { continue };
                clients.retain(|_, client| !client.is_closed());
                if !clients.contains_key(&from) && clients.len() < MOST_CLIENTS {
                    let Route::To(endpoint) = context.proxy.route(place.asked, Protocol::Udp, Some(from.ip())) else {
                        continue;
                    };
                    let (sender, receiver) = mpsc::channel(WAITING);
                    carried.spawn(exchange(context.clone(), Arc::clone(&socket), from, endpoint, receiver));
                    clients.insert(from, sender);
                }
                if let Some(client) = clients.get(&from) {
                    let _ = client.try_send(buffer[..count].to_vec());
                }
            }
            Some(_) = carried.join_next() => {}
        }
    }
}

/// Between one client and its endpoint, until neither has said anything for a while.
async fn exchange(
    context: RelayContext,
    socket: Arc<UdpSocket>,
    client: SocketAddr,
    endpoint: SocketAddr,
    mut sent: mpsc::Receiver<Vec<u8>>,
) {
    let Ok(upstream) = context.network.connect_udp(None, endpoint).await else { return };
    let mut buffer = vec![0; LARGEST_DATAGRAM];
    loop {
        let done = tokio::select! {
            datagram = sent.recv() => match datagram {
                Some(datagram) => upstream.send(&datagram).await.is_err(),
                None => true,
            },
            answer = upstream.recv(&mut buffer) => match answer {
                Ok(count) => socket.send_to(&buffer[..count], client).await.is_err(),
                Err(_) => true,
            },
            () = tokio::time::sleep(IDLE) => true,
        };
        if done {
            return;
        }
    }
}
