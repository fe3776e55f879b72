//! A session over a WebSocket: the shell between a connection and a program's input and output.
//!
//! ```text
//!   client ──▶ listen ──▶ stdin          a full stdin stops the reading
//!   client ◀── speak ◀── output, Exit    a full socket stops the writing
//! ```

use super::channels::{self, Channels, Input, Protocol, Purpose};
use super::{Exit, Output, Session};
use crate::http::websocket::{self, Decoder, Event};
use bytes::{Bytes, BytesMut};
use std::pin::pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};

/// How much is read at once, and so the longest piece of input.
const PIECE: usize = 16 * 1024;
/// A client that left is noticed when something is sent to it. (Its close frame may stand behind input that the program does
/// not read.)
const PING_EVERY: Duration = Duration::from_secs(15);
/// How long a farewell may take.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a client asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionOptions {
    pub(crate) protocol: Protocol,
    pub(crate) purpose: Purpose,
    pub(crate) stdout: bool,
    pub(crate) stderr: bool,
}

/// How the client's side ended.
enum End {
    /// It said farewell, or broke the rules: it is told this code.
    Told(u16),
    /// It is gone.
    Gone,
}

/// Carries a session over a connection that became a WebSocket, until either side ends it. `session` may be why there is
/// none: the client is told in the same way as when a program fails.
pub(crate) async fn carry(
    io: impl AsyncRead + AsyncWrite,
    options: SessionOptions,
    session: Result<Session, String>,
) {
    let (reader, writer) = tokio::io::split(io);
    let (mut reader, mut writer) = (pin!(reader), pin!(writer));
    let session = session.unwrap_or_else(failed);
    let (pings, asked) = mpsc::channel(2);
    let (hang_up, hung_up) = oneshot::channel();
    let spoken = {
        let mut spoken = pin!(speak(&mut writer, options, session.output, session.ended, asked, hung_up));
        tokio::select! {
            spoken = &mut spoken => spoken,
            end = listen(&mut reader, options.protocol, session.stdin, pings) => match end {
                End::Gone => return,
                End::Told(code) => {
                    let _ = hang_up.send(code);
                    tokio::time::timeout(FAREWELL, spoken).await.unwrap_or(Ok(()))
                }
            },
        }
    };
    if spoken.is_ok() {
        // What the client still sends is read: a connection that is closed before would be reset, and with it what the
        // client has not read yet.
        let drain = async {
            let mut rest = [0; 1024];
            while reader.read(&mut rest).await.is_ok_and(|read| read > 0) {}
        };
        let _ = tokio::time::timeout(FAREWELL, drain).await;
        let _ = writer.shutdown().await;
    }
}

/// A session that ended before it began.
fn failed(why: String) -> Session {
    let (ended, exit) = oneshot::channel();
    let _ = ended.send(Exit::Failed(why));
    Session { stdin: None, output: mpsc::channel(1).1, ended: exit }
}

/// Reads what the client sends, until it ends.
async fn listen(
    mut reader: impl AsyncRead + Unpin,
    protocol: Protocol,
    mut stdin: Option<mpsc::Sender<Bytes>>,
    pings: mpsc::Sender<Bytes>,
) -> End {
    let (mut decoder, mut channels, mut buffer) =
        (Decoder::of_client(), Channels::new(protocol), BytesMut::new());
    loop {
        loop {
            let event = match decoder.next(&mut buffer) {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(violation) => {
                    tracing::debug!(%violation, "a client violated the WebSocket protocol");
                    return End::Told(websocket::PROTOCOL_ERROR);
                }
            };
            let input = match event {
                Event::Data { bytes, first, last } => channels.take(bytes, first, last),
                Event::Ping(payload) => {
                    // Who asks faster than is answered hears the older answers.
                    let _ = pings.try_send(payload);
                    continue;
                }
                Event::Pong => continue,
                Event::Close => return End::Told(websocket::NORMAL),
            };
            match input {
                Ok(Input::Stdin(bytes)) => {
                    // A program that reads no more loses what it did not read, as with a closed pipe.
                    if let Some(to) = &stdin
                        && to.send(bytes).await.is_err()
                    {
                        stdin = None;
                    }
                }
                Ok(Input::StdinEnds) => stdin = None,
                Ok(Input::Nothing) => {}
                Err(bad) => {
                    tracing::debug!(%bad, "a client violated the channel protocol");
                    return End::Told(websocket::PROTOCOL_ERROR);
                }
            }
        }
        buffer.reserve(PIECE);
        match reader.read_buf(&mut buffer).await {
            Ok(0) | Err(_) => return End::Gone,
            Ok(_) => {}
        }
    }
}

/// Sends what the program writes, then how it ended.
async fn speak(
    mut writer: impl AsyncWrite + Unpin,
    options: SessionOptions,
    mut output: mpsc::Receiver<Output>,
    mut ended: oneshot::Receiver<Exit>,
    mut asked: mpsc::Receiver<Bytes>,
    mut hung_up: oneshot::Receiver<u16>,
) -> std::io::Result<()> {
    let mut frame = BytesMut::new();
    // An empty message says that the connection stands.
    let greeting = match options {
        SessionOptions { stdout: true, .. } => channels::STDOUT,
        SessionOptions { stderr: true, .. } => channels::STDERR,
        _ => channels::ERROR,
    };
    websocket::put_message(greeting, &[], &mut frame);
    let mut writing = true;
    loop {
        writer.write_all(&frame).await?;
        writer.flush().await?;
        frame.clear();
        tokio::select! {
            biased;
            Ok(code) = &mut hung_up => {
                websocket::put_close(code, &mut frame);
                break;
            }
            Some(payload) = asked.recv() => websocket::put_pong(&payload, &mut frame),
            piece = output.recv(), if writing => match piece {
                Some(Output::Stdout(bytes)) if options.stdout => {
                    websocket::put_message(channels::STDOUT, &bytes, &mut frame);
                }
                Some(Output::Stderr(bytes)) if options.stderr => {
                    websocket::put_message(channels::STDERR, &bytes, &mut frame);
                }
                Some(Output::Stdout(_) | Output::Stderr(_)) => {}
                None => writing = false,
            },
            exit = &mut ended, if !writing => {
                let exit = exit.unwrap_or_else(|_| Exit::Failed("the exit status is not known".to_owned()));
                let status = channels::status(options.purpose, &exit).to_string();
                websocket::put_message(channels::ERROR, status.as_bytes(), &mut frame);
                websocket::put_close(websocket::NORMAL, &mut frame);
                break;
            }
            () = tokio::time::sleep(PING_EVERY) => websocket::put_ping(&mut frame),
        }
    }
    writer.write_all(&frame).await?;
    writer.flush().await
}

#[cfg(test)]
mod tests;
