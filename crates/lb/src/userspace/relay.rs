//! Carries bytes both ways between a client and a backend until both have finished.
//!
//! Short exchanges are copied through one buffer per thread. Once a direction has carried [`BULK`] and its reads come in large pieces, it is spliced
//! through a pipe, without passing through our memory. When the pieces get small again, it is copied again.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use rustix::net::{SendFlags, send};
use rustix::pipe::{SpliceFlags, splice};
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};

use super::pipes::{self, Pipe};

/// After so many bytes splicing can pay.
const BULK: u64 = 64 * 1024;
const BUFFER: usize = 32 * 1024;
/// A read of this size says that there is more.
const LARGE: usize = 16 * 1024;
/// A splice of less than this is dearer than a copy.
const SMALL: usize = 4 * 1024;
/// So many rounds, then others of this thread get their turn.
const ROUNDS: usize = 16;
/// Counted at least this often, so that long connections show.
const COUNT_EVERY: u64 = 1 << 20;

thread_local! {
    static BUFFER_OF_THREAD: RefCell<Box<[u8]>> = RefCell::new(vec![0; BUFFER].into_boxed_slice());
}

/// Which side went away, if it was not a proper end.
#[derive(Debug)]
pub(crate) struct Broken(#[allow(dead_code, reason = "for logs")] pub(crate) io::Error);

/// Where bytes are counted.
pub(crate) struct Counted<'a> {
    pub(crate) to_backend: &'a AtomicU64,
    pub(crate) to_client: &'a AtomicU64,
    /// Goes up whenever something moves: whoever looks can tell an idle connection.
    pub(crate) moved: &'a AtomicU64,
}

/// Carries bytes until both sides have finished. `first` goes to the backend before anything else.
pub(crate) async fn relay(
    client: &mut TcpStream,
    backend: &mut TcpStream,
    first: Vec<u8>,
    counted: Counted<'_>,
) -> Result<(), Broken> {
    let (client_out, client_in) = client.split();
    let (backend_out, backend_in) = backend.split();
    let mut there = Direction::new(client_out, backend_in, first, counted.to_backend, counted.moved);
    let mut back = Direction::new(backend_out, client_in, Vec::new(), counted.to_client, counted.moved);
    let both = poll_fn(|cx| {
        let (going, coming) = (there.poll(cx, back.is_done()), back.poll(cx, there.is_done()));
        match (going, coming) {
            (Poll::Ready(Err(error)), _) | (_, Poll::Ready(Err(error))) => Poll::Ready(Err(Broken(error))),
            (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(Ok(())),
            (Poll::Pending, _) | (_, Poll::Pending) => Poll::Pending,
        }
    });
    pin!(both).await
}

/// Makes the peer of `stream` see a reset rather than a proper end.
pub(crate) fn reset(stream: &TcpStream) {
    // If that fails it sees an end, which is the lesser evil.
    let _ = SockRef::from(stream).set_linger(Some(std::time::Duration::ZERO));
}

/// Whether the end of `stream` has come. To be asked after a read that found less than it had room for: what is readable then can only be
/// the end.
fn has_ended(stream: &TcpStream) -> bool {
    stream.try_io(Interest::READABLE, || Ok(())).is_ok()
}

/// Leaves the last piece to go together with the end that is about to follow: a packet less, and the reader wakes up once.
fn send_with_end(to: &TcpStream, piece: &[u8]) -> Poll<io::Result<usize>> {
    let send = || send(to, piece, SendFlags::MORE | SendFlags::NOSIGNAL).map_err(io::Error::from);
    match to.try_io(Interest::WRITABLE, send) {
        // Whoever holds it waits.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
        sent => Poll::Ready(sent),
    }
}

struct Direction<'a> {
    from: ReadHalf<'a>,
    to: WriteHalf<'a>,
    /// What was read and not yet written, and how much of it was.
    held: Vec<u8>,
    written: usize,
    pipe: Option<Pipe>,
    bulk: bool,
    carried: u64,
    uncounted: u64,
    count: &'a AtomicU64,
    moved: &'a AtomicU64,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Flows,
    /// The reader has heard the end; what is held still has to go.
    Ending,
    Done,
}

impl<'a> Direction<'a> {
    fn new(
        from: ReadHalf<'a>,
        to: WriteHalf<'a>,
        held: Vec<u8>,
        count: &'a AtomicU64,
        moved: &'a AtomicU64,
    ) -> Self {
        Self {
            from,
            to,
            held,
            written: 0,
            pipe: None,
            bulk: false,
            carried: 0,
            uncounted: 0,
            count,
            moved,
            stage: Stage::Flows,
        }
    }

    fn is_done(&self) -> bool {
        self.stage == Stage::Done
    }

