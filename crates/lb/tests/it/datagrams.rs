//! Datagrams: shares, flows that stay, backends that go.

use std::collections::BTreeMap;
use std::time::Duration;

use atoll_balance::{Checks, ClusterShare};
use atoll_lb::{Desired, Protocol};
use tokio::net::UdpSocket;

use crate::world::{DEADLINE, Server, World, any};

/// Asks until it is answered, as clients of datagrams do; the answer, and how often it took.
async fn ask(client: &UdpSocket, world: &World, what: &[u8]) -> (Vec<u8>, usize) {
    let mut buffer = vec![0; 65_535];
    for attempt in 1..12 {
        client.send_to(what, world.address).await.unwrap();
        let wait = DEADLINE.min(Duration::from_secs(1) * attempt);
        if let Ok(answer) = tokio::time::timeout(wait, client.recv(&mut buffer)).await {
            buffer.truncate(answer.unwrap());
            return (buffer, attempt as usize);
        }
    }
    panic!("no answer\n{}", world.balancer.metrics());
}

async fn name(client: &UdpSocket, world: &World) -> String {
    String::from_utf8_lossy(&ask(client, world, b"").await.0).into_owned()
}

/// As [`name`], for the first datagram of a flow: none may be lost on loopback.
async fn first(client: &UdpSocket, world: &World) -> String {
    let (name, attempts) = ask(client, world, b"").await;
    assert_eq!(attempts, 1);
    String::from_utf8_lossy(&name).into_owned()
}

#[tokio::test]
async fn flows_have_the_configured_proportion_and_stay_where_they_are() {
    let (paris, tokyo) = (Server::udp("paris").await, Server::udp("tokyo").await);
    let world = World::new(Protocol::Udp, &[&paris, &tokyo], |listener| {
        for (cluster, weight) in [("paris", 3), ("tokyo", 1)] {
            listener.settings.clusters.insert(cluster.into(), ClusterShare { weight: Some(weight), tier: 0 });
        }
    })
    .await;
    let mut answers: BTreeMap<String, usize> = BTreeMap::new();
    for _ in 0..200 {
        let client = UdpSocket::bind(any()).await.unwrap();
        let first = first(&client, &world).await;
        assert_eq!(name(&client, &world).await, first);
        *answers.entry(first).or_default() += 1;
    }
    // 150 expected, with a deviation of 6: five of them.
    assert!(answers["paris"].abs_diff(150) < 31, "{answers:?}");
}

#[tokio::test]
async fn long_datagrams_are_carried_whole() {
    let paris = Server::udp("paris").await;
    let world = World::new(Protocol::Udp, &[&paris], |_| {}).await;
    let client = UdpSocket::bind(any()).await.unwrap();
    for length in [0, 1, 1500, 2048, 9000, 60_000] {
        let said: Vec<u8> = (0..length).map(|number| (number % 251) as u8).collect();
        let (heard, _) = ask(&client, &world, &said).await;
        assert_eq!((&heard[..5], &heard[5..]), (&b"paris"[..], &said[..]), "{length}");
    }
}

#[tokio::test]
async fn a_flow_moves_when_its_backend_is_gone() {
    let (paris, tokyo) = (Server::udp("paris").await, Server::udp("tokyo").await);
    let world = World::new(Protocol::Udp, &[&paris, &tokyo], |_| {}).await;
    let mut clients = Vec::new();
    while clients.len() < 5 {
        let client = UdpSocket::bind(any()).await.unwrap();
        if name(&client, &world).await == "paris" {
            clients.push(client);
        }
    }
    paris.kill().await;
    for client in &clients {
        assert_eq!(name(client, &world).await, "tokyo");
    }
}

#[tokio::test]
async fn a_removed_backend_keeps_its_flows_for_its_time() {
    let (paris, tokyo) = (Server::udp("paris").await, Server::udp("tokyo").await);
    let mut world = World::new(Protocol::Udp, &[&paris], |listener| {
        listener.settings.drain = Duration::from_secs(1);
    })
    .await;
    let client = UdpSocket::bind(any()).await.unwrap();
    assert_eq!(name(&client, &world).await, "paris");
    world.change(|listener| listener.backends = vec![tokyo.backend()]).await;
    assert_eq!(name(&client, &world).await, "paris");
    let other = UdpSocket::bind(any()).await.unwrap();
    assert_eq!(name(&other, &world).await, "tokyo");
    world.until("paris is forgotten", |world| world.metric(&["paris"]).is_none()).await;
    assert_eq!(name(&client, &world).await, "tokyo");
}

#[tokio::test]
async fn silent_flows_end_and_make_room() {
    let paris = Server::udp("paris").await;
    let world = World::new(Protocol::Udp, &[&paris], |listener| {
        listener.idle_timeout = Duration::from_millis(600);
        listener.limits.connections = 1;
    })
    .await;
    let client = UdpSocket::bind(any()).await.unwrap();
    assert_eq!(name(&client, &world).await, "paris");
    let other = UdpSocket::bind(any()).await.unwrap();
    let (_, attempts) = ask(&other, &world, b"").await;
    assert!(attempts > 1 && world.metric(&["over_limit"]) >= Some(1), "{attempts}");
}

/// Nobody else is there: its flows would only come back to it, each time by another socket.
#[tokio::test]
async fn the_last_backend_keeps_its_flows_though_its_checks_fail() {
    let paris = Server::udp("paris").await;
    // A port that nobody has: bound once, and let go.
    let nobody = tokio::net::TcpListener::bind(any()).await.unwrap().local_addr().unwrap().port();
    let world = World::new(Protocol::Udp, &[&paris], |listener| {
        let interval = Duration::from_millis(20);
        listener.settings.checks = Some(Checks { interval, ..Checks::default() });
        listener.check_port = Some(nobody);
    })
    .await;
    let client = UdpSocket::bind(any()).await.unwrap();
    world.until("paris is unhealthy", |world| world.metric(&["paris", "unhealthy"]) == Some(1)).await;
    for _ in 0..50 {
        assert_eq!(name(&client, &world).await, "paris");
    }
    assert_eq!(world.metric(&["atoll_lb_connections_total", "paris"]), Some(1));
    assert_eq!(world.metric(&["atoll_lb_open_connections", "paris"]), Some(1));
}

/// The kernel shares clients out among all sockets of an address: one that nobody reads would swallow them.
#[tokio::test]
async fn a_listener_that_was_away_for_a_moment_hears_every_client() {
    let paris = Server::udp("paris").await;
    let world = World::new(Protocol::Udp, &[&paris], |_| {}).await;
    for _ in 0..20 {
        let client = UdpSocket::bind(any()).await.unwrap();
        assert_eq!(name(&client, &world).await, "paris");
    }
    world.balancer.apply(Desired::default()).await;
    world.until("its flows have ended", |world| world.metric(&["paris"]).is_none()).await;
    let listener = atoll_lb::Listener { address: world.address, ..world.listener.clone() };
    assert_eq!(world.balancer.apply(Desired { listeners: vec![listener] }).await, []);
    for _ in 0..20 {
        let client = UdpSocket::bind(any()).await.unwrap();
        first(&client, &world).await;
    }
}
