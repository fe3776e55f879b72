//! The queue between requests and the disk: a push never waits.

use crate::event::Event;
use crate::file::{FileOptions, LogFile, OpenError};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many events may wait for the disk.
const QUEUE: usize = 8192;
/// Lines are written together, up to so many bytes.
const BATCH: usize = 256 << 10;
/// How often it is said that lines are lost.
const REMIND: Duration = Duration::from_secs(10);

/// Where lines go. It may be slow; only the log's own thread waits for it.
pub trait Sink: Send + 'static {
    /// Writes whole lines, or nothing.
    ///
    /// # Errors
    /// Nothing of them was written.
    fn append(&mut self, lines: &[u8]) -> io::Result<()>;
}

/// A log. Clones are the same log.
#[derive(Clone)]
pub struct Log(Arc<Shared>);

struct Shared {
    queue: SyncSender<Message>,
    counts: Arc<Counts>,
}

enum Message {
    Event(Box<Event>),
    /// Write what is there, and say so.
    Flush(Arc<Flushed>),
}

#[derive(Default)]
struct Flushed {
    done: Mutex<bool>,
    changed: Condvar,
}

#[derive(Default)]
struct Counts {
    written: AtomicU64,
    dropped: AtomicU64,
    complained: Mutex<Option<Instant>>,
}

impl std::fmt::Debug for Log {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Log").field("written", &self.written()).field("dropped", &self.dropped()).finish()
    }
}

