//! A stolen store or backup tells nothing, a wrong key loses nothing, and keys can be changed.

use atoll_kubeapi::backup::{Backup, RestoreError, STORE_FILE, check, restore};
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::pki::Pki;
use atoll_kubeapi::store::{Key, Object, OpenError, Store, Write};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const NOW: i64 = 1_800_000_000;
const SECRET: &[u8] = b"hunter2-hunter2";

/// A file with these keys; 0 stands for `plain`.
pub(crate) fn key_file(dir: &Path, keys: &[u8]) -> PathBuf {
    let lines = keys.iter().map(|key| match key {
        0 => "plain\n".to_owned(),
        key => STANDARD.encode([*key; 32]) + "\n",
    });
    let path = dir.join(format!("keys-{keys:?}"));
    fs::write(&path, lines.collect::<String>()).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path
}

pub(crate) fn keys(dir: &Path, keys: &[u8]) -> Keys {
    Keys::read(&key_file(dir, keys)).unwrap()
}

fn body(revision: u64) -> Bytes {
    format!(r#"{{"at":{revision},"data":"{}"}}"#, String::from_utf8_lossy(SECRET)).into()
}

async fn fill(store: &Store, objects: usize) -> Vec<Object> {
    for at in 0..objects {
        let key = Key::new("", "secrets", "shop", &format!("n{at}"));
        store.write(key, Write::create(body)).await.unwrap();
    }
    store.list("/", None, None, None).unwrap().objects
}

fn all(store: &Store) -> Vec<Object> {
    store.list("/", None, None, None).unwrap().objects
}

fn tells(bytes: &[u8]) -> bool {
    bytes.windows(SECRET.len()).any(|part| part == SECRET)
}

#[tokio::test]
async fn a_stolen_store_file_tells_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(STORE_FILE);
    let one = keys(dir.path(), &[1]);
    let store = Store::open_encrypted(&path, &one).unwrap();
    let objects = fill(&store, 50).await;
    let first = &objects[0];
    store.write(first.key.clone(), Write::update(first.revision, body)).await.unwrap();
    store.write(objects[1].key.clone(), Write::delete(objects[1].revision, body)).await.unwrap();
    let before = all(&store);
    assert!(!tells(&fs::read(&path).unwrap()), "while it is in use");
    drop(store);
    assert!(!tells(&fs::read(&path).unwrap()), "when it is closed");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let store = Store::open_encrypted(&path, &one).unwrap();
    assert_eq!((all(&store), store.revision()), (before, 52));
}

#[tokio::test]
async fn a_wrong_key_or_none_is_told_which_one_is_needed_and_nothing_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(STORE_FILE);
    let one = keys(dir.path(), &[1]);
    let objects = fill(&Store::open_encrypted(&path, &one).unwrap(), 5).await;
    let file = fs::read(&path).unwrap();
    for wrong in [Keys::default(), keys(dir.path(), &[2]), keys(dir.path(), &[0, 2])] {
        let error = Store::open_encrypted(&path, &wrong).unwrap_err();
        let OpenError::Encrypted { id, .. } = &error else { panic!("{error}") };
        assert!(
            error.to_string().contains(&id.to_string()) && error.to_string().contains("key file"),
            "{error}"
        );
        assert_eq!(fs::read(&path).unwrap(), file, "nothing was changed");
    }
    assert_eq!(all(&Store::open_encrypted(&path, &one).unwrap()), objects);
}

#[tokio::test]
async fn a_plain_store_is_encrypted_its_key_is_changed_and_it_is_plain_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(STORE_FILE);
    let mut objects = fill(&Store::open(&path).unwrap(), 40).await;
    assert!(tells(&fs::read(&path).unwrap()));
    for (step, (given, encrypted)) in
        [(vec![1], true), (vec![2, 1], true), (vec![2], true), (vec![0, 2], false), (vec![], false)]
            .into_iter()
            .enumerate()
    {
        let given = if given.is_empty() { Keys::default() } else { keys(dir.path(), &given) };
        let store = Store::open_encrypted(&path, &given).unwrap();
        assert_eq!(all(&store), objects, "step {step}");
        let key = Key::new("", "secrets", "shop", &format!("step{step}"));
        let written = store.write(key, Write::create(body)).await.unwrap();
        assert_eq!(written.revision, 41 + step as u64, "revisions go on");
        objects = all(&store);
        drop(store);
        assert_eq!(tells(&fs::read(&path).unwrap()), !encrypted, "step {step}: nothing of before is left");
        assert!(!path.with_extension("redb.new").exists());
    }
    // The first key is of no use any more.
    let rotated = keys(dir.path(), &[2]);
    drop(Store::open_encrypted(&path, &rotated).unwrap());
    assert!(matches!(
        Store::open_encrypted(&path, &keys(dir.path(), &[1])),
        Err(OpenError::Encrypted { .. })
    ));
}

