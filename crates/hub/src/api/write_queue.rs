//! A queue of writes: per place one at a time, the latest wins, what fails is tried again unless something newer waits.

use std::collections::{BTreeMap, BTreeSet};

use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

/// Requests under way.
const IN_FLIGHT: usize = 16;

/// Carries out writes until all senders are gone; `placed` says what each is about. Two whose places are `together` wait for each other, in
/// the places' order. `write` gives back what has to be tried again.
pub(crate) async fn carry_out_all<T, P, W, Written>(
    mut wanted: UnboundedReceiver<T>,
    placed: impl Fn(T) -> (P, W),
    together: impl Fn(&P, &P) -> bool,
    write: impl Fn(P, W) -> Written,
) where
    P: Ord + Clone + Send + 'static,
    W: Send + 'static,
    Written: Future<Output = Option<W>> + Send + 'static,
{
    let (done, mut ended) = unbounded_channel::<(P, Option<W>)>();
    let mut waiting: BTreeMap<P, W> = BTreeMap::new();
    let mut flying: BTreeSet<P> = BTreeSet::new();
    loop {
        tokio::select! {
            next = wanted.recv() => match next {
                Some(next) => {
                    let (place, write) = placed(next);
                    waiting.insert(place, write);
                }
                None => return,
            },
            Some((place, failed)) = ended.recv() => {
                flying.remove(&place);
                if let Some(write) = failed {
                    waiting.entry(place).or_insert(write);
                }
            }
        }
        while flying.len() < IN_FLIGHT {
            let busy = |place: &P| flying.iter().any(|other| together(other, place));
            let Some(place) = waiting.keys().find(|place| !busy(place)).cloned() else { break };
            let Some(wanted) = waiting.remove(&place) else { break };
            flying.insert(place.clone());
            let (written, done) = (write(place.clone(), wanted), done.clone());
            tokio::spawn(async move {
                let _ = done.send((place, written.await));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn the_latest_wins_one_at_a_time_and_what_failed_comes_again() {
        let (send, wanted) = unbounded_channel();
        let (log, gate) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Semaphore::new(0)));
        let (written, opened) = (Arc::clone(&log), Arc::clone(&gate));
        let queue = tokio::spawn(carry_out_all(
            wanted,
            std::convert::identity,
            |one: &(u8, u8), other: &(u8, u8)| one.0 == other.0,
            move |place, text: &'static str| {
                let (written, opened) = (Arc::clone(&written), Arc::clone(&opened));
                async move {
                    written.lock().unwrap().push((place, text));
                    opened.acquire().await.unwrap().forget();
                    let again = text == "fails" && written.lock().unwrap().len() < 3;
                    again.then_some(text)
                }
            },
        ));
        let seen = async |count: usize| {
            while log.lock().unwrap().len() < count {
                tokio::task::yield_now().await;
            }
        };
        send.send(((1, 0), "first")).unwrap();
        seen(1).await;
        // While the first is under way: one that is replaced, and one that waits behind it.
        for (place, text) in [((1, 0), "replaced"), ((1, 0), "fails"), ((1, 1), "after")] {
            send.send((place, text)).unwrap();
        }
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert_eq!(log.lock().unwrap().len(), 1, "one at a time");
        gate.add_permits(10);
        seen(4).await;
        let want = [((1, 0), "first"), ((1, 0), "fails"), ((1, 0), "fails"), ((1, 1), "after")];
        assert_eq!(*log.lock().unwrap(), want);
        drop(send);
        queue.await.unwrap();
    }
}
