//! SIGKILL while it writes: what a client was told is there afterwards, and revisions only grow.

use crate::encryption::key_file;
use atoll_kubeapi::encryption::Keys;
use atoll_kubeapi::store::{Key, Store, Write};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

const ROUNDS: usize = 50;
const WRITERS: usize = 8;
const STORE: &str = "KILLED_STORE";
const KEYS: &str = "KILLED_KEYS";

fn key(writer: usize) -> Key {
    Key::new("", "configmaps", "shop", &format!("w{writer}"))
}

/// Not a test of its own: the process that is killed. It says each write after it was acknowledged.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "the child of acknowledged_writes_survive_being_killed"]
async fn the_one_that_is_killed() {
    let Ok(path) = std::env::var(STORE) else { return };
    let keys = std::env::var(KEYS).map(|path| Keys::read(path.as_ref()).unwrap()).unwrap_or_default();
    let store = Store::open_encrypted(path, &keys).unwrap();
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WRITERS {
        let store = store.clone();
        writers.spawn(async move {
            let mut count = 0;
            loop {
                let size = (count * 97) % 5000;
                let body = move |revision| Bytes::from(format!("{revision} {}", "x".repeat(size)));
                let write = match store.get(&key(writer)) {
                    Some(object) => Write::update(object.revision, body),
                    None => Write::create(body),
                };
                let object = store.write(key(writer), write).await.unwrap();
                println!("wrote {writer} {}", object.revision);
                count += 1;
            }
        });
    }
    writers.join_all().await;
}

/// Lets a child write until it has said `lines` writes, kills it, and returns the last of each writer that it said.
fn killed_after(path: &Path, keys: Option<&Path>, lines: usize) -> BTreeMap<usize, u64> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", "killed::the_one_that_is_killed"])
        .env(STORE, path)
        .envs(keys.map(|keys| (KEYS, keys)))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BTreeMap::new();
    let mut count = 0;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line = line.unwrap();
        let mut words = line.split_whitespace();
        if words.next() != Some("wrote") {
            continue;
        }
        let (writer, revision) =
            (words.next().unwrap().parse().unwrap(), words.next().unwrap().parse().unwrap());
        said.insert(writer, revision);
        count += 1;
        if count == lines {
            // What it said until it was dead was acknowledged, too: the loop reads on to the end of the pipe.
            child.kill().unwrap();
        }
    }
    child.wait().unwrap();
    assert!(count >= lines, "the child ended by itself after {count} writes");
    said
}

#[test]
fn acknowledged_writes_survive_being_killed() {
    survives(None, ROUNDS);
}

#[test]
fn acknowledged_writes_that_are_encrypted_survive_being_killed() {
    let dir = tempfile::tempdir().unwrap();
    survives(Some(&key_file(dir.path(), &[1])), ROUNDS / 4);
}

fn survives(keys: Option<&Path>, rounds: usize) {
    let read = keys.map(|path| Keys::read(path).unwrap()).unwrap_or_default();
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    let mut revision = 0;
    for round in 0..rounds {
        let said = killed_after(&path, keys, 1 + (round * 37) % 150);
        let store = Store::open_encrypted(&path, &read).unwrap();
        for (writer, wrote) in said {
            let found = store.get(&key(writer)).unwrap_or_else(|| panic!("round {round}: {writer} is lost"));
            assert!(
                found.revision >= wrote,
                "round {round}: {writer} is at {} and was at {wrote}",
                found.revision
            );
            assert!(found.body.starts_with(format!("{} ", found.revision).as_bytes()), "round {round}");
            assert!(wrote > revision, "round {round}: revision {wrote} was used before");
        }
        assert!(store.revision() > revision);
        revision = store.revision();
    }
}
