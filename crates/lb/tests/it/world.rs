//! Backends that say who they are, clients, and a balancer between them.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use atoll_balance::Backend;
use atoll_lb::{Balancer, Desired, Listener, Protocol};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::task::JoinHandle;

/// Longer than anything here may take, shorter than anybody's patience.
pub(crate) const DEADLINE: Duration = Duration::from_secs(20);

/// Somewhere to listen: any port.
pub(crate) fn any() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// A server that says its name when somebody connects, then repeats what it hears. Gone when dropped, with its connections.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    cluster: &'static str,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn tcp(cluster: &'static str) -> Self {
        let listener = TcpListener::bind(any()).await.unwrap();
        let address = listener.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(repeat(stream, cluster));
            }
        });
        Self { address, cluster, task }
    }

    pub(crate) async fn udp(cluster: &'static str) -> Self {
        let socket = UdpSocket::bind(any()).await.unwrap();
        let address = socket.local_addr().unwrap();
        let task = tokio::spawn(async move {
            let mut buffer = vec![0; 65_535];
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let mut answer = cluster.as_bytes().to_vec();
                answer.extend_from_slice(&buffer[..length]);
                let _ = socket.send_to(&answer, from).await;
            }
        });
        Self { address, cluster, task }
    }

    pub(crate) fn backend(&self) -> Backend {
        Backend::new(self.address, self.cluster)
    }

    /// Ends it, and waits until it is gone.
    pub(crate) async fn kill(self) -> SocketAddr {
        self.task.abort();
        let address = self.address;
        let mut this = self;
        let _ = (&mut this.task).await;
        address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn repeat(mut stream: TcpStream, name: &'static str) {
    if stream.write_all(name.as_bytes()).await.is_ok() {
        let (mut read, mut write) = stream.split();
        let _ = tokio::io::copy(&mut read, &mut write).await;
        let _ = write.shutdown().await;
    }
}

/// A balancer with one listener before `servers`, and where it listens.
pub(crate) struct World {
    pub(crate) balancer: Balancer,
    pub(crate) listener: Listener,
    pub(crate) address: SocketAddr,
}

impl World {
    pub(crate) async fn new(
        protocol: Protocol,
        servers: &[&Server],
        change: impl FnOnce(&mut Listener),
    ) -> Self {
        let balancer = Balancer::start(atoll_lb::DataPath::UserSpace, 2).unwrap();
        let backends = servers.iter().map(|server| server.backend()).collect();
        let mut listener = Listener::new("shop/web", protocol, any(), backends);
        change(&mut listener);
        let unbound = balancer.apply(Desired { listeners: vec![listener.clone()] }).await;
        assert_eq!(unbound, []);
        let address = balancer.addresses().await[0].1;
        Self { balancer, listener, address }
    }

    /// Changes the listener while it works.
    pub(crate) async fn change(&mut self, change: impl FnOnce(&mut Listener)) {
        change(&mut self.listener);
        let unbound = self.balancer.apply(Desired { listeners: vec![self.listener.clone()] }).await;
        assert_eq!(unbound, []);
    }

    /// A new connection, and who answered; an error if nobody did.
    pub(crate) async fn connect(&self) -> std::io::Result<(TcpStream, String)> {
        let mut stream = TcpStream::connect(self.address).await?;
        let mut name = [0; 5];
        tokio::time::timeout(DEADLINE, stream.read_exact(&mut name)).await??;
        Ok((stream, String::from_utf8_lossy(&name).into_owned()))
    }

    /// Who answers `count` new connections, one after another.
    pub(crate) async fn answers(&self, count: usize) -> BTreeMap<String, usize> {
        let mut answers = BTreeMap::new();
        for _ in 0..count {
            let (_, name) = self.connect().await.unwrap();
            *answers.entry(name).or_default() += 1;
        }
        answers
    }

    /// The value of the first line of the metrics page that has all `parts`.
    pub(crate) fn metric(&self, parts: &[&str]) -> Option<u64> {
        let page = self.balancer.metrics();
        let mut lines = page.lines().filter(|line| !line.starts_with('#'));
        let line = lines.find(|line| parts.iter().all(|part| line.contains(part)))?;
        line.rsplit_once(' ')?.1.parse().ok()
    }

    /// Waits until the metrics say so.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&Self) -> bool) {
        let deadline = tokio::time::Instant::now() + DEADLINE;
        while !holds(self) {
            assert!(tokio::time::Instant::now() < deadline, "never: {what}\n{}", self.balancer.metrics());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Whether the peer of `stream` still repeats what is said.
pub(crate) async fn repeats(stream: &mut TcpStream, said: &[u8]) -> bool {
    let mut heard = vec![0; said.len()];
    let exchange = async {
        stream.write_all(said).await?;
        stream.read_exact(&mut heard).await
    };
    matches!(tokio::time::timeout(DEADLINE, exchange).await, Ok(Ok(_))) && heard == said
}
