//! Two who want the same at the same time.

use super::{create, key};
use crate::storage::store::{Store, WriteError};

/// The loser of a race is told that the object is there: then it must be there for them, not a commit later.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_client_that_is_told_that_it_exists_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path().join("store.redb")).unwrap();
    let mut lost = 0;
    for round in 0..50 {
        let tries: Vec<_> = (0..4)
            .map(|_| {
                let (store, key) = (store.clone(), key(&format!("a{round}")));
                tokio::spawn(async move {
                    let made = store.write(key.clone(), create("mine")).await;
                    (made, store.get(&key))
                })
            })
            .collect();
        for tried in tries {
            let (made, found) = tried.await.unwrap();
            assert!(found.is_some(), "round {round}: {made:?}, and nothing is there");
            lost += usize::from(matches!(made, Err(WriteError::Exists(_))));
        }
    }
    assert_eq!(lost, 150, "one of four makes it");
}
