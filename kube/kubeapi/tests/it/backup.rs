//! A backup is of one revision, whole, and comes back without lying about time.

use atoll_kubeapi::backup::{Backup, RestoreError, STORE_FILE, restore};
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::store::{Key, Page, RevisionError, Store, Write};
use bytes::Bytes;
use std::fs;
use std::path::Path;

const NOW: i64 = 1_800_000_000;

fn json(revision: u64) -> Bytes {
    format!(r#"{{"metadata":{{"resourceVersion":"{revision}"}},"text":"a \"line\"\nand another"}}"#).into()
}

fn key(name: &str) -> Key {
    Key::new("", "configmaps", "shop", name)
}

async fn store_in(dir: &Path, objects: usize) -> Store {
    Pki::open(dir, &[], NOW).unwrap();
    let store = Store::open(dir.join(STORE_FILE)).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for at in 0..objects {
        let store = store.clone();
        writers.spawn(async move { store.write(key(&format!("n{at}")), Write::create(json)).await.unwrap() });
    }
    writers.join_all().await;
    store
}

fn all(store: &Store) -> Page {
    store.list("/", None, None, None).unwrap()
}

async fn backup_of(objects: usize) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), objects).await;
    let mut text = Vec::new();
    Backup::take(&store, dir.path(), &Keys::default()).unwrap().write_to(&mut text).unwrap();
    text
}

#[tokio::test]
async fn what_is_restored_is_the_revision_of_the_backup_whatever_came_after() {
    let dir = tempfile::tempdir().unwrap();
    let store = store_in(dir.path(), 2500).await;
    let then = all(&store);
    let mut backup = Backup::take(&store, dir.path(), &Keys::default()).unwrap();
    let mut text = backup.next().unwrap().to_vec();
    for object in &then.objects[..40] {
        store.write(object.key.clone(), Write::update(object.revision, json)).await.unwrap();
    }
    store.write(key("late"), Write::create(json)).await.unwrap();
    text.extend(backup.flatten());

    let other = tempfile::tempdir().unwrap();
    let done = restore(&text[..], other.path(), false, &Keys::default()).unwrap();
    assert_eq!((done.objects, done.taken_at), (2500, then.revision));
    let restored = Store::open(other.path().join(STORE_FILE)).unwrap();
    assert!(all(&restored).objects == then.objects);
    let keys = |dir: &Path| {
        ["ca.crt", "ca.key", "tokens.key", "admin.token"]
            .map(|name| fs::read(dir.join("pki").join(name)).unwrap())
    };
    assert_eq!(keys(dir.path()), keys(other.path()));
    Pki::open(other.path(), &[], NOW).unwrap();

    assert!(
        restored.revision() > store.revision(),
        "revisions only grow, also those that the backup hasn't seen"
    );
    let seen = store.revision();
    assert!(matches!(restored.watch("/", Some(seen)), Err(RevisionError::Gone { .. })));
    let next = restored.write(key("next"), Write::create(json)).await.unwrap();
    assert_eq!(next.revision, done.revision + 1);
}

#[tokio::test]
async fn a_backup_that_broke_off_or_changed_restores_nothing() {
    let text = backup_of(20).await;
    let cuts = (0..text.len()).step_by(97).map(|at| (format!("cut at {at}"), text[..at].to_vec()));
    let flips = (0..text.len()).step_by(89).filter(|&at| text[at].is_ascii_alphanumeric()).map(|at| {
        let mut changed = text.clone();
        changed[at] = if changed[at] == b'7' { b'3' } else { b'7' };
        (format!("changed at {at}"), changed)
    });
    for (what, bad) in cuts.chain(flips) {
        let dir = tempfile::tempdir().unwrap();
        match restore(&bad[..], dir.path(), false, &Keys::default()) {
            Err(RestoreError::Backup { .. } | RestoreError::Format { .. }) => {}
            other => panic!("{what}: {other:?}"),
        }
        assert!(!dir.path().join(STORE_FILE).exists() && !dir.path().join("pki").exists(), "{what}");
        restore(&text[..], dir.path(), false, &Keys::default()).unwrap();
    }
}

#[tokio::test]
async fn nothing_is_overwritten_unless_it_is_forced_and_then_it_is_kept() {
    let text = backup_of(3).await;
    let dir = tempfile::tempdir().unwrap();
    drop(store_in(dir.path(), 7).await);
    let authority = fs::read(dir.path().join("pki/ca.crt")).unwrap();
    assert!(matches!(
        restore(&text[..], dir.path(), false, &Keys::default()),
        Err(RestoreError::NotEmpty { .. })
    ));
    let half = restore(&text[..text.len() / 2], dir.path(), true, &Keys::default());
    assert!(matches!(half, Err(RestoreError::Backup { .. })), "{half:?}");
    assert_eq!(all(&Store::open(dir.path().join(STORE_FILE)).unwrap()).objects.len(), 7);

    restore(&text[..], dir.path(), true, &Keys::default()).unwrap();
    assert_eq!(all(&Store::open(dir.path().join(STORE_FILE)).unwrap()).objects.len(), 3);
    let old = dir.path().join("restore.old");
    assert_eq!(all(&Store::open(old.join(STORE_FILE)).unwrap()).objects.len(), 7);
    assert_eq!(fs::read(old.join("pki/ca.crt")).unwrap(), authority);
}

#[tokio::test]
async fn a_running_hub_is_not_restored_over() {
    let text = backup_of(3).await;
    let dir = tempfile::tempdir().unwrap();
    let running = store_in(dir.path(), 1).await;
    assert!(matches!(
        restore(&text[..], dir.path(), true, &Keys::default()),
        Err(RestoreError::InUse { .. })
    ));
    running.write(key("on"), Write::create(json)).await.unwrap();
}

#[tokio::test]
async fn a_damaged_store_is_what_backups_are_for() {
    let text = backup_of(3).await;
    let dir = tempfile::tempdir().unwrap();
    drop(store_in(dir.path(), 1).await);
    fs::write(dir.path().join(STORE_FILE), "torn").unwrap();
    restore(&text[..], dir.path(), true, &Keys::default()).unwrap();
    assert_eq!(all(&Store::open(dir.path().join(STORE_FILE)).unwrap()).objects.len(), 3);
}
