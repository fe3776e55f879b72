//! Who may come in, and who has to go: a listener that any host reaches must not be filled by one that only holds connections open.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// After a failure to accept, such as too many open files.
const PAUSE: Duration = Duration::from_millis(100);

/// The connections of a listener, or of several: at most so many, and at most so many of one address. For one too many the oldest goes.
#[derive(Debug)]
pub struct Door {
    most: usize,
    most_of_one: usize,
    next: u64,
    inside: BTreeMap<u64, (IpAddr, Option<AbortHandle>)>,
    counts: HashMap<IpAddr, usize>,
}

/// What becomes of a client at the door.
#[derive(Debug)]
enum Entry {
    /// He has too many connections already.
    Refused,
    /// He comes in by this number; the oldest may have to go for him.
    Entered(u64, Option<AbortHandle>),
}

impl Door {
    /// With no connection inside.
    pub fn new(most: usize, most_of_one: usize) -> Arc<Mutex<Self>> {
        let (inside, counts) = (BTreeMap::new(), HashMap::new());
        Arc::new(Mutex::new(Self { most, most_of_one, next: 0, inside, counts }))
    }

    fn enter(&mut self, source: IpAddr) -> Entry {
        if self.counts.get(&source).is_some_and(|count| *count >= self.most_of_one) {
            return Entry::Refused;
        }
        let oldest = self.inside.first_key_value().map(|(number, _)| *number);
        let goes = oldest.filter(|_| self.inside.len() >= self.most).and_then(|oldest| self.leave(oldest));
        self.next += 1;
        self.inside.insert(self.next, (source, None));
        *self.counts.entry(source).or_default() += 1;
        Entry::Entered(self.next, goes)
    }

    /// Gone, or on its way out.
    fn leave(&mut self, number: u64) -> Option<AbortHandle> {
        let (source, task) = self.inside.remove(&number)?;
        if let Some(count) = self.counts.get_mut(&source) {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&source);
            }
        }
        task
    }
}

/// Leaves when it is dropped, however the connection ended.
struct Leaving(Arc<Mutex<Door>>, u64);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).leave(self.1);
    }
}

/// Serves the connections that come in, each in a task of its own, until it is dropped.
pub async fn attend<F>(listener: &TcpListener, door: &Arc<Mutex<Door>>, serve: impl Fn(TcpStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    loop {
        let (stream, source) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let mut inside = door.lock().unwrap_or_else(PoisonError::into_inner);
        let Entry::Entered(number, goes) = inside.enter(source.ip().to_canonical()) else { continue };
        if let Some(oldest) = goes {
            oldest.abort();
        }
        let (leaving, serving) = (Leaving(Arc::clone(door), number), serve(stream));
        let task = tokio::spawn(async move {
            let _leaving = leaving;
            serving.await;
        });
        // It can't have left yet: for that it needs what we hold.
        if let Some((_, handle)) = inside.inside.get_mut(&number) {
            *handle = Some(task.abort_handle());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        [192, 0, 2, last].into()
    }

    #[test]
    fn nobody_fills_the_room_alone_and_for_one_too_many_the_oldest_goes() {
        let door = Door::new(4, 2);
        let mut door = door.lock().unwrap();
        let mut enter = |last| match door.enter(ip(last)) {
            Entry::Refused => None,
            Entry::Entered(number, _) => Some((number, door.inside.keys().copied().collect::<Vec<_>>())),
        };
        assert_eq!((enter(1), enter(1), enter(1)), (Some((1, vec![1])), Some((2, vec![1, 2])), None));
        assert_eq!((enter(2), enter(3)), (Some((3, vec![1, 2, 3])), Some((4, vec![1, 2, 3, 4]))));
        assert_eq!(enter(4), Some((5, vec![2, 3, 4, 5])), "the oldest went");
        assert_eq!(enter(1), Some((6, vec![3, 4, 5, 6])), "his other one went for it");
        for number in [3, 4, 5, 6, 6, 7] {
            door.leave(number);
        }
        assert!(door.inside.is_empty() && door.counts.is_empty(), "{door:?}");
    }
}