/// Whoever only reads, such as a backup, changes nothing: else the hub would not start without the key.
#[tokio::test]
async fn a_store_that_is_only_read_stays_encrypted_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    for (before, after) in [(vec![], vec![1]), (vec![1], vec![2, 1]), (vec![1], vec![0, 1])] {
        let [before, after] = [before, after]
            .map(|given| if given.is_empty() { Keys::default() } else { keys(dir.path(), &given) });
        let path = dir.path().join(STORE_FILE);
        let objects = fill(&Store::open_encrypted(&path, &before).unwrap(), 5).await;
        let store = Store::open_as_it_is(&path, &after).unwrap();
        assert_eq!(all(&store), objects);
        let key = Key::new("", "secrets", "shop", "more");
        store.write(key, Write::create(body)).await.unwrap();
        drop(store);
        assert_eq!(all(&Store::open_encrypted(&path, &before).unwrap()).len(), 6);
        fs::remove_file(&path).unwrap();
    }
}

async fn backup(dir: &Path, keys: &Keys) -> Vec<u8> {
    Pki::open(dir, &[], NOW).unwrap();
    let store = Store::open_encrypted(dir.join(STORE_FILE), keys).unwrap();
    if all(&store).is_empty() {
        fill(&store, 3000).await;
    }
    let mut text = Vec::new();
    Backup::take(&store, dir, keys).unwrap().write_to(&mut text).unwrap();
    text
}

#[tokio::test]
async fn a_stolen_backup_tells_no_secret_and_comes_back_with_its_key() {
    let dir = tempfile::tempdir().unwrap();
    let one = keys(dir.path(), &[1]);
    let text = backup(&dir.path().join("a"), &one).await;
    assert!(!tells(&text) && !text.windows(11).any(|part| part == b"PRIVATE KEY"));
    assert_eq!(check(&text[..], &one).unwrap().objects, 3000);
    for wrong in [Keys::default(), keys(dir.path(), &[2])] {
        let error = restore(&text[..], &dir.path().join("b"), false, &wrong).unwrap_err();
        assert!(matches!(error, RestoreError::Read(_)) && error.to_string().contains("key file"), "{error}");
        assert!(!dir.path().join("b").join(STORE_FILE).exists());
    }
    // Into a store under a new key, and into a plain one.
    for (place, given, encrypted) in [("c", vec![2, 1], true), ("d", vec![0, 1], false)] {
        let (place, given) = (dir.path().join(place), keys(dir.path(), &given));
        restore(&text[..], &place, false, &given).unwrap();
        assert_eq!(tells(&fs::read(place.join(STORE_FILE)).unwrap()), !encrypted);
        assert_eq!(all(&Store::open_encrypted(place.join(STORE_FILE), &given).unwrap()).len(), 3000);
    }
}

#[tokio::test]
async fn a_backup_that_was_cut_spliced_or_added_to_restores_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let one = keys(dir.path(), &[1]);
    let text = backup(&dir.path().join("a"), &one).await;
    let other = backup(&dir.path().join("a"), &one).await;
    let (starts, head) = frames(&text);
    assert!(starts.len() > 4, "there are several frames");
    let part = |from: usize, to: usize| text[starts[from]..starts[to]].to_vec();
    let last = starts.len() - 1;
    let doubled = [head.clone(), part(0, 2), part(1, last)].concat();
    let swapped = [head.clone(), part(1, 2), part(0, 1), part(2, last)].concat();
    let missing = [head.clone(), part(0, 1), part(2, last)].concat();
    let without_end = [head.clone(), part(0, last - 1)].concat();
    let (of_other, _) = frames(&other);
    let spliced = [head, part(0, 1), other[of_other[1]..].to_vec()].concat();
    let added = [text.clone(), b"x".to_vec()].concat();
    for (what, bad) in [
        ("doubled", doubled),
        ("swapped", swapped),
        ("missing", missing),
        ("without end", without_end),
        ("spliced", spliced),
        ("added", added),
        ("cut", text[..text.len() - 5].to_vec()),
    ] {
        assert!(check(&bad[..], &one).is_err(), "{what}");
        assert!(restore(&bad[..], &dir.path().join("b"), false, &one).is_err(), "{what}");
        assert!(!dir.path().join("b").join(STORE_FILE).exists(), "{what}");
    }
    check(&text[..], &one).unwrap();
}

/// Where frames start, and where the last ends; and what is before them.
fn frames(text: &[u8]) -> (Vec<usize>, Vec<u8>) {
    let head = text.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let mut starts = vec![head];
    while let Some(at) = starts.last().copied().filter(|at| *at < text.len()) {
        let length = u32::from_be_bytes(text[at..at + 4].try_into().unwrap());
        starts.push(at + 4 + usize::try_from(length).unwrap());
    }
    (starts, text[..head].to_vec())
}
