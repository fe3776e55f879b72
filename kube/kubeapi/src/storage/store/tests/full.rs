//! A disk without room, or that fails: a clear error, nothing shown that isn't written, and on it goes afterwards.

use super::medium::Medium;
use super::{create, key, update};
use crate::storage::encryption::{Keys, test_keys};
use crate::storage::store::disk::Otherwise;
use crate::storage::store::{Limits, Store, WriteError};

fn open(medium: &Medium, keys: &Keys) -> Store {
    Store::open_at(Box::new(medium.clone()), Limits::default(), keys, Otherwise::Rewrite).unwrap()
}

#[tokio::test]
async fn a_full_disk_refuses_writes_until_there_is_room() {
    for keys in [Keys::default(), test_keys(&[1])] {
        full(&keys).await;
    }
}

async fn full(keys: &Keys) {
    let medium = Medium::default();
    let store = open(&medium, keys);
    medium.leave_room(0);
    let mut watch = store.watch("/", Some(0)).unwrap();
    let mut written = Vec::new();
    let large = "x".repeat(100_000);
    let refused = loop {
        let name = format!("n{}", written.len());
        match store.write(key(&name), create(&large)).await {
            Ok(object) => written.push(object),
            Err(error) => break error,
        }
        assert!(written.len() < 1000, "the disk never got full");
    };
    assert!(matches!(refused, WriteError::Full(_)), "{refused:?}");
    assert!(refused.to_string().contains("make room"), "{refused}");

    let shown = store.list("/", None, None, None).unwrap();
    assert_eq!(shown.objects.len(), written.len());
    assert_eq!(shown.revision, written.len() as u64);
    for object in &written {
        assert_eq!(watch.try_next().unwrap().map(|event| event.object), Some(object.clone()));
    }
    assert_eq!(watch.try_next().unwrap(), None, "what was refused is not shown");
    let again = store.write(key("other"), create(&large)).await;
    assert!(matches!(again, Err(WriteError::Full(_))), "{again:?}");

    medium.make_room();
    let after = store.write(key("other"), create(&large)).await.unwrap();
    assert!(after.revision > shown.revision);
    drop(store);
    let store = open(&medium, keys);
    for object in written.iter().chain([&after]) {
        assert_eq!(store.get(&object.key).as_ref(), Some(object));
    }
}

#[tokio::test]
async fn what_a_failed_sync_may_have_written_is_settled_before_the_next_write() {
    let medium = Medium::default();
    let store = open(&medium, &test_keys(&[1]));
    let first = store.write(key("a"), create("first")).await.unwrap();
    medium.fail_syncs(true);
    let failed = store.write(key("a"), update(&first, "second")).await;
    assert!(matches!(failed, Err(WriteError::Io(_))), "{failed:?}");
    assert_eq!(store.get(&first.key).as_ref(), Some(&first), "only what is durable is shown");
    medium.fail_syncs(false);
    // The medium has taken the second write in full: it comes to light, and is told to a writer that didn't see it.
    let stale = store.write(key("a"), update(&first, "third")).await;
    let now = store.get(&first.key).unwrap();
    match stale {
        Err(WriteError::Conflict(found)) => assert_eq!((&found, now.revision), (&now, 2)),
        Ok(third) => assert_eq!(third, now),
        Err(error) => panic!("{error}"),
    }
    let mut watch = store.watch("/", Some(1)).unwrap();
    assert_eq!(watch.try_next().unwrap().map(|event| event.object), Some(now));
}
