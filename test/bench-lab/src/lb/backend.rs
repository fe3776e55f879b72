//! The backend: answers and streams, a thread per processor. It does as little as it can, since it shares the processors
//! with whom it helps to measure.

use super::wish::{ANSWER, REQUEST, Wish};
use anyhow::Context;
use std::io;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const BACKLOG: u32 = 4096;
const PIECE: usize = 256 * 1024;

/// Serves until it is killed.
pub(crate) fn serve(address: SocketAddr) -> anyhow::Result<()> {
    let listen = move || -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseaddr(true)?;
        socket.set_reuseport(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    super::on_every_processor(move |_| async move {
        let listener = listen().with_context(|| format!("cannot listen on {address}"))?;
        let piece: &'static [u8] = vec![7; PIECE].leak();
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(async move {
                // A client that goes away is how every stream ends.
                let _ = answer(stream, piece).await;
            });
        }
    })
}

async fn answer(mut stream: TcpStream, piece: &[u8]) -> io::Result<()> {
    stream.set_nodelay(true)?;
    // Room for more than one request: a read that does not fill it needs no second one to see that there is no more.
    let (mut buffer, mut held) = ([0; 2 * REQUEST], 0);
    loop {
        while held < REQUEST {
            let read = stream.read(&mut buffer[held..]).await?;
            if read == 0 {
                return Ok(());
            }
            held += read;
        }
        match Wish::read(&buffer) {
            Some(Wish::Answer) => stream.write_all(&piece[..ANSWER]).await?,
            Some(Wish::AnswerAndClose) => return stream.write_all(&piece[..ANSWER]).await,
            Some(Wish::Stream) => loop {
                stream.write_all(piece).await?;
            },
            None => return Ok(()),
        }
        buffer.copy_within(REQUEST..held, 0);
        held -= REQUEST;
    }
}
