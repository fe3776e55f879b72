//! A slow link to an API: a relay in user space that holds every byte back for a while.
//!
//! The kernel's own delay queue is not everywhere. The relay listens on the host's address in the lab,
//! so that tests, hubs and pods can all go through it.

use crate::addresses::host;
use crate::cluster::Cluster;
use crate::error::{Doing, Result};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many chunks may be on the way in one direction; beyond that the sender waits.
const IN_FLIGHT: usize = 1024;

/// A relay before an API. Dropping it closes every connection that goes through it.
#[derive(Debug)]
pub struct Link {
    address: SocketAddr,
    latency: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Link {
    /// A link to the API of `cluster`, as fast as it goes.
    pub async fn to_api_of(cluster: &Cluster) -> Result<Self> {
        let addresses = cluster.addresses();
        let listen = SocketAddr::new(host(addresses.slot).v4.into(), 0);
        Self::open(listen, SocketAddr::new(addresses.node().v4.into(), 6443)).await
    }

    /// A link from `listen` to `target`.
    pub async fn open(listen: SocketAddr, target: SocketAddr) -> Result<Self> {
        let doing = || format!("listen on {listen}");
        let listener = TcpListener::bind(listen).await.doing(doing)?;
        let address = listener.local_addr().doing(doing)?;
        let latency = Arc::new(AtomicU64::new(0));
        let task = tokio::spawn(accept(listener, target, latency.clone()));
        Ok(Self { address, latency, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The URL of the API as seen through it.
    pub fn server(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Holds back every byte that is read from now on by `one_way`, in each direction.
    pub fn set_latency(&self, one_way: Duration) {
        let micros = u64::try_from(one_way.as_micros()).unwrap_or(u64::MAX);
        self.latency.store(micros, Ordering::Relaxed);
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, latency: Arc<AtomicU64>) {
    // Connections end with the set, and the set ends with this task.
    let mut connections = tokio::task::JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                let Ok((near, _)) = accepted else { continue };
                connections.spawn(relay(near, target, latency.clone()));
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn relay(near: TcpStream, target: SocketAddr, latency: Arc<AtomicU64>) {
    let Ok(far) = TcpStream::connect(target).await else { return };
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_read, near_write), (far_read, far_write)) = (near.into_split(), far.into_split());
    tokio::join!(carry(near_read, far_write, &latency), carry(far_read, near_write, &latency));
}

/// Carries bytes one way. Reading goes on while earlier bytes are held back: a delay, not a throttle.
async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    latency: &AtomicU64,
) {
    let (sender, mut receiver) = mpsc::channel::<(Instant, Vec<u8>)>(IN_FLIGHT);
    let read = async move {
        let mut buffer = vec![0; 16 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let due = Instant::now() + Duration::from_micros(latency.load(Ordering::Relaxed));
            if sender.send((due, buffer[..count].to_vec())).await.is_err() {
                return;
            }
        }
    };
    let write = async move {
        while let Some((due, bytes)) = receiver.recv().await {
            tokio::time::sleep_until(due).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn echo() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = connection.split();
                    tokio::io::copy(&mut read, &mut write).await
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn bytes_come_back_whole_and_no_sooner_than_the_latency_allows() {
        let link = Link::open("127.0.0.1:0".parse().unwrap(), echo().await).await.unwrap();
        link.set_latency(Duration::from_millis(30));
        let mut connection = TcpStream::connect(link.address()).await.unwrap();
        let start = Instant::now();
        connection.write_all(b"hello").await.unwrap();
        let mut answer = [0; 5];
        connection.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"hello");
        assert!(start.elapsed() >= Duration::from_millis(60), "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn dropping_the_link_closes_its_connections() {
        let link = Link::open("127.0.0.1:0".parse().unwrap(), echo().await).await.unwrap();
        let mut connection = TcpStream::connect(link.address()).await.unwrap();
        connection.write_all(b"x").await.unwrap();
        connection.read_exact(&mut [0]).await.unwrap();
        drop(link);
        assert!(matches!(connection.read(&mut [0]).await, Ok(0) | Err(_)));
    }
}
