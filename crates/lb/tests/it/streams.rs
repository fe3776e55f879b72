//! Streams: shares, integrity, reloads, limits.

use std::time::Duration;

use atoll_balance::{Algorithm, ClusterShare};
use atoll_lb::{Listener, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::world::{DEADLINE, Server, World, any, repeats};

fn share(listener: &mut Listener, cluster: &str, weight: u32, tier: u32) {
    listener.settings.clusters.insert(cluster.into(), ClusterShare { weight: Some(weight), tier });
}

#[tokio::test]
async fn clusters_answer_in_the_configured_proportion() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let world = World::new(Protocol::Tcp, &[&paris, &tokyo], |listener| {
        share(listener, "paris", 3, 0);
        share(listener, "tokyo", 1, 0);
    })
    .await;
    let answers = world.answers(400).await;
    // 300 expected, with a deviation of 9: five of them.
    assert!(answers["paris"].abs_diff(300) < 45, "{answers:?}");
    assert_eq!(world.metric(&["connections_total", "paris"]), Some(answers["paris"] as u64));
}

#[tokio::test]
async fn open_connections_are_levelled() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let world = World::new(Protocol::Tcp, &[&paris, &tokyo], |listener| {
        listener.settings.algorithm = Algorithm::LeastConnections;
    })
    .await;
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(world.connect().await.unwrap());
    }
    assert_eq!(open.iter().filter(|(_, name)| name == "paris").count(), 10);
    // One cluster's clients leave: the next ten go there.
    open.retain(|(_, name)| name == "paris");
    world.until("tokyo has none", |world| world.metric(&["open_connections", "tokyo"]) == Some(0)).await;
    for _ in 0..10 {
        let (stream, name) = world.connect().await.unwrap();
        assert_eq!(name, "tokyo");
        open.push((stream, name));
    }
}

#[tokio::test]
async fn a_client_comes_back_to_the_same_backend() {
    let servers = [Server::tcp("paris").await, Server::tcp("tokyo").await, Server::tcp("delhi").await];
    let three: Vec<&Server> = servers.iter().collect();
    for algorithm in [Algorithm::Maglev, Algorithm::LeastConnections] {
        let world = World::new(Protocol::Tcp, &three, |listener| {
            listener.settings.affinity = Some(Duration::from_secs(3600));
            listener.settings.algorithm = algorithm;
        })
        .await;
        assert_eq!(world.answers(30).await.len(), 1, "{algorithm:?}");
    }
}

#[tokio::test]
async fn every_byte_arrives_both_ways_and_so_does_the_end() {
    let server = Server::tcp("paris").await;
    let world = World::new(Protocol::Tcp, &[&server], |_| {}).await;
    let (stream, _) = world.connect().await.unwrap();
    let (mut read, mut write) = stream.into_split();
    // Long enough to be spliced, and uneven, so that a lost or doubled piece shows.
    let said: Vec<u8> = (0..8_000_003_u32).map(|number| (number % 251) as u8).collect();
    let expected = said.clone();
    let writing = tokio::spawn(async move {
        // First a trickle, then a flood, then the end in one direction only.
        for piece in said[..1000].chunks(7) {
            write.write_all(piece).await.unwrap();
        }
        write.write_all(&said[1000..]).await.unwrap();
        write.shutdown().await.unwrap();
    });
    let mut heard = Vec::new();
    tokio::time::timeout(DEADLINE, read.read_to_end(&mut heard)).await.unwrap().unwrap();
    writing.await.unwrap();
    assert!(heard == expected, "{} of {} bytes", heard.len(), expected.len());
    world.until("it has ended", |world| world.metric(&["open_connections", "paris"]) == Some(0)).await;
    assert_eq!(world.metric(&["to_backend_bytes_total"]), Some(8_000_003));
    assert_eq!(world.metric(&["to_client_bytes_total"]), Some(8_000_008));
}

