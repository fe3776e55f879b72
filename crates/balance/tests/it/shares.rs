//! Picking many times gives each backend its share, by hash and by open connections.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use atoll_balance::{Algorithm, Backend, ClusterShare, Level, Picture, Pool, Settings, client, flow};

fn pool(algorithm: Algorithm, backends: &[(&str, &str)], clusters: &[(&str, u32, u32)]) -> Pool {
    let shares = clusters
        .iter()
        .map(|(name, weight, tier)| ((*name).into(), ClusterShare { weight: Some(*weight), tier: *tier }));
    let settings = Settings { algorithm, clusters: shares.collect(), ..Settings::default() };
    let mut pool = Pool::default();
    let backends = backends
        .iter()
        .map(|(address, cluster)| Backend::new(address.parse().expect("an address"), cluster))
        .collect();
    assert!(pool.configure(settings, backends, Duration::ZERO));
    pool
}

fn clients() -> impl Iterator<Item = SocketAddr> {
    (0..40_000_u32).map(|number| {
        let [.., a, b] = (number / 100).to_be_bytes();
        SocketAddr::from(([192, 0, a, b], 30_000 + (number % 100) as u16))
    })
}

fn percent_of(picture: &Picture, cluster: &str, picks: impl Iterator<Item = usize>) -> f64 {
    let (mut its, mut all) = (0.0, 0.0);
    for number in picks {
        all += 1.0;
        its += f64::from(u8::from(&*picture.candidates()[number].cluster == cluster));
    }
    its / all * 100.0
}

const THREE: [(&str, &str); 3] =
    [("10.1.0.1:80", "paris"), ("10.1.0.2:80", "paris"), ("10.2.0.1:80", "tokyo")];

#[test]
fn clusters_get_their_weights_by_hash() {
    let pool = pool(Algorithm::Maglev, &THREE, &[("paris", 1, 0), ("tokyo", 3, 0)]);
    let picture = pool.picture();
    let share = percent_of(picture, "tokyo", clients().filter_map(|from| picture.pick(flow(1, from), &[])));
    assert!((share - 75.0).abs() < 1.0, "{share}");
    let by_ip =
        percent_of(picture, "tokyo", clients().filter_map(|from| picture.pick(client(1, from.ip()), &[])));
    assert!((by_ip - 75.0).abs() < 8.0, "400 addresses: {by_ip}");
}

#[test]
fn open_connections_settle_at_the_weights() {
    let pool = pool(Algorithm::LeastConnections, &THREE, &[("paris", 1, 0), ("tokyo", 3, 0)]);
    let picture = pool.picture();
    let open = RefCell::new(vec![0_usize; 3]);
    for from in clients().take(4000) {
        let number = picture.least(|number| open.borrow()[number], flow(1, from), &[]).unwrap();
        open.borrow_mut()[number] += 1;
    }
    for (candidate, open) in picture.candidates().iter().zip(open.take()) {
        let want = if &*candidate.cluster == "tokyo" { 3000 } else { 500 };
        assert!(open.abs_diff(want) <= 2, "{}: {open}, not {want}", candidate.address);
    }
}

#[test]
fn equals_take_turns_when_nothing_is_open() {
    let pool = pool(Algorithm::LeastConnections, &THREE, &[]);
    let picture = pool.picture();
    let picks = clients().filter_map(|from| picture.least(|_| 0, flow(1, from), &[]));
    let share = percent_of(picture, "tokyo", picks);
    assert!((share - 33.3).abs() < 2.0, "{share}");
}

#[test]
fn another_tier_takes_over_when_the_first_has_nobody() {
    let mut pool = pool(Algorithm::Maglev, &THREE, &[("paris", 1, 1), ("tokyo", 1, 0)]);
    assert_eq!((pool.picture().level(), pool.picture().candidates().len()), (Level::Tier(0), 1));
    let tokyo = "10.2.0.1:80".parse().unwrap();
    for _ in 0..3 {
        pool.failed(tokyo, Duration::ZERO);
    }
    assert_eq!((pool.picture().level(), pool.picture().candidates().len()), (Level::Tier(1), 2));
    let (changed, gone) = pool.tick(|_| 0, Duration::from_secs(5));
    assert!(changed && gone.is_empty());
    assert_eq!(pool.picture().level(), Level::Tier(0));
}

#[test]
fn whoever_was_tried_is_not_picked_again() {
    for algorithm in [Algorithm::Maglev, Algorithm::LeastConnections] {
        let pool = pool(algorithm, &THREE, &[("paris", 1, 0), ("tokyo", 50, 0)]);
        let picture = pool.picture();
        for from in clients().take(500) {
            let mut tried = Vec::new();
            for _ in 0..3 {
                let next = match algorithm {
                    Algorithm::Maglev => picture.pick(flow(1, from), &tried),
                    Algorithm::LeastConnections => picture.least(|_| 0, flow(1, from), &tried),
                };
                let next = next.unwrap();
                assert!(!tried.contains(&next));
                tried.push(next);
            }
            assert_eq!(picture.pick(flow(1, from), &tried), None);
            assert_eq!(picture.least(|_| 0, flow(1, from), &tried), None);
        }
    }
}