impl Log {
    /// A log in a file. `missing` is the annotation of a line before which others are missing.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn in_file(options: FileOptions, missing: &'static str) -> Result<Self, OpenError> {
        let path = options.path.clone();
        let file = LogFile::open(options)?;
        Self::to(file, missing).map_err(|source| OpenError { path, source })
    }

    /// A log that goes elsewhere.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn to(sink: impl Sink, missing: &'static str) -> io::Result<Self> {
        let (queue, events) = sync_channel(QUEUE);
        let counts = Arc::<Counts>::default();
        let writer = Writer { sink, counts: Arc::clone(&counts), missing, told: 0 };
        std::thread::Builder::new().name("audit".into()).spawn(move || writer.run(&events))?;
        Ok(Self(Arc::new(Shared { queue, counts })))
    }

    /// Takes an event, or counts it as dropped. Never waits.
    pub fn push(&self, event: Event) {
        match self.0.queue.try_send(Message::Event(Box::new(event))) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.0.counts.lost(1, "the disk is too slow"),
            Err(TrySendError::Disconnected(_)) => self.0.counts.lost(1, "its writer has ended"),
        }
    }

    /// How many events were written.
    pub fn written(&self) -> u64 {
        self.0.counts.written.load(Ordering::Relaxed)
    }

    /// How many events were lost: the disk was full, failed or was too slow.
    pub fn dropped(&self) -> u64 {
        self.0.counts.dropped.load(Ordering::Relaxed)
    }

    /// Waits until what was pushed is written or lost, but no longer than this: for the end of a process, and for tests.
    /// Blocks. False if the time was up before.
    pub fn flush(&self, within: Duration) -> bool {
        let until = Instant::now() + within;
        let flushed = Arc::<Flushed>::default();
        while let Err(refused) = self.0.queue.try_send(Message::Flush(Arc::clone(&flushed))) {
            if matches!(refused, TrySendError::Disconnected(_)) || Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let done = flushed.done.lock().unwrap_or_else(PoisonError::into_inner);
        let left = until.saturating_duration_since(Instant::now());
        let waited = flushed.changed.wait_timeout_while(done, left, |done| !*done);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl Counts {
    fn lost(&self, events: u64, why: &str) {
        let dropped = self.dropped.fetch_add(events, Ordering::Relaxed) + events;
        let mut complained = self.complained.lock().unwrap_or_else(PoisonError::into_inner);
        if complained.is_none_or(|at| at.elapsed() >= REMIND) {
            *complained = Some(Instant::now());
            tracing::error!(dropped, why, "lines of the audit log are lost");
        }
    }
}

struct Writer<S> {
    sink: S,
    counts: Arc<Counts>,
    missing: &'static str,
    /// How many of those lost the log itself has told of.
    told: u64,
}

impl<S: Sink> Writer<S> {
    fn run(mut self, events: &Receiver<Message>) {
        let mut lines = Vec::new();
        while let Ok(first) = events.recv() {
            lines.clear();
            let (mut count, mut flushed) = (0, None);
            let lost = self.counts.dropped.load(Ordering::Relaxed);
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Event(mut event) => {
                        if count == 0 && lost > self.told {
                            event.annotate(self.missing, &(lost - self.told).to_string());
                        }
                        // Text and numbers always serialise.
                        let _ = serde_json::to_writer(&mut lines, &event);
                        lines.push(b'\n');
                        count += 1;
                    }
                    Message::Flush(waiting) => flushed = Some(waiting),
                }
                let more = flushed.is_none() && lines.len() < BATCH;
                next = if more { events.try_recv().ok() } else { None };
            }
            if count > 0 {
                self.write(&lines, count, lost);
            }
            if let Some(flushed) = flushed {
                *flushed.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
                flushed.changed.notify_all();
            }
        }
    }

    fn write(&mut self, lines: &[u8], count: u64, lost: u64) {
        match self.sink.append(lines) {
            Ok(()) => {
                self.counts.written.fetch_add(count, Ordering::Relaxed);
                self.told = lost;
            }
            Err(error) => self.counts.lost(count, &error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use serde_json::Value;
    use std::sync::mpsc::{Sender, channel};

    const MISSING: &str = "example.com/missing";

    fn event(uri: &str) -> Event {
        Event::new("get", uri, Timestamp::UNIX_EPOCH)
    }

    /// What a test lets through.
    struct Gate {
        open: Receiver<io::Result<()>>,
        lines: Sender<String>,
    }

    impl Sink for Gate {
        fn append(&mut self, lines: &[u8]) -> io::Result<()> {
            self.open.recv().unwrap_or(Ok(()))?;
            let _ = self.lines.send(String::from_utf8(lines.to_vec()).unwrap());
            Ok(())
        }
    }

    fn gate() -> (Log, Sender<io::Result<()>>, Receiver<String>) {
        let (open, opened) = channel();
        let (lines, written) = channel();
        (Log::to(Gate { open: opened, lines }, MISSING).unwrap(), open, written)
    }

    #[test]
    fn a_disk_that_hangs_holds_up_no_request_and_the_loss_is_counted() {
        let (log, open, written) = gate();
        let pushed = QUEUE as u64 + 5000;
        let before = Instant::now();
        for number in 0..pushed {
            log.push(event(&format!("/{number}")));
        }
        assert!(before.elapsed() < Duration::from_secs(5), "a push waits for no disk");
        assert!(!log.flush(Duration::from_millis(20)), "nothing is written yet");
        let lost = log.dropped();
        assert!(lost > 0 && lost <= 5000, "{lost}");
        drop(open);
        assert!(log.flush(Duration::from_secs(20)));
        assert_eq!(log.written() + lost, pushed);
        let lines: Vec<String> = written.try_iter().collect();
        assert_eq!(lines.concat().lines().count() as u64, log.written());
    }

    #[test]
    fn a_full_disk_loses_lines_and_the_next_one_says_how_many() {
        let (log, open, written) = gate();
        for uri in ["/lost", "/lost-too"] {
            open.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
            log.push(event(uri));
            assert!(log.flush(Duration::from_secs(20)));
        }
        assert_eq!((log.written(), log.dropped()), (0, 2));
        drop(open);
        for uri in ["/kept", "/kept-too"] {
            log.push(event(uri));
            assert!(log.flush(Duration::from_secs(20)));
        }
        assert_eq!((log.written(), log.dropped()), (2, 2));
        let found: Vec<Value> = written
            .try_iter()
            .flat_map(|lines| {
                lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<_>>()
            })
            .collect();
        assert_eq!(found[0]["requestURI"], "/kept");
        assert_eq!(found[0]["annotations"][MISSING], "2");
        assert_eq!(found[1]["annotations"], Value::Null);
    }
}
