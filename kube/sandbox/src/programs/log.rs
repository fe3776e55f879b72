//! What a container writes: kept as far as there is room, read from any place, followed.

use atoll_kubeapi::pods::PodLogOptions;
use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// How much of a container's log is kept.
const ROOM: usize = 256 * 1024;
/// A longer line is kept in several pieces.
const LONGEST: usize = 16 * 1024;
/// How many pieces wait for a reader.
const WAITING: usize = 64;

/// Where something was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

/// A line, or a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) at: Timestamp,
    pub(crate) stream: Stream,
    pub(crate) text: Bytes,
}

impl Piece {
    fn ends_line(&self) -> bool {
        self.text.ends_with(b"\n")
    }
}

/// The log of one run of a container. Clones are the same log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: Mutex<State>,
    /// Sent whenever there is more to read.
    more: watch::Sender<()>,
}

/// What a piece costs beside its text.
const PIECE: usize = 64;

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    /// The number of the first piece that is kept.
    first: u64,
    bytes: usize,
    ended: bool,
}

impl State {
    fn next(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }
}

impl Log {
    pub(crate) fn write(&self, stream: Stream, text: &[u8]) {
        self.write_at(Timestamp::now(), stream, text);
    }

    fn write_at(&self, at: Timestamp, stream: Stream, text: &[u8]) {
        let mut state = self.state();
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            for part in line.chunks(LONGEST) {
                state.bytes += part.len() + PIECE;
                state.pieces.push_back(Piece { at, stream, text: Bytes::copy_from_slice(part) });
            }
        }
        while state.bytes > ROOM {
            let Some(lost) = state.pieces.pop_front() else { break };
            state.bytes -= lost.text.len() + PIECE;
            state.first += 1;
        }
        drop(state);
        self.0.more.send_replace(());
    }

    /// Nothing is written any more.
    pub(crate) fn end(&self) {
        self.state().ended = true;
        self.0.more.send_replace(());
    }

    /// The number of the piece that will be written next.
    pub(crate) fn next(&self) -> u64 {
        self.state().next()
    }

    /// What is kept from piece `from` on, the number of the next one, and whether there will be one.
    fn from(&self, from: u64) -> (Vec<Piece>, u64, bool) {
        let state = self.state();
        let skip = usize::try_from(from.saturating_sub(state.first)).unwrap_or(usize::MAX);
        (state.pieces.iter().skip(skip).cloned().collect(), state.next(), state.ended)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is written from piece `from` on, until the log ends.
pub(crate) fn followed(log: Log, mut from: u64) -> mpsc::Receiver<Piece> {
    let (sender, receiver) = mpsc::channel(WAITING);
    tokio::spawn(async move {
        let mut more = log.0.more.subscribe();
        loop {
            more.mark_unchanged();
            let (pieces, next, ended) = log.from(from);
            from = next;
            for piece in pieces {
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
            if ended {
                return;
            }
            tokio::select! {
                changed = more.changed() => if changed.is_err() { return },
                () = sender.closed() => return,
            }
        }
    });
    receiver
}

/// The part of a log that is asked for, and the number of the first piece that is not in it (unless it is followed).
pub(crate) fn selected(log: &Log, options: &PodLogOptions) -> (mpsc::Receiver<Bytes>, u64) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let (kept, begin, _) = log.from(0);
    let kept = wanted(kept, options, Timestamp::now());
    let (follow, mut form) = (options.follow, Form { options: options.clone(), written: 0, within: false });
    let log = log.clone();
    tokio::spawn(async move {
        for piece in kept {
            if form.send(&sender, &piece).await.is_none() {
                return;
            }
        }
        if follow {
            let mut coming = followed(log, begin);
            while let Some(piece) = coming.recv().await {
                if form.send(&sender, &piece).await.is_none() {
                    return;
                }
            }
        }
    });
    (receiver, begin)
}

/// The pieces that `since` and `tail` leave.
fn wanted(mut pieces: Vec<Piece>, options: &PodLogOptions, now: Timestamp) -> Vec<Piece> {
    if let Some(seconds) = options.since_seconds {
        let ago = SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX));
        if let Ok(since) = now.checked_sub(ago) {
            pieces.retain(|piece| piece.at >= since);
        }
    }
    if let Some(lines) = options.tail_lines {
        let mut left = lines;
        let mut begin = pieces.len();
        while begin > 0 {
            let ends = pieces[begin - 1].ends_line() || begin == pieces.len();
            if ends && left == 0 {
                break;
            }
            left -= usize::from(ends);
            begin -= 1;
        }
        pieces.drain(..begin);
    }
    pieces
}

/// How pieces are shown.
struct Form {
    options: PodLogOptions,
    written: usize,
    /// The last piece did not end its line.
    within: bool,
}

impl Form {
    /// Nothing if no more is wanted.
    async fn send(&mut self, sender: &mpsc::Sender<Bytes>, piece: &Piece) -> Option<()> {
        let mut text = match self.options.timestamps && !self.within {
            true => Bytes::from([format!("{} ", piece.at).as_bytes(), &piece.text].concat()),
            false => piece.text.clone(),
        };
        self.within = !piece.ends_line();
        let left = self.options.limit_bytes.map_or(usize::MAX, |limit| limit - self.written.min(limit));
        text.truncate(left);
        self.written += text.len();
        if text.is_empty() {
            return None;
        }
        sender.send(text).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn all(mut receiver: mpsc::Receiver<Bytes>) -> String {
        let mut text = String::new();
        while let Some(bytes) = receiver.recv().await {
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
        text
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + second).unwrap()
    }

    #[tokio::test]
    async fn a_part_of_the_log_is_read() {
        let log = Log::default();
        for (second, text) in [(0, "one\ntwo\nth"), (5, "ree\nfour\n")] {
            log.write_at(at(second), Stream::Stdout, text.as_bytes());
        }
        let none = PodLogOptions::default();
        for (options, want) in [
            (none.clone(), "one\ntwo\nthree\nfour\n"),
            (PodLogOptions { tail_lines: Some(2), ..none.clone() }, "three\nfour\n"),
            (PodLogOptions { tail_lines: Some(0), ..none.clone() }, ""),
            (PodLogOptions { limit_bytes: Some(5), ..none.clone() }, "one\nt"),
            (
                PodLogOptions { timestamps: true, tail_lines: Some(1), ..none.clone() },
                "2023-11-14T22:13:25Z four\n",
            ),
            (PodLogOptions { since_seconds: Some(3600), ..none.clone() }, ""),
        ] {
            assert_eq!(all(selected(&log, &options).0).await, want, "{options:?}");
        }
    }

    #[tokio::test]
    async fn a_follower_misses_nothing_and_ends_with_the_log() {
        let log = Log::default();
        log.write(Stream::Stdout, b"before\n");
        let options = PodLogOptions { follow: true, ..PodLogOptions::default() };
        let (mut receiver, _) = selected(&log, &options);
        assert_eq!(receiver.recv().await.unwrap(), "before\n");
        log.write(Stream::Stderr, b"after\n");
        log.end();
        assert_eq!(all(receiver).await, "after\n");
    }

    #[test]
    fn old_lines_make_room() {
        let log = Log::default();
        for _ in 0..40 {
            log.write(Stream::Stdout, &[b'x'; LONGEST]);
        }
        let (kept, _, _) = log.from(0);
        assert_eq!(kept.len(), ROOM / (LONGEST + PIECE));
        assert_eq!(log.next(), 40);
    }
}
