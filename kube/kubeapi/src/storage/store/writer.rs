//! The one thread that writes: it takes all writes that wait, decides them in order, commits them with one fsync, and
//! only then shows and acknowledges them.

use super::Key;
use super::disk::Disk;
use super::object::{Object, Write, WriteError};
use super::shared::Shared;
use super::state::{Change, decide};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::{mpsc, oneshot};

/// Writers wait for a place in the queue; the batch takes what is there.
const QUEUE: usize = 1024;
/// A batch ends before the next write once it has so many bytes.
const BATCH_BYTES: usize = 4 << 20;

type Answer = oneshot::Sender<Result<Object, WriteError>>;

enum Request {
    Write(Key, Write, Answer),
    /// No more after what is in the queue.
    Close,
}

/// The queue to the thread. Dropping it ends the thread, after what was queued is written.
#[derive(Debug)]
pub(super) struct Writer {
    queue: mpsc::Sender<Request>,
    end: Mutex<Option<End>>,
}

/// How to end the thread: a place in the queue that is kept for it, however full that is.
#[derive(Debug)]
struct End {
    place: mpsc::OwnedPermit<Request>,
    thread: JoinHandle<()>,
}

impl Writer {
    pub(super) fn start(shared: Arc<Shared>, disk: Disk) -> std::io::Result<Self> {
        let (queue, requests) = mpsc::channel(QUEUE);
        let place = queue.clone().try_reserve_owned().map_err(|_| std::io::ErrorKind::BrokenPipe)?;
        let writer = WriterThread { shared, disk, doubt: None };
        let thread = std::thread::Builder::new().name("store".into()).spawn(move || writer.run(requests))?;
        Ok(Self { queue, end: Mutex::new(Some(End { place, thread })) })
    }

    pub(super) async fn write(&self, key: Key, write: Write) -> Result<Object, WriteError> {
        let (answer, answered) = oneshot::channel();
        let request = Request::Write(key, write, answer);
        self.queue.send(request).await.map_err(|_| WriteError::Closed)?;
        answered.await.map_err(|_| WriteError::Closed)?
    }

    /// Takes no more writes, and waits until those that it took are done and the file is closed.
    pub(super) fn close(&self) {
        let end = self.end.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(End { place, thread }) = end {
            place.send(Request::Close);
            // A panic in there has been printed; the store is gone either way.
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

/// The thread that commits.
struct WriterThread {
    shared: Arc<Shared>,
    disk: Disk,
    /// A batch whose commit failed: perhaps the file has it, perhaps not.
    doubt: Option<UncertainCommit>,
}

struct UncertainCommit {
    changes: Vec<Change>,
    error: WriteError,
}

/// Writes that were decided and wait for the commit, and who waits for them.
#[derive(Default)]
struct Batch {
    changes: Vec<Change>,
    waiting: Vec<(Answer, Result<Object, WriteError>)>,
    /// What keys of this batch are after it, so far.
    now: HashMap<Key, Option<Object>>,
    bytes: usize,
}

impl WriterThread {
    fn run(mut self, mut requests: mpsc::Receiver<Request>) {
        while let Some(first) = requests.blocking_recv() {
            let mut batch = Batch::default();
            let mut next = Some(first);
            while let Some(request) = next {
                match request {
                    Request::Write(key, write, answer) => self.decide(key, write, answer, &mut batch),
                    // Who waits for a place in the queue is turned away; who has one is served.
                    Request::Close => requests.close(),
                }
                next = if batch.bytes < BATCH_BYTES { requests.try_recv().ok() } else { None };
            }
            self.commit(batch);
        }
    }

    /// Answers what fails; the rest joins the batch.
    fn decide(&mut self, key: Key, write: Write, answer: Answer, batch: &mut Batch) {
        // While it is uncertain whether a batch was committed, the state is unknown.
        if batch.changes.is_empty()
            && let Err(error) = self.settle()
        {
            let _ = answer.send(Err(error));
            return;
        }
        let unseen = batch.now.contains_key(&key);
        let (current, revision) = {
            let state = self.shared.read();
            let current = batch.now.get(&key).cloned().unwrap_or_else(|| state.get(&key));
            (current, state.revision() + batch.changes.len() as u64 + 1)
        };
        match decide(key, current, write, revision) {
            Ok(change) => batch.add(change, answer),
            // Judged by what readers can't see yet: a client that is told that the object exists must find it.
            Err(error) if unseen => batch.waiting.push((answer, Err(error))),
            Err(error) => {
                let _ = answer.send(Err(error));
            }
        }
    }

    fn commit(&mut self, batch: Batch) {
        let Batch { changes, waiting, .. } = batch;
        if changes.is_empty() {
            return;
        }
        match self.disk.commit(&changes) {
            Ok(()) => {
                self.shared.publish(changes);
                for (answer, decided) in waiting {
                    let _ = answer.send(decided);
                }
            }
            Err(failed) => {
                let text = failed.to_string();
                let error = if failed.is_full() { WriteError::Full(text) } else { WriteError::Io(text) };
                tracing::error!(%error, writes = changes.len(), "a commit failed");
                for (answer, _) in waiting {
                    let _ = answer.send(Err(error.clone()));
                }
                self.doubt = Some(UncertainCommit { changes, error });
            }
        }
    }

    /// Finds out whether the batch in doubt is in the file, and shows it if so.
    fn settle(&mut self) -> Result<(), WriteError> {
        let Some(UncertainCommit { changes, error }) = &self.doubt else { return Ok(()) };
        let shown = self.shared.read().revision();
        let would = changes.last().map_or(shown, |change| change.object.revision);
        match self.disk.reopen() {
            Ok(found) if found == shown || found == would => {
                tracing::info!(revision = found, "the store accepts writes again");
                let changes = self.doubt.take().map(|doubt| doubt.changes).unwrap_or_default();
                if found == would {
                    self.shared.publish(changes);
                }
                Ok(())
            }
            Ok(found) => Err(WriteError::Io(format!(
                "the file is at revision {found} and should be at {shown}: restore a backup"
            ))),
            Err(_) if matches!(error, WriteError::Full(_)) => Err(error.clone()),
            Err(reopen) => Err(WriteError::Io(reopen.to_string())),
        }
    }
}

impl Batch {
    fn add(&mut self, change: Change, answer: Answer) {
        let object = change.object.clone();
        let after = match change.kind {
            super::EventKind::Added | super::EventKind::Modified => Some(object.clone()),
            super::EventKind::Deleted => None,
        };
        self.bytes += object.body.len();
        self.now.insert(object.key.clone(), after);
        self.changes.push(change);
        self.waiting.push((answer, Ok(object)));
    }
}
