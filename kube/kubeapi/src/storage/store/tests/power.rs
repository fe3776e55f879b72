//! When the power goes, what was acknowledged stays, and revisions only grow.

use super::medium::Medium;
use super::{body, create, key, update};
use crate::storage::encryption::{Keys, test_keys};
use crate::storage::store::disk::Otherwise;
use crate::storage::store::{Limits, Object, Store, Write, WriteError};
use std::collections::BTreeMap;

/// Small and repeatable.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % sides
    }
}

/// What a client knows of one key: what was acknowledged last, and whether a later write's answer was lost.
#[derive(Default)]
struct Known {
    acknowledged: Option<Object>,
    open: bool,
}

async fn write_on(store: Store, name: String, mut dice: Dice) -> (String, Known) {
    let mut known = Known { acknowledged: store.get(&key(&name)), open: false };
    for _ in 0..2000 {
        let write = match &known.acknowledged {
            None => create("new"),
            Some(object) if dice.roll(5) == 0 => Write::delete(object.revision, body("gone")),
            Some(object) => update(object, &"x".repeat(dice.roll(6000))),
        };
        let deletes = matches!(write, Write::Delete { .. });
        match store.write(key(&name), write).await {
            Ok(_) if deletes => known.acknowledged = None,
            Ok(object) => known.acknowledged = Some(object),
            Err(WriteError::Io(_)) => {
                known.open = true;
                return (name, known);
            }
            Err(error) => panic!("{name}: {error}"),
        }
    }
    panic!("{name} was acknowledged 2000 writes that no medium was asked for");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_loses_nothing_acknowledged() {
    survives(|_| Keys::default()).await;
}

/// Encrypted, with other keys every few rounds: the file is rewritten then.
#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_loses_nothing_acknowledged_that_was_encrypted() {
    survives(|round| match round % 9 {
        0..3 => test_keys(&[1, 2, 3]),
        3..6 => test_keys(&[2, 1, 3]),
        _ => test_keys(&[3, 2, 1]),
    })
    .await;
}

async fn survives(keys: impl Fn(u64) -> Keys) {
    let mut dice = Dice(0x5eed);
    let medium = Medium::default();
    let mut before: BTreeMap<String, Known> = BTreeMap::new();
    let mut revision = 0;
    for round in 0..80 {
        let store =
            Store::open_at(Box::new(medium.clone()), Limits::default(), &keys(round), Otherwise::Rewrite)
                .unwrap();
        assert!(store.revision() >= revision, "round {round}: {} after {revision}", store.revision());
        for (name, known) in &before {
            let found = store.get(&key(name));
            let newer = |object: &Object| known.open && object.revision > revision;
            match (&known.acknowledged, &found) {
                (Some(wrote), Some(found)) => assert!(wrote == found || newer(found), "round {round} {name}"),
                (None, Some(found)) => assert!(newer(found), "round {round} {name}: {found:?}"),
                (Some(_), None) => assert!(known.open, "round {round} {name} is lost"),
                (None, None) => {}
            }
        }
        medium.cut_power_after(1 + dice.roll(400));
        let writers = (0..6)
            .map(|at| tokio::spawn(write_on(store.clone(), format!("n{at}"), Dice(round * 7 + at + 1))));
        let writers: Vec<_> = writers.collect();
        before.clear();
        for writer in writers {
            let (name, known) = writer.await.unwrap();
            before.insert(name, known);
        }
        revision = store.revision();
        drop(store);
        medium.boot(|sides| dice.roll(sides));
    }
    assert!(revision > 1000, "too little was written to prove anything: {revision}");
}