#[tokio::test]
async fn a_slow_reader_slows_the_writer_and_loses_nothing() {
    let source = TcpListener::bind(any()).await.unwrap();
    let backend = atoll_balance::Backend::new(source.local_addr().unwrap(), "paris");
    let world = World::new(Protocol::Tcp, &[], |listener| listener.backends = vec![backend]).await;
    let total = 32 << 20;
    let writing = tokio::spawn(async move {
        let (mut stream, _) = source.accept().await.unwrap();
        let piece: Vec<u8> = (0..65_536_u32).map(|number| (number % 241) as u8).collect();
        for _ in 0..total / piece.len() {
            stream.write_all(&piece).await.unwrap();
        }
    });
    let mut client = TcpStream::connect(world.address).await.unwrap();
    let mut first = [0; 1];
    client.read_exact(&mut first).await.unwrap();
    // Nobody reads: what is under way is bounded by buffers, so the writer can't finish.
    tokio::time::timeout(Duration::from_millis(300), async {
        while !writing.is_finished() {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_err();
    let mut rest = Vec::new();
    tokio::time::timeout(DEADLINE, client.read_to_end(&mut rest)).await.unwrap().unwrap();
    assert_eq!(rest.len(), total - 1);
    assert!(rest.iter().enumerate().all(|(at, byte)| *byte == (((at + 1) % 65_536) % 241) as u8));
    writing.await.unwrap();
}

#[tokio::test]
async fn a_reload_drops_no_connection() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let mut world = World::new(Protocol::Tcp, &[&paris], |_| {}).await;
    let mut old = Vec::new();
    for _ in 0..8 {
        old.push(world.connect().await.unwrap().0);
    }
    for round in 0..20_u32 {
        world
            .change(|listener| {
                listener.backends =
                    if round % 2 == 0 { vec![tokyo.backend()] } else { vec![paris.backend()] };
                listener.idle_timeout += Duration::from_secs(1);
            })
            .await;
        let (mut new, name) = world.connect().await.unwrap();
        assert_eq!(name, if round % 2 == 0 { "tokyo" } else { "paris" });
        assert!(repeats(&mut new, b"new").await);
        for stream in &mut old {
            assert!(repeats(stream, b"old").await, "round {round}");
        }
    }
}

#[tokio::test]
async fn whoever_leaves_finishes_within_its_time() {
    let (paris, tokyo) = (Server::tcp("paris").await, Server::tcp("tokyo").await);
    let mut world = World::new(Protocol::Tcp, &[&paris], |listener| {
        listener.settings.drain = Duration::from_millis(400);
    })
    .await;
    let (mut old, _) = world.connect().await.unwrap();
    world.change(|listener| listener.backends = vec![tokyo.backend()]).await;
    assert!(repeats(&mut old, b"still here").await);
    assert_eq!(world.answers(5).await.into_iter().collect::<Vec<_>>(), [("tokyo".to_owned(), 5)]);
    // Then it is cut, and hears so.
    let ended = tokio::time::timeout(DEADLINE, old.read_u8()).await.unwrap();
    assert_eq!(ended.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    world.until("paris is forgotten", |world| world.metric(&["paris"]).is_none()).await;
}

#[tokio::test]
async fn an_address_that_is_given_up_is_free_and_its_connections_go_on() {
    let paris = Server::tcp("paris").await;
    let world = World::new(Protocol::Tcp, &[&paris], |_| {}).await;
    let (mut old, _) = world.connect().await.unwrap();
    world.balancer.apply(atoll_lb::Desired::default()).await;
    let deadline = tokio::time::Instant::now() + DEADLINE;
    while TcpListener::bind(world.address).await.is_err() {
        assert!(tokio::time::Instant::now() < deadline, "it listens for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(repeats(&mut old, b"still here").await);
    drop(old);
    tokio::time::timeout(DEADLINE, world.balancer.finish()).await.unwrap();
}

#[tokio::test]
async fn limits_turn_away_whoever_is_too_many() {
    let paris = Server::tcp("paris").await;
    for per_client in [false, true] {
        let world = World::new(Protocol::Tcp, &[&paris], |listener| {
            if per_client {
                listener.limits.per_client = Some(2);
            } else {
                listener.limits.connections = 2;
            }
        })
        .await;
        let first = world.connect().await.unwrap();
        let _second = world.connect().await.unwrap();
        world.connect().await.unwrap_err();
        assert_eq!(world.metric(&["over_limit_total"]), Some(1), "per client: {per_client}");
        drop(first);
        world.until("there is room", |world| world.metric(&["open_connections"]) == Some(1)).await;
        world.connect().await.unwrap();
    }
}

/// A balancer that tells its backend who the client is, and that backend.
async fn told_by_header() -> (World, TcpListener) {
    let listener = TcpListener::bind(any()).await.unwrap();
    let backend = atoll_balance::Backend::new(listener.local_addr().unwrap(), "paris");
    let world = World::new(Protocol::Tcp, &[], |listener| {
        listener.backends = vec![backend];
        listener.proxy_protocol = true;
    })
    .await;
    (world, listener)
}

#[tokio::test]
async fn backends_are_told_who_the_client_is() {
    let (world, listener) = told_by_header().await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    client.write_all(b"hello").await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut heard = [0; 33];
    tokio::time::timeout(DEADLINE, stream.read_exact(&mut heard)).await.unwrap().unwrap();
    let (from, to) = (client.local_addr().unwrap(), world.address);
    assert_eq!(heard[..16], *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c");
    assert_eq!(heard[16..24], [127, 0, 0, 1, 127, 0, 0, 1]);
    assert_eq!(heard[24..28], [from.port().to_be_bytes(), to.port().to_be_bytes()].concat());
    assert_eq!(&heard[28..], b"hello");
}

/// A header of the client's own comes after ours: it is part of what he says, not of who he is.
#[tokio::test]
async fn a_client_that_forges_a_proxy_header_is_still_who_he_is() {
    let (world, listener) = told_by_header().await;
    let mut client = TcpStream::connect(world.address).await.unwrap();
    let forged = *b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\x0a\0\0\x01\x0a\0\0\x02\0\x50\0\x50";
    client.write_all(&forged).await.unwrap();
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut heard = [0; 56];
    tokio::time::timeout(DEADLINE, stream.read_exact(&mut heard)).await.unwrap().unwrap();
    assert_eq!(heard[16..20], [127, 0, 0, 1], "the first header is ours");
    assert_eq!(heard[24..26], client.local_addr().unwrap().port().to_be_bytes());
    assert_eq!(heard[28..], forged);
}

#[tokio::test]
async fn an_idle_connection_ends_and_a_busy_one_does_not() {
    let paris = Server::tcp("paris").await;
    let world = World::new(Protocol::Tcp, &[&paris], |listener| {
        listener.idle_timeout = Duration::from_millis(300);
    })
    .await;
    let (mut idle, _) = world.connect().await.unwrap();
    let (mut busy, _) = world.connect().await.unwrap();
    let ended = tokio::time::timeout(DEADLINE, async {
        loop {
            tokio::select! {
                ended = idle.read_u8() => return ended,
                () = tokio::time::sleep(Duration::from_millis(50)) => assert!(repeats(&mut busy, b"busy").await),
            }
        }
    });
    ended.await.unwrap().unwrap_err();
    assert!(repeats(&mut busy, b"busy").await);
}
