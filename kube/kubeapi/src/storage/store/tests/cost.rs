//! What a write costs the disk: one sync for all that wait, and pages in proportion.

use super::medium::Medium;
use super::{create, key};
use crate::storage::encryption::Keys;
use crate::storage::store::disk::Otherwise;
use crate::storage::store::{Limits, Store};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

const WRITES: usize = 64;

#[tokio::test]
async fn writes_that_wait_share_one_sync() {
    let medium = Medium::default();
    let store =
        Store::open_at(Box::new(medium.clone()), Limits::default(), &Keys::default(), Otherwise::Rewrite)
            .unwrap();
    let (before, _) = medium.work();
    store.write(key("alone"), create("x")).await.unwrap();
    assert_eq!(medium.work().0 - before, 1, "one write, one sync");

    medium.hold_syncs(true);
    let (before, bytes) = medium.work();
    let mut writes: Vec<Pin<Box<_>>> = (0..WRITES)
        .map(|at| {
            Box::pin({
                let store = store.clone();
                async move { store.write(key(&format!("n{at}")), create(&"x".repeat(1000))).await }
            })
        })
        .collect();
    // Polled once, each is in the queue; the first few may be in a batch that waits for its sync already.
    poll_fn(|context| {
        for write in &mut writes {
            assert!(write.as_mut().poll(context).is_pending());
        }
        Poll::Ready(())
    })
    .await;
    medium.hold_syncs(false);
    for write in writes {
        write.await.unwrap();
    }
    let (after, written) = medium.work();
    assert!(after - before <= 2, "{} syncs for {WRITES} writes", after - before);
    let each = (written - bytes) / WRITES;
    assert!(each < 16_384, "{each} bytes written for an object of 1000");
}
