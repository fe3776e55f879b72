//! A damaged file: a clear error and the file as it was, or everything that was written.

use crate::encryption::keys;
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::store::{Key, Object, OpenError, Store, Write};
use bytes::Bytes;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

async fn closed_store(dir: &Path, keys: &Keys) -> (PathBuf, Vec<Object>) {
    let path = dir.join("store.redb");
    let store = Store::open_encrypted(&path, keys).unwrap();
    for at in 0..200_usize {
        let key = Key::new("", "configmaps", "shop", &format!("n{at}"));
        let body = move |revision| Bytes::from(format!("{revision} {}", "x".repeat(at * 13)));
        store.write(key, Write::create(body)).await.unwrap();
    }
    let objects = store.list("/", None, None, None).unwrap().objects;
    (path, objects)
}

/// Opens what `damage` made of the file. True if it was found out.
fn found_out(
    path: &Path,
    good: &[u8],
    objects: &[Object],
    what: &str,
    keys: &Keys,
    damage: impl FnOnce(&mut Vec<u8>),
) -> bool {
    let mut bad = good.to_vec();
    damage(&mut bad);
    fs::write(path, &bad).unwrap();
    match Store::open_encrypted(path, keys) {
        Ok(store) => {
            let page = store.list("/", None, None, None).unwrap();
            assert!(
                page.objects == objects,
                "{what}: served {} objects that are not right",
                page.objects.len()
            );
            false
        }
        Err(error) => {
            assert!(matches!(error, OpenError::Damaged { .. }), "{what}: {error}");
            assert!(error.to_string().contains("restore a backup"), "{what}: {error}");
            assert!(fs::read(path).unwrap() == bad, "{what}: the damaged file was changed");
            true
        }
    }
}

#[tokio::test]
async fn damage_is_found_before_it_is_served() {
    damaged(&Keys::default()).await;
}

#[tokio::test]
async fn damage_to_an_encrypted_store_is_found_before_it_is_served() {
    let dir = tempfile::tempdir().unwrap();
    damaged(&keys(dir.path(), &[1])).await;
}

async fn damaged(keys: &Keys) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let (path, objects) = closed_store(dir.path(), keys).await;
    let good = fs::read(&path).unwrap();
    assert!(!found_out(&path, &good, &objects, "nothing", keys, |_| {}));

    let mut found = 0;
    for at in 0..60 {
        let offset = good.len() * at / 60 + at * 131 % 4096;
        let offset = offset.min(good.len() - 1);
        let what = format!("a byte changed at {offset} of {}", good.len());
        found += usize::from(found_out(&path, &good, &objects, &what, keys, |bad| bad[offset] ^= 0x55));
        let what = format!("a page lost at {offset} of {}", good.len());
        let page = offset & !4095;
        let end = (page + 4096).min(good.len());
        found += usize::from(found_out(&path, &good, &objects, &what, keys, |bad| bad[page..end].fill(0)));
    }
    assert!(found > 20, "only {found} of 120 were found: the damage hit too little");
    for part in [1, 7, 13, 50, 90, 99] {
        let length = good.len() * part / 100;
        let what = format!("cut off at {length} of {}", good.len());
        assert!(
            found_out(&path, &good, &objects, &what, keys, |bad| bad.truncate(length)),
            "{what} went unnoticed"
        );
    }
    fs::write(&path, &good).unwrap();
    let whole = Store::open_encrypted(&path, keys).unwrap();
    assert_eq!(whole.list("/", None, None, None).unwrap().objects, objects);
}

/// As after a crash: redb then looks for the last commit that is whole, and can't tell a commit that was cut off from one
/// that was damaged later. It may go back by that one, and by no more.
#[tokio::test]
async fn damage_after_a_crash_serves_nothing_wrong() {
    let dir = tempfile::tempdir().unwrap();
    for keys in [Keys::default(), keys(dir.path(), &[1])] {
        damaged_after_a_crash(&keys).await;
    }
}

async fn damaged_after_a_crash(keys: &Keys) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    let store = Store::open_encrypted(&path, keys).unwrap();
    for at in 0..60_usize {
        let key = Key::new("", "configmaps", "shop", &format!("n{at:02}"));
        let body = move |revision| Bytes::from(format!("{revision} {}", "x".repeat(at * 40)));
        store.write(key, Write::create(body)).await.unwrap();
    }
    let objects = store.list("/", None, None, None).unwrap().objects;
    let (_, before_last) = objects.split_last().unwrap();
    // All of it is synced, and nobody has closed it.
    let good = fs::read(&path).unwrap();
    let copy = dir.path().join("copy.redb");
    let (mut whole, mut refused) = (0, 0);
    for at in 0..80 {
        let mut bad = good.clone();
        let offset = (good.len() * at / 80 + at * 131 % 4096).min(good.len() - 1);
        match at % 3 {
            0 => bad[offset] ^= 0x55,
            1 => bad[offset & !4095..].iter_mut().take(4096).for_each(|byte| *byte = 0),
            _ => bad.truncate(offset),
        }
        fs::write(&copy, &bad).unwrap();
        match Store::open_encrypted(&copy, keys) {
            Ok(store) => {
                let found = store.list("/", None, None, None).unwrap().objects;
                assert!(
                    found == objects || found == before_last,
                    "{at} at {offset}: {} objects",
                    found.len()
                );
                whole += 1;
            }
            Err(OpenError::Damaged { .. }) => refused += 1,
            Err(error) => panic!("{at} at {offset}: {error}"),
        }
    }
    assert!(whole > 0 && refused > 10, "{whole} {refused}");
}

#[test]
fn what_is_no_store_is_refused() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    fs::write(&path, "a text that somebody keeps here").unwrap();
    assert!(matches!(Store::open(&path), Err(OpenError::Damaged { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"a text that somebody keeps here");
}

#[test]
fn a_file_has_one_owner() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    let first = Store::open(&path).unwrap();
    let error = Store::open(&path).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    drop(first);
    Store::open(&path).unwrap();
}

#[test]
fn a_store_is_its_owners_alone() {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    drop(Store::open(&path).unwrap());
    assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
}
