//! A server on free ports, and a client for it.

use std::net::SocketAddr;
use std::time::Duration;

use atoll_dns_server::{Listening, Names, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::api::FakeApi;

/// Far longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) struct Server {
    /// One of each family.
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) names: Names,
    metrics: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    pub(crate) async fn start(api: &FakeApi) -> Self {
        Self::start_with(api, Options::default()).await
    }

    pub(crate) async fn start_with(api: &FakeApi, options: Options) -> Self {
        // A port that was free a moment ago.
        let metrics = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let options = Options {
            listen: vec!["127.0.0.1:0".parse().unwrap(), "[::1]:0".parse().unwrap()],
            sockets: 2,
            metrics_address: Some(metrics),
            ..options
        };
        let listening = Listening::bind(&options).unwrap();
        let addresses = listening.addresses();
        let client = api.client();
        let names = Names::new(&options);
        let serving = atoll_dns_server::serve_with(options, listening, client, names.clone());
        let task = tokio::spawn(async { serving.await.unwrap() });
        Self { addresses, names, metrics, task }
    }

    /// One that has listed what there is.
    pub(crate) async fn ready(api: &FakeApi) -> Self {
        Self::ready_with(api, Options::default()).await
    }

    pub(crate) async fn ready_with(api: &FakeApi, options: Options) -> Self {
        let server = Self::start_with(api, options).await;
        server.page_says("/readyz", |page| page.starts_with("ok")).await;
        server
    }

    /// One question over UDP, and the reply's bytes.
    pub(crate) async fn udp(&self, packet: &[u8]) -> Vec<u8> {
        self.udp_at(self.addresses[0], packet).await
    }

    pub(crate) async fn udp_at(&self, address: SocketAddr, packet: &[u8]) -> Vec<u8> {
        let any = if address.is_ipv4() { "127.0.0.1:0" } else { "[::1]:0" };
        let socket = UdpSocket::bind(any).await.unwrap();
        socket.connect(address).await.unwrap();
        socket.send(packet).await.unwrap();
        let mut reply = vec![0; 4096];
        let length = timeout(PATIENCE, socket.recv(&mut reply)).await.expect("an answer").unwrap();
        reply.truncate(length);
        reply
    }

    /// Where its pages are.
    pub(crate) fn metrics(&self) -> SocketAddr {
        self.metrics
    }

    pub(crate) async fn tcp(&self) -> TcpStream {
        TcpStream::connect(self.addresses[0]).await.unwrap()
    }

    /// The addresses in the answer of an A question.
    pub(crate) async fn a(&self, name: &str) -> Vec<[u8; 4]> {
        addresses(&self.udp(&query(name, 1)).await)
    }

    /// Waits until the answer of an A question is this.
    pub(crate) async fn a_becomes(&self, name: &str, want: &[[u8; 4]]) {
        let until = Instant::now() + PATIENCE;
        loop {
            let said = self.a(name).await;
            if said == want {
                return;
            }
            assert!(Instant::now() < until, "{said:?}, not {want:?}");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// A page's status line and text.
    pub(crate) async fn page(&self, path: &str) -> (String, String) {
        let mut stream = match TcpStream::connect(self.metrics).await {
            Ok(stream) => stream,
            Err(error) => return (error.to_string(), String::new()),
        };
        let request = format!("GET {path} HTTP/1.1\r\nHost: dns\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    /// Waits until the page's text is as wanted.
    pub(crate) async fn page_says(&self, path: &str, want: impl Fn(&str) -> bool) {
        let until = Instant::now() + PATIENCE;
        loop {
            let (_, page) = self.page(path).await;
            if want(&page) {
                return;
            }
            assert!(Instant::now() < until, "{page}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// The value of a metric.
    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let (_, page) = self.page("/metrics").await;
        let line = page.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("no {name} in {page}")).parse().unwrap()
    }
}

/// The packet of a question.
pub(crate) fn query(name: &str, rtype: u16) -> Vec<u8> {
    let mut packet = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0".to_vec();
    packet.extend(atoll_dns::Name::parse(name).unwrap().wire());
    packet.push(0);
    packet.extend(rtype.to_be_bytes());
    packet.extend([0, 1]);
    packet
}

/// The code of a reply.
pub(crate) fn code(reply: &[u8]) -> u8 {
    reply[3] & 0xf
}

/// The addresses in a reply whose answers are A records, sorted.
pub(crate) fn addresses(reply: &[u8]) -> Vec<[u8; 4]> {
    let count = usize::from(u16::from_be_bytes([reply[6], reply[7]]));
    let question = 12 + reply[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let records = reply[question..].chunks_exact(16).take(count);
    let mut all: Vec<[u8; 4]> = records.map(|record| record[12..].try_into().unwrap()).collect();
    all.sort_unstable();
    all
}
