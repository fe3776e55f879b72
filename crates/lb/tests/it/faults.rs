//! Backends that die, hang or reset: clients notice as little as possible.

use std::time::Duration;

use atoll_balance::{Backend, Checks, ClusterShare};
use atoll_lb::{Desired, Listener, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{DEADLINE, Server, World, any, repeats};

#[tokio::test]
async fn a_dead_backend_costs_no_new_connection() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let world = World::new(Protocol::Tcp, &[&paris, &tokyo], |_| {}).await;
    let (mut kept, _) = loop {
        let (stream, name) = world.connect().await.unwrap();
        if name == "tokyo" {
            break (stream, name);
        }
    };
    paris.kill().await;
    let answers = world.answers(100).await;
    assert_eq!(answers.into_iter().collect::<Vec<_>>(), [("tokyo".to_owned(), 100)]);
    assert!(repeats(&mut kept, b"not my loss").await);
    // After a few it is not even tried.
    assert!(world.metric(&["failed_connections", "paris"]).is_some_and(|failed| (1..=10).contains(&failed)));
    assert_eq!(world.metric(&["backend_standing", "paris", "ejected"]), Some(1));
}

#[tokio::test]
async fn a_backend_that_takes_no_connection_is_left_for_another() {
    let tokyo = Server::tcp("tokyo").await;
    // An address of documentation: nobody answers there, or the kernel says so at once.
    let silent = Backend::new("192.0.2.1:9".parse().unwrap(), "paris");
    let world = World::new(Protocol::Tcp, &[&tokyo], |listener| {
        listener.backends.push(silent);
        listener.connect_timeout = Duration::from_millis(100);
        listener.settings.clusters.insert("paris".into(), ClusterShare { weight: Some(99), tier: 0 });
    })
    .await;
    assert_eq!(world.answers(20).await.into_iter().collect::<Vec<_>>(), [("tokyo".to_owned(), 20)]);
}

#[tokio::test]
async fn checks_move_clients_away_and_back() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let world = World::new(Protocol::Tcp, &[&paris, &tokyo], |listener| {
        let interval = Duration::from_millis(20);
        listener.settings.checks = Some(Checks { interval, ..Checks::default() });
        listener.settings.ejection = None;
        for (cluster, tier) in [("paris", 0), ("tokyo", 1)] {
            listener.settings.clusters.insert(cluster.into(), ClusterShare { weight: None, tier });
        }
    })
    .await;
    assert_eq!(world.answers(10).await["paris"], 10);
    let address = paris.kill().await;
    world.until("paris is unhealthy", |world| world.metric(&["paris", "unhealthy"]) == Some(1)).await;
    assert_eq!(world.answers(10).await["tokyo"], 10);
    let back = TcpListener::bind(address).await.unwrap();
    world.until("paris is back", |world| world.metric(&["paris", "usable"]) == Some(1)).await;
    drop(back);
}

#[tokio::test]
async fn a_reset_of_the_backend_is_a_reset_for_the_client() {
    let listener = TcpListener::bind(any()).await.unwrap();
    let backend = Backend::new(listener.local_addr().unwrap(), "paris");
    let world = World::new(Protocol::Tcp, &[], |listener| listener.backends = vec![backend]).await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    client.write_all(b"half of").await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    // It goes with unread bytes, which resets; `readable` alone may be a false alarm.
    stream.peek(&mut [0]).await.unwrap();
    drop(stream);
    let heard = tokio::time::timeout(DEADLINE, client.read_u8()).await.unwrap();
    assert_eq!(heard.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn without_backends_a_client_is_told_at_once() {
    let world = World::new(Protocol::Tcp, &[], |_| {}).await;
    world.connect().await.unwrap_err();
    assert_eq!(world.metric(&["nobody_total"]), Some(1));
}

#[tokio::test]
async fn an_address_that_is_taken_is_said_and_tried_again() {
    let taken = std::net::TcpListener::bind(any()).unwrap();
    let address = taken.local_addr().unwrap();
    let server = Server::tcp("paris").await;
    let mut world = World::new(Protocol::Tcp, &[&server], |_| {}).await;
    let second = Listener::new("shop/second", Protocol::Tcp, address, vec![server.backend()]);
    let wanted = Desired { listeners: vec![world.listener.clone(), second] };
    let unbound = world.balancer.apply(wanted).await;
    assert_eq!(unbound.len(), 1);
    assert!(unbound[0].hint.contains("another process listens there"), "{unbound:?}");
    // The other one works meanwhile.
    assert_eq!(world.answers(3).await["paris"], 3);
    drop(taken);
    world.address = address;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while world.connect().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "it never tried again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