    /// `last`: the other direction has finished, and both sockets are closed when this one has.
    fn poll(&mut self, cx: &mut Context<'_>, last: bool) -> Poll<io::Result<()>> {
        for _ in 0..ROUNDS {
            if self.stage == Stage::Done {
                return Poll::Ready(Ok(()));
            }
            if self.empty(cx)?.is_pending() {
                self.top_up()?;
                return Poll::Pending;
            }
            if !self.bulk {
                // Whoever copies needs no pipe.
                self.rest();
            }
            if self.stage == Stage::Ending {
                // To close it says the same, without a call of its own.
                if !last {
                    SockRef::from(self.to.as_ref()).shutdown(Shutdown::Write)?;
                }
                self.stage = Stage::Done;
                continue;
            }
            if self.bulk { ready!(self.splice_in(cx))? } else { ready!(self.copy(cx))? }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Writes what is held, in memory or in the pipe.
    fn empty(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.written < self.held.len() {
            let sent = ready!(Pin::new(&mut self.to).poll_write(cx, &self.held[self.written..]))?;
            self.written += sent;
        }
        if self.written > 0 {
            (self.held, self.written) = (Vec::new(), 0);
        }
        while let Some(pipe) = self.pipe.as_mut().filter(|pipe| pipe.holds > 0) {
            let to: &TcpStream = self.to.as_ref();
            let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
            let move_out = || splice(&pipe.out, None, to, None, pipe.holds, flags).map_err(io::Error::from);
            match to.try_io(Interest::WRITABLE, move_out) {
                Ok(0) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Ok(sent) => pipe.holds -= sent,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => ready!(to.poll_write_ready(cx))?,
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// One piece through memory; what the writer does not take at once is held.
    fn copy(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        BUFFER_OF_THREAD.with_borrow_mut(|buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(Pin::new(&mut self.from).poll_read(cx, &mut read))?;
            let piece = read.filled();
            if piece.is_empty() {
                self.stage = Stage::Ending;
                return Poll::Ready(Ok(()));
            }
            let length = piece.len();
            let written = if length < BUFFER && has_ended(self.from.as_ref()) {
                send_with_end(self.to.as_ref(), piece)
            } else {
                Pin::new(&mut self.to).poll_write(cx, piece)
            };
            match written {
                Poll::Ready(Ok(sent)) if sent == length => {}
                Poll::Ready(Ok(sent)) => self.held.extend_from_slice(&piece[sent..]),
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => self.held.extend_from_slice(piece),
            }
            self.carry(length);
            self.bulk = self.carried >= BULK && length >= LARGE;
            Poll::Ready(Ok(()))
        })
    }

    /// One piece into the pipe.
    fn splice_in(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let pipe = match &mut self.pipe {
            Some(pipe) => pipe,
            None => match pipes::take() {
                Ok(pipe) => self.pipe.insert(pipe),
                // No files or pages left: copying needs none.
                Err(_) => {
                    self.bulk = false;
                    self.carried = 0;
                    return Poll::Ready(Ok(()));
                }
            },
        };
        let from: &TcpStream = self.from.as_ref();
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        let move_in = || splice(from, None, &pipe.into, None, pipe.capacity, flags).map_err(io::Error::from);
        match from.try_io(Interest::READABLE, move_in) {
            Ok(0) => {
                self.rest();
                self.stage = Stage::Ending;
            }
            Ok(read) => {
                pipe.holds = read;
                self.bulk = read >= SMALL;
                self.carry(read);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                // Whoever waits needs no pipe.
                self.rest();
                return self.from.as_ref().poll_read_ready(cx);
            }
            Err(error) => return Poll::Ready(Err(error)),
        }
        Poll::Ready(Ok(()))
    }

    /// While the writer is full, the pipe takes what it has room for: the sender goes on meanwhile.
    ///
    /// Whether the reader has nothing or the pipe is full can't be told apart, so nothing is concluded: the writer wakes us up.
    fn top_up(&mut self) -> io::Result<()> {
        let Some(pipe) = self.pipe.as_mut().filter(|_| self.stage == Stage::Flows) else { return Ok(()) };
        let room = pipe.capacity.saturating_sub(pipe.holds);
        if pipe.holds == 0 || room < LARGE {
            return Ok(());
        }
        let from: &TcpStream = self.from.as_ref();
        match splice(from, None, &pipe.into, None, room, SpliceFlags::MOVE | SpliceFlags::NONBLOCK) {
            Ok(0) => self.stage = Stage::Ending,
            Ok(read) => {
                pipe.holds += read;
                self.carry(read);
            }
            Err(rustix::io::Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    fn rest(&mut self) {
        if let Some(pipe) = self.pipe.take() {
            pipes::give_back(pipe);
        }
    }

    fn carry(&mut self, bytes: usize) {
        self.carried += bytes as u64;
        self.uncounted += bytes as u64;
        // One writer: no need to lock the bus.
        self.moved.store(self.moved.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        if self.uncounted >= COUNT_EVERY {
            self.count.fetch_add(std::mem::take(&mut self.uncounted), Ordering::Relaxed);
        }
    }
}

impl Drop for Direction<'_> {
    fn drop(&mut self) {
        self.count.fetch_add(self.uncounted, Ordering::Relaxed);
        self.rest();
    }
}
