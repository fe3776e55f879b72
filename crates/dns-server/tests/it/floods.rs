//! Attacks on the sockets: floods of questions in another's name, connections that say nothing.

use std::num::NonZero;
use std::time::Duration;

use atoll_dns::Rate;
use atoll_dns_server::{Options, RateLimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::api::FakeApi;
use crate::server::{Server, query};

const SOON: Duration = Duration::from_secs(20);

/// Ten answers a second to whoever is not exempt.
fn limited(exempt: &[&str]) -> Options {
    let number = |number| NonZero::new(number).unwrap();
    let rate = Rate { per_second: number(10), burst: number(10), slip: 2 };
    let exempt = exempt.iter().map(|range| range.parse().unwrap()).collect();
    Options { rate_limit: Some(RateLimit { rate, exempt }), ..Options::default() }
}

/// Sends so many questions by one socket and counts the answers, and those of them that are cut off.
async fn flood(server: &Server, questions: usize) -> (usize, usize) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.addresses[0]).await.unwrap();
    let question = query("nowhere.shop.svc.clusterset.local", 1);
    let (mut answers, mut cut, mut reply) = (0, 0, [0; 4096]);
    for _ in 0..questions {
        socket.send(&question).await.unwrap();
        // What is not answered is not waited for long; nothing else is in flight.
        if let Ok(read) = timeout(Duration::from_millis(10), socket.recv(&mut reply)).await {
            let length = read.unwrap();
            answers += 1;
            if reply[2] & 2 != 0 {
                cut += 1;
                assert!(length <= question.len(), "a truncated answer is no longer than its question");
            }
        }
    }
    (answers, cut)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_in_a_victims_name_gets_few_answers_and_an_honest_resolver_comes_by_tcp() {
    let server = Server::ready_with(&FakeApi::default(), limited(&[])).await;
    let (answers, cut) = flood(&server, 100).await;
    let whole = answers - cut;
    assert!((10..60).contains(&whole), "a burst of ten, and ten a second: {whole}");
    assert!(cut >= 10, "every second question above it is sent to TCP: {cut}");
    let (_, page) = server.page("/metrics").await;
    for got in ["nothing", "truncated"] {
        let line = format!("atoll_dns_rate_limited_total{{got=\"{got}\"}} ");
        let count = page.lines().find_map(|said| said.strip_prefix(&line)).unwrap();
        assert!(count.parse::<f64>().unwrap() >= 10.0, "{page}");
    }
    // By TCP no client can forge its address: always answered.
    let mut stream = server.tcp().await;
    let question = query("nowhere.shop.svc.clusterset.local", 1);
    for _ in 0..50 {
        stream.write_u16(u16::try_from(question.len()).unwrap()).await.unwrap();
        stream.write_all(&question).await.unwrap();
        let length = timeout(SOON, stream.read_u16()).await.unwrap().unwrap();
        let mut reply = vec![0; length.into()];
        stream.read_exact(&mut reply).await.unwrap();
        assert_eq!((reply[2] & 2, reply[3] & 0xf), (0, 3), "whole, and NXDOMAIN");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clusters_own_resolvers_are_never_limited() {
    for options in [limited(&["127.0.0.0/8", "::1/128"]), Options::default()] {
        let server = Server::ready_with(&FakeApi::default(), options).await;
        let mut socket_answers = 0;
        for _ in 0..300 {
            socket_answers +=
                usize::from(server.udp(&query("a.b.svc.clusterset.local", 1)).await[3] & 0xf == 3);
        }
        assert_eq!(socket_answers, 300);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_that_say_nothing_keep_nobody_from_tcp_or_the_pages() {
    let server = Server::ready(&FakeApi::default()).await;
    let mut idle = Vec::new();
    for _ in 0..150 {
        idle.push(server.tcp().await);
    }
    // One address has a hundred at the most; the others are closed at once.
    let mut closed = 0;
    for stream in &mut idle {
        let ended = timeout(Duration::from_millis(20), stream.read(&mut [0; 1])).await;
        closed += usize::from(matches!(ended, Ok(Ok(0) | Err(_))));
    }
    assert!(closed >= 50, "{closed}");
    // Another address is answered meanwhile.
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(server.addresses[0]).await.unwrap();
    let question = query("nowhere.shop.svc.clusterset.local", 1);
    other.write_u16(u16::try_from(question.len()).unwrap()).await.unwrap();
    other.write_all(&question).await.unwrap();
    assert!(timeout(SOON, other.read_u16()).await.unwrap().unwrap() > 12);

    // The same for /metrics: sixteen of one address, and another is served.
    let mut pages: Vec<TcpStream> = Vec::new();
    for _ in 0..40 {
        pages.push(TcpStream::connect(server.metrics()).await.unwrap());
    }
    let mut closed = 0;
    for stream in &mut pages {
        let ended = timeout(Duration::from_millis(20), stream.read(&mut [0; 1])).await;
        closed += usize::from(matches!(ended, Ok(Ok(0) | Err(_))));
    }
    assert!(closed >= 24, "{closed}");
    let other = tokio::net::TcpSocket::new_v4().unwrap();
    other.bind("127.0.0.2:0".parse().unwrap()).unwrap();
    let mut other = other.connect(server.metrics()).await.unwrap();
    other.write_all(b"GET /healthz HTTP/1.1\r\nHost: dns\r\nConnection: close\r\n\r\n").await.unwrap();
    let mut text = String::new();
    timeout(SOON, other.read_to_string(&mut text)).await.unwrap().unwrap();
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
}

/// Attack: names of the asker's choice as labels of metrics, until the page fills the memory.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_types_of_an_askers_choice_do_not_grow_the_metrics() {
    let server = Server::ready(&FakeApi::default()).await;
    for number in 0..200_u16 {
        server.udp(&query(&format!("x{number}.shop.svc.clusterset.local"), 1000 + number)).await;
        server.udp(&query(&format!("x{number}.example.org"), 1)).await;
    }
    let (_, page) = server.page("/metrics").await;
    let lines = page.lines().filter(|line| line.starts_with("atoll_dns_queries_total")).count();
    assert!(lines <= 4, "{page}");
}
