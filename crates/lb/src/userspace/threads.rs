//! The threads that carry connections: one per processor, each with a runtime of its own.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, UdpSocket};
use tokio::sync::{mpsc, oneshot};

use super::live::Live;
use super::sockets::{self, Bound};
use super::{tcp, udp};
use crate::desired::Protocol;
use crate::error::LbError;

enum Command {
    Listen(Bound, Arc<Live>),
    Close(u64),
}

/// All threads. They end when this is dropped.
#[derive(Debug)]
pub(crate) struct Threads {
    commands: Vec<mpsc::UnboundedSender<Command>>,
}

impl Threads {
    pub(crate) fn start(count: usize) -> Result<Self, LbError> {
        let commands = (0..count.max(1)).map(|number| start_one(number).map_err(LbError::Thread));
        Ok(Self { commands: commands.collect::<Result<_, _>>()? })
    }

    /// Listens in all threads; gives back where.
    pub(crate) fn listen(
        &self,
        protocol: Protocol,
        address: SocketAddr,
        live: &Arc<Live>,
    ) -> io::Result<SocketAddr> {
        let (chosen, bound) = sockets::bind(protocol, address, self.commands.len())?;
        for (thread, socket) in self.commands.iter().zip(bound) {
            // A thread ends only with us.
            let _ = thread.send(Command::Listen(socket, Arc::clone(live)));
        }
        Ok(chosen)
    }

    /// Takes no more clients at this listener. Streams that are open go on.
    pub(crate) fn close(&self, number: u64) {
        for thread in &self.commands {
            let _ = thread.send(Command::Close(number));
        }
    }
}

fn start_one(number: usize) -> io::Result<mpsc::UnboundedSender<Command>> {
    let (sender, commands) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let run = move || runtime.block_on(obey(commands));
    std::thread::Builder::new().name(format!("lb-{number}")).spawn(run)?;
    Ok(sender)
}

async fn obey(mut commands: mpsc::UnboundedReceiver<Command>) {
    // Dropping its sender closes a listener.
    let mut listening: HashMap<u64, oneshot::Sender<()>> = HashMap::new();
    while let Some(command) = commands.recv().await {
        match command {
            Command::Listen(bound, live) => {
                let (close, closing) = oneshot::channel();
                listening.insert(live.number, close);
                let began = match bound {
                    Bound::Tcp(socket) => TcpListener::from_std(socket)
                        .map(|socket| drop(tokio::spawn(tcp::accept_all(socket, live, closing)))),
                    Bound::Udp(socket) => UdpSocket::from_std(socket)
                        .map(|socket| drop(tokio::spawn(udp::carry_all(socket, live, closing)))),
                };
                if let Err(error) = began {
                    tracing::error!(%error, "a worker thread cannot listen");
                }
            }
            Command::Close(number) => drop(listening.remove(&number)),
        }
    }
}
