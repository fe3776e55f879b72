//! Whatever happens to a pool, no worse backend is picked while a better one is there.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use atoll_balance::{Algorithm, Backend, Checks, ClusterShare, Gone, Level, Pool, Settings, Standing};
use proptest::prelude::*;

#[derive(Debug, Clone)]
enum Event {
    List(Vec<(u8, u8, u32, bool)>),
    Checked(u8, bool),
    Failed(u8),
    Passed(u8),
    Later(u16),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => prop::collection::vec((0..6_u8, 0..3_u8, 0..3_u32, any::<bool>()), 0..6).prop_map(Event::List),
        6 => (0..6_u8, any::<bool>()).prop_map(|(which, good)| Event::Checked(which, good)),
        6 => (0..6_u8).prop_map(Event::Failed),
        2 => (0..6_u8).prop_map(Event::Passed),
        4 => (0..20_000_u16).prop_map(Event::Later),
    ]
}

fn address(which: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, which], 80))
}

fn settings(algorithm: Algorithm) -> Settings {
    let clusters =
        (0..3_u32).map(|n| (format!("c{n}").into(), ClusterShare { weight: Some(n), tier: n % 2 }));
    Settings {
        algorithm,
        clusters: clusters.collect(),
        checks: Some(Checks::default()),
        ..Settings::default()
    }
}

fn rank(standing: Standing, tier: u32) -> Option<Level> {
    match standing {
        Standing::Usable => Some(Level::Tier(tier)),
        Standing::WithoutShare => Some(Level::WithoutShare),
        Standing::Draining => Some(Level::Draining),
        Standing::Ejected { .. } => Some(Level::Ejected),
        Standing::Unhealthy => Some(Level::Unhealthy),
        Standing::Leaving { .. } => None,
    }
}

proptest! {
    #[test]
    fn no_worse_backend_is_picked_while_a_better_one_is_there(
        events in prop::collection::vec(event(), 1..60),
        least: bool,
        hash: u64,
    ) {
        let algorithm = if least { Algorithm::LeastConnections } else { Algorithm::Maglev };
        let mut pool = Pool::default();
        let mut now = Duration::ZERO;
        // What can be told from outside: the checks of each, and whether a connection to it ever failed.
        let mut seen: BTreeMap<SocketAddr, (Vec<bool>, bool)> = BTreeMap::new();
        for event in events {
            let before = pool.picture().clone();
            match &event {
                Event::Checked(which, good) => {
                    if let Some((checks, _)) = seen.get_mut(&address(*which)) {
                        checks.push(*good);
                    }
                }
                Event::Failed(which) => {
                    if let Some((_, failed)) = seen.get_mut(&address(*which)) {
                        *failed = true;
                    }
                }
                Event::List(_) | Event::Passed(_) | Event::Later(_) => {}
            }
            let changed = match event {
                Event::List(list) => {
                    let list: BTreeMap<_, _> = list.into_iter().map(|b| (b.0, b)).collect();
                    let backends = list.values().map(|(which, cluster, weight, draining)| Backend {
                        weight: *weight,
                        draining: *draining,
                        ..Backend::new(address(*which), &format!("c{cluster}"))
                    });
                    pool.configure(settings(algorithm), backends.collect(), now)
                }
                Event::Checked(which, good) => pool.checked(address(which), good, now),
                Event::Failed(which) => pool.failed(address(which), now),
                Event::Passed(which) => { pool.passed(address(which)); false }
                Event::Later(by) => {
                    now += Duration::from_millis(u64::from(by));
                    pool.tick(|_| 1, now).0
                }
            };
            prop_assert_eq!(changed, before != *pool.picture(), "news are told, and only news");
            seen.retain(|address, _| pool.standings().any(|(backend, _)| backend.address == *address));
            for (backend, _) in pool.standings() {
                seen.entry(backend.address).or_default();
            }
            let ends_with = |address: SocketAddr, good| seen[&address].0.ends_with(&[good, good]);
            let better = pool.standings().find(|(backend, standing)| {
                !matches!(standing, Standing::Leaving { .. })
                    && !backend.draining
                    && !seen[&backend.address].1
                    && (ends_with(backend.address, true) || seen[&backend.address].0.is_empty())
            });
            if let Some((better, _)) = better {
                for candidate in pool.picture().candidates() {
                    prop_assert!(!ends_with(candidate.address, false), "{} rather than {}", candidate.address, better.address);
                }
            }
            let standings: BTreeMap<SocketAddr, Option<Level>> = pool
                .standings()
                .map(|(backend, standing)| {
                    let tier = pool.settings().clusters.get(&backend.cluster).map_or(0, |share| share.tier);
                    (backend.address, rank(standing, tier))
                })
                .collect();
            let best = standings.values().flatten().min().copied();
            let picture = pool.picture();
            prop_assert_eq!(picture.level(), best.unwrap_or(Level::Empty));
            let picked = match algorithm {
                Algorithm::Maglev => picture.pick(hash, &[]),
                Algorithm::LeastConnections => picture.least(|_| 0, hash, &[]),
            };
            let picked = picked.map(|number| standings[&picture.candidates()[number].address]);
            prop_assert_eq!(picked, best.map(Some), "{:?}", standings);
        }
    }
}

#[test]
fn whoever_leaves_finishes_or_is_cut() {
    let second = Duration::from_secs;
    let mut pool = Pool::default();
    let two = || vec![Backend::new(address(1), "c1"), Backend::new(address(2), "c1")];
    pool.configure(settings(Algorithm::Maglev), two(), second(0));
    pool.configure(settings(Algorithm::Maglev), Vec::new(), second(10));
    assert_eq!(pool.picture().level(), Level::Empty);
    assert_eq!(pool.next(), Some(second(40)));
    let open = |at: SocketAddr| usize::from(at == address(1));
    assert_eq!(pool.tick(open, second(11)).1, [Gone::Finished(address(2))]);
    assert_eq!(pool.tick(open, second(39)).1, []);
    assert_eq!(pool.tick(open, second(40)).1, [Gone::Overdue(address(1))]);
    assert_eq!(pool.standings().count(), 0);
    // One that comes back in time was never away.
    pool.configure(settings(Algorithm::Maglev), two(), second(50));
    pool.configure(settings(Algorithm::Maglev), Vec::new(), second(51));
    pool.configure(settings(Algorithm::Maglev), two(), second(52));
    assert_eq!(pool.tick(|_| 0, second(500)).1, []);
    assert_eq!(pool.picture().candidates().len(), 2);
}

#[test]
fn checks_begin_once_and_their_end_begins_the_next() {
    let mut pool = Pool::default();
    let start = Duration::from_secs(7);
    pool.configure(settings(Algorithm::Maglev), vec![Backend::new(address(1), "c1")], start);
    assert_eq!(pool.begin_checks(start), [address(1)]);
    assert_eq!(pool.begin_checks(start + Duration::from_secs(9)), []);
    assert!(!pool.checked(address(1), true, start));
    assert_eq!(pool.next(), Some(start + Duration::from_millis(500)));
    assert_eq!(pool.begin_checks(start + Duration::from_millis(500)), [address(1)]);
}
