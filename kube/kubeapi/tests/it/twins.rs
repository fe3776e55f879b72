//! The store in memory, the store on disk, and a plain list of everything that ever happened answer the same.

use atoll_kubeapi::store::{EventKind, Key, Limits, Object, RevisionError, Store, Watch, Write, WriteError};
use bytes::Bytes;
use proptest::prelude::*;
use std::collections::BTreeMap;

const LIMITS: Limits = Limits { events: 12, bytes: 400 };
const PREFIXES: [&str; 5] =
    ["/", "/core/configmaps/", "/core/configmaps/a/", "/core/configmaps/a-b/", "/apps/"];

fn keys() -> Vec<Key> {
    let mut keys = Vec::new();
    for (group, resource) in [("", "configmaps"), ("apps", "deployments")] {
        for namespace in ["a", "a-b", "b"] {
            for name in ["x", "y"] {
                keys.push(Key::new(group, resource, namespace, name));
            }
        }
    }
    keys
}

#[derive(Debug, Clone)]
enum Step {
    Create {
        key: usize,
        size: usize,
    },
    /// `off` is 0 for the revision that is there.
    Update {
        key: usize,
        size: usize,
        off: u64,
    },
    Delete {
        key: usize,
        off: u64,
    },
    List {
        prefix: usize,
        back: Option<u64>,
        after: Option<usize>,
        limit: Option<usize>,
    },
    Watch {
        prefix: usize,
        back: Option<u64>,
    },
    /// Reads up to so many events of a watch.
    Read {
        watch: usize,
        events: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let key = 0..12usize;
    let size = 0..60usize;
    let off = prop_oneof![4 => Just(0u64), 1 => 1..3u64];
    let back = prop::option::of(0..20u64);
    prop::collection::vec(
        prop_oneof![
            4 => (key.clone(), size.clone()).prop_map(|(key, size)| Step::Create { key, size }),
            5 => (key.clone(), size, off.clone()).prop_map(|(key, size, off)| Step::Update { key, size, off }),
            2 => (key.clone(), off).prop_map(|(key, off)| Step::Delete { key, off }),
            4 => (0..5usize, back.clone(), prop::option::of(key), prop::option::of(0..5usize))
                .prop_map(|(prefix, back, after, limit)| Step::List { prefix, back, after, limit }),
            1 => (0..5usize, back).prop_map(|(prefix, back)| Step::Watch { prefix, back }),
            3 => (0..8usize, 1..6usize).prop_map(|(watch, events)| Step::Read { watch, events }),
        ],
        1..60,
    )
}

/// Everything that ever was.
#[derive(Default)]
struct Chronicle {
    /// At index r, the state at revision r.
    states: Vec<BTreeMap<Key, Object>>,
    /// At index r, the event of revision r + 1.
    events: Vec<(EventKind, Object, Option<Bytes>)>,
}

impl Chronicle {
    fn revision(&self) -> u64 {
        self.events.len() as u64
    }

    fn now(&self) -> &BTreeMap<Key, Object> {
        self.states.last().unwrap()
    }

