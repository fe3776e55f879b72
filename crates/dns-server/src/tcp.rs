//! Streams: for answers that were too long for a datagram. One thread for all of them.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use atoll_dns::Transport;
use atoll_monitoring::door::{Door, attend};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

use crate::error::ServerError;
use crate::live::Answerer;

/// A client that says nothing for so long is shown out.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many connections there are; for the next one the oldest is closed.
const MOST: usize = 1000;
/// So many of one address: no address fills the room alone.
const MOST_OF_ONE: usize = 100;

/// Answers on `sockets` in a thread of its own.
pub(crate) fn start(sockets: Vec<std::net::TcpListener>, answerer: Answerer) -> Result<(), ServerError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServerError::Thread)?;
    let run = move || runtime.block_on(answer_all(sockets, answerer));
    std::thread::Builder::new().name("dns-tcp".to_owned()).spawn(run).map(drop).map_err(ServerError::Thread)
}

async fn answer_all(sockets: Vec<std::net::TcpListener>, answerer: Answerer) {
    let answerer = Arc::new(Mutex::new(answerer));
    let door = Door::new(MOST, MOST_OF_ONE);
    for socket in sockets {
        match TcpListener::from_std(socket) {
            Ok(socket) => {
                let (answerer, door) = (Arc::clone(&answerer), Arc::clone(&door));
                tokio::spawn(async move {
                    attend(&socket, &door, |stream| {
                        let answerer = Arc::clone(&answerer);
                        async move {
                            // Whatever went wrong, the client knows.
                            let _ = converse(stream, &answerer).await;
                        }
                    })
                    .await;
                });
            }
            Err(error) => tracing::error!(%error, "cannot listen over TCP"),
        }
    }
    while !answerer.lock().unwrap_or_else(PoisonError::into_inner).over() {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Questions and answers, each after its length, until the client falls silent.
async fn converse(mut stream: TcpStream, answerer: &Mutex<Answerer>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let (mut packet, mut reply) = (Vec::new(), Vec::new());
    loop {
        let length = timeout(PATIENCE, stream.read_u16()).await??;
        packet.resize(usize::from(length), 0);
        timeout(PATIENCE, stream.read_exact(&mut packet)).await??;
        let since = Instant::now();
        let answered = answerer.lock().unwrap_or_else(PoisonError::into_inner).answer(
            &packet,
            Transport::Tcp,
            &mut reply,
        );
        // Whoever sends no question over a stream gets no second chance on it.
        let Some(summary) = answered else { return Ok(()) };
        let length = u16::try_from(reply.len()).map_err(io::Error::other)?;
        reply.splice(..0, length.to_be_bytes());
        timeout(PATIENCE, stream.write_all(&reply)).await??;
        answerer.lock().unwrap_or_else(PoisonError::into_inner).count(summary, Transport::Tcp, since);
    }
}
