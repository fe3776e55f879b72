//! Many writers, many watchers: each watcher can rebuild the state from its list and its events.

use atoll_kubeapi::store::{EventKind, Key, Limits, Object, RevisionError, Store, Write, WriteError};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::time::Duration;

const WRITERS: usize = 8;
const WRITES: usize = 60;
const DEADLINE: Duration = Duration::from_secs(60);

fn body(revision: u64) -> Bytes {
    format!("{{\"at\":{revision}}}").into()
}

/// Creates, updates and deletes; whoever comes too late tries again with what is there.
async fn write(store: Store, writer: usize) {
    for at in 0..WRITES {
        let key = Key::new("", "configmaps", "shop", &format!("n{}", (writer + at) % 5));
        let write = match store.get(&key) {
            None => Write::create(body),
            Some(object) if at % 7 == 0 => Write::delete(object.revision, body),
            Some(object) => Write::update(object.revision, body),
        };
        match store.write(key, write).await {
            Ok(_) | Err(WriteError::Exists(_) | WriteError::Missing | WriteError::Conflict(_)) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let last = Key::new("", "configmaps", "shop", &format!("done-{writer}"));
    store.write(last, Write::create(body)).await.unwrap();
}

/// Lists, then follows until every writer is done.
async fn follow(store: Store) -> BTreeMap<Key, Object> {
    let prefix = Key::resource_prefix("", "configmaps");
    let page = store.list(&prefix, None, None, None).unwrap();
    let mut watch = store.watch(&prefix, Some(page.revision)).unwrap();
    let mut state: BTreeMap<Key, Object> =
        page.objects.into_iter().map(|object| (object.key.clone(), object)).collect();
    let mut revision = page.revision;
    while state.keys().filter(|key| key.name().starts_with("done-")).count() < WRITERS {
        let event = watch.next().await.unwrap();
        assert_eq!(event.object.revision, revision + 1, "an event is lost or doubled");
        revision += 1;
        let before = match event.kind {
            EventKind::Deleted => state.remove(&event.object.key),
            EventKind::Added | EventKind::Modified => state.insert(event.object.key.clone(), event.object),
        };
        assert_eq!(before.is_none(), event.kind == EventKind::Added);
        assert_eq!(before.map(|object| object.body), event.previous);
    }
    state
}

async fn everybody_agrees(store: Store) {
    let mut followers = Vec::new();
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        followers.push(tokio::spawn(follow(store.clone())));
        writers.push(tokio::spawn(write(store.clone(), writer)));
        tokio::task::yield_now().await;
        followers.push(tokio::spawn(follow(store.clone())));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let page = store.list("/core/configmaps/", None, None, None).unwrap();
    for follower in followers {
        let state = tokio::time::timeout(DEADLINE, follower).await.unwrap().unwrap();
        assert!(state.values().eq(&page.objects), "a follower ended elsewhere");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_of_the_durable_store_lose_and_double_nothing() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    everybody_agrees(Store::open(dir.path().join("store.redb")).unwrap()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn watchers_of_the_memory_store_lose_and_double_nothing() {
    everybody_agrees(Store::memory()).await;
}

#[tokio::test(start_paused = true)]
async fn the_memory_store_needs_no_time() {
    let store = Store::memory();
    let mut watch = store.watch("/", None).unwrap();
    let key = Key::new("", "configmaps", "shop", "a");
    let written = store.write(key, Write::create(body)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().object, written);
}

#[tokio::test]
async fn who_is_too_slow_is_cut_off_and_who_has_nothing_to_read_is_not() {
    let store = Store::memory_with(Limits { events: 4, bytes: usize::MAX });
    let mut slow = store.watch("/core/configmaps/", None).unwrap();
    let mut quiet = store.watch("/core/secrets/", None).unwrap();
    for at in 0..5 {
        let key = Key::new("", "configmaps", "shop", &format!("n{at}"));
        store.write(key, Write::create(body)).await.unwrap();
    }
    assert_eq!(slow.next().await, Err(RevisionError::Gone { requested: 0, oldest: 1 }));
    assert_eq!(quiet.try_next(), Ok(None));
    assert_eq!(quiet.revision(), 5, "a bookmark may say so");
    assert_eq!(
        store.watch("/core/secrets/", Some(0)).err(),
        Some(RevisionError::Gone { requested: 0, oldest: 1 })
    );
    let key = Key::new("", "secrets", "shop", "a");
    let written = store.write(key, Write::create(body)).await.unwrap();
    assert_eq!(quiet.next().await.unwrap().object, written);
}

#[tokio::test]
async fn a_list_of_the_future_says_where_the_store_is() {
    let store = Store::memory();
    let answer = store.list("/", Some(7), None, None);
    assert_eq!(answer, Err(RevisionError::Future { requested: 7, current: 0 }));
}

#[tokio::test]
async fn a_closed_store_is_read_and_not_written() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open(&path).unwrap();
    let key = Key::new("", "configmaps", "shop", "a");
    let written = store.write(key.clone(), Write::create(body)).await.unwrap();
    store.clone().close();
    let late = store.write(key.clone(), Write::update(written.revision, body)).await;
    assert_eq!(late, Err(WriteError::Closed));
    assert_eq!(store.get(&key).as_ref(), Some(&written));
    // Somebody else can have the file although this one is still there.
    assert_eq!(Store::open(&path).unwrap().get(&key), Some(written));
}

#[tokio::test]
async fn closing_does_not_wait_for_writers_who_do_not_look() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let store = Store::open(dir.path().join("store.redb")).unwrap();
    let mut writes = tokio::task::JoinSet::new();
    for at in 0..20 {
        let (store, key) = (store.clone(), Key::new("", "configmaps", "shop", &format!("n{at}")));
        writes.spawn(async move { store.write(key, Write::create(body)).await });
    }
    // They run until each waits for its answer; then this thread, the only one, is in `close`.
    tokio::task::yield_now().await;
    store.close();
    let done = writes.join_all().await.into_iter().filter(Result::is_ok).count();
    assert_eq!(done as u64, store.revision(), "acknowledged is what is there");
}