    fn write(
        &mut self,
        key: &Key,
        kind: EventKind,
        expect: Option<u64>,
        text: &str,
    ) -> Result<Object, WriteError> {
        let current = self.now().get(key).cloned();
        match (kind, &current, expect) {
            (EventKind::Added, Some(found), _) => return Err(WriteError::Exists(found.clone())),
            (EventKind::Modified | EventKind::Deleted, None, _) => return Err(WriteError::Missing),
            (EventKind::Modified | EventKind::Deleted, Some(found), Some(expect))
                if found.revision != expect =>
            {
                return Err(WriteError::Conflict(found.clone()));
            }
            _ => {}
        }
        let revision = self.revision() + 1;
        let object = Object { key: key.clone(), revision, body: format!("{revision} {text}").into() };
        let mut next = self.now().clone();
        if kind == EventKind::Deleted {
            next.remove(key);
        } else {
            next.insert(key.clone(), object.clone());
        }
        self.states.push(next);
        self.events.push((kind, object.clone(), current.map(|object| object.body)));
        Ok(object)
    }
}

/// A store, and its watches with where each should be.
struct Twin {
    store: Store,
    watches: Vec<(Watch, usize, u64)>,
}

impl Twin {
    fn write(&self, key: &Key, kind: EventKind, expect: u64, text: &str) -> Result<Object, WriteError> {
        let text = text.to_owned();
        let body = move |revision| Bytes::from(format!("{revision} {text}"));
        let write = match kind {
            EventKind::Added => Write::create(body),
            EventKind::Modified => Write::update(expect, body),
            EventKind::Deleted => Write::delete(expect, body),
        };
        futures_block(self.store.write(key.clone(), write))
    }
}

fn futures_block<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn check_list(twin: &Twin, told: &Chronicle, step: &Step) {
    let Step::List { prefix, back, after, limit } = step else { return };
    let prefix = PREFIXES[*prefix];
    let after = after.map(|at| keys()[at].clone());
    let at = back.map(|back| told.revision().saturating_sub(back));
    let page = twin.store.list(prefix, at, after.as_ref(), *limit);
    let at = at.unwrap_or(told.revision());
    if at < twin.store.compacted() {
        let oldest = twin.store.compacted();
        assert_eq!(page, Err(RevisionError::Gone { requested: at, oldest }));
        return;
    }
    let page = page.unwrap();
    let then = &told.states[usize::try_from(at).unwrap()];
    let mut expected: Vec<Object> = then
        .values()
        .filter(|object| object.key.as_str().starts_with(prefix))
        .filter(|object| after.as_ref().is_none_or(|after| object.key > *after))
        .cloned()
        .collect();
    let rest = expected.split_off(limit.unwrap_or(usize::MAX).min(expected.len()));
    assert_eq!((page.revision, page.objects, page.remaining), (at, expected, rest.len()), "{step:?}");
}

fn read(twin: &mut Twin, told: &Chronicle, watch: usize, events: usize) {
    let Some(watch) = watch.checked_rem(twin.watches.len()) else { return };
    let compacted = twin.store.compacted();
    let (reader, prefix, seen) = &mut twin.watches[watch];
    let prefix = PREFIXES[*prefix];
    for _ in 0..events {
        let later = told.events.iter().skip(usize::try_from(*seen).unwrap());
        let next = later.clone().find(|(_, object, _)| object.key.as_str().starts_with(prefix));
        match (reader.try_next(), next) {
            (Ok(Some(event)), Some((kind, object, previous))) => {
                assert_eq!((event.kind, &event.object, &event.previous), (*kind, object, previous));
                *seen = object.revision;
            }
            (Ok(None), None) => *seen = told.revision(),
            (Err(RevisionError::Gone { .. }), next) => {
                // Cut off only if something of the same resource that it had not seen is gone; a prefix of
                // several resources counts for all of them.
                let resource = prefix.match_indices('/').nth(2).map_or("", |(end, _)| &prefix[..=end]);
                let lost = told.events.iter().any(|(_, object, _)| {
                    let unseen = object.revision > *seen && object.revision <= compacted;
                    unseen && object.key.as_str().starts_with(resource)
                });
                assert!(lost, "cut off at {seen} for nothing; next is {next:?}");
                twin.watches.swap_remove(watch);
                return;
            }
            (found, next) => panic!("after {seen} of {prefix}: {found:?} instead of {next:?}"),
        }
        assert!(reader.revision() >= *seen || next.is_none());
    }
}

fn run(steps: &[Step]) {
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = dir.path().join("store.redb");
    let mut twins = [Store::memory_with(LIMITS), Store::open_with(&path, LIMITS).unwrap()]
        .map(|store| Twin { store, watches: Vec::new() });
    let mut told = Chronicle { states: vec![BTreeMap::new()], events: Vec::new() };
    let keys = keys();
    for step in steps {
        if let Step::Create { key, .. } | Step::Update { key, .. } | Step::Delete { key, .. } = step {
            let key = &keys[*key];
            let (kind, size, off) = match *step {
                Step::Create { size, .. } => (EventKind::Added, size, 0),
                Step::Update { size, off, .. } => (EventKind::Modified, size, off),
                Step::Delete { off, .. } => (EventKind::Deleted, 3, off),
                _ => unreachable!("only writes get here"),
            };
            let text = "x".repeat(size);
            let expect = told.now().get(key).map_or(0, |object| object.revision) + off;
            let answers = [0, 1].map(|at: usize| twins[at].write(key, kind, expect, &text));
            let expected = told.write(key, kind, Some(expect), &text);
            assert_eq!(answers, [expected.clone(), expected], "{step:?}");
        }
        for twin in &mut twins {
            assert_eq!(twin.store.revision(), told.revision());
            match step {
                Step::List { .. } => check_list(twin, &told, step),
                Step::Watch { prefix, back } => {
                    let since = back.map(|back| told.revision().saturating_sub(back));
                    match twin.store.watch(PREFIXES[*prefix], since) {
                        Ok(watch) => twin.watches.push((watch, *prefix, since.unwrap_or(told.revision()))),
                        Err(_) => assert!(since.unwrap() < twin.store.compacted()),
                    }
                }
                Step::Read { watch, events } => read(twin, &told, *watch, *events),
                Step::Create { key, .. } | Step::Update { key, .. } | Step::Delete { key, .. } => {
                    assert_eq!(twin.store.get(&keys[*key]).as_ref(), told.now().get(&keys[*key]));
                }
            }
        }
        assert_eq!(twins[0].store.compacted(), twins[1].store.compacted());
    }
    drop(twins);
    let store = Store::open_with(&path, LIMITS).unwrap();
    let page = store.list("/", None, None, None).unwrap();
    assert_eq!(page.revision, told.revision());
    assert!(page.objects.iter().eq(told.now().values()), "{page:?}");
    assert_eq!(store.compacted(), told.revision(), "history does not survive, and says so");
}

/// What CI once found: the chronicle took a group for a resource and called the cut a mistake.
#[test]
fn a_watch_of_a_whole_group_is_cut_off_by_its_neighbours() {
    let mut steps = vec![
        Step::Watch { prefix: 4, back: None },
        Step::Create { key: 0, size: 3 },
        Step::Create { key: 7, size: 3 },
    ];
    for _ in 0..LIMITS.events - 1 {
        steps.push(Step::Update { key: 7, size: 3, off: 0 });
    }
    steps.push(Step::Read { watch: 0, events: 5 });
    run(&steps);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
    #[test]
    fn memory_disk_and_chronicle_agree(steps in steps()) {
        run(&steps);
    }
}
