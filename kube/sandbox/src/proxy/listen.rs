//! Sockets at the addresses of Services, which come and go with them.

use super::table::{Frontend, ServiceName};
use super::{Proxy, relay};
use crate::network::{Alive, Network, Protocol};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::PoisonError;
use std::time::Duration;
use tokio::task::JoinSet;

/// When a socket that could not be opened is tried again.
const AGAIN: Duration = Duration::from_secs(5);

/// Where tools of this machine reach a port of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listening {
    /// `namespace/name`.
    pub service: ServiceName,
    /// The Service's own address and port.
    pub asked: SocketAddr,
    /// TCP or UDP.
    pub protocol: Protocol,
    /// Where the socket listens: at another port where the Service's own is refused. Or why it does not.
    pub actual: Result<SocketAddr, String>,
}

/// A socket's task ends when it is dropped.
struct Open {
    seen: Listening,
    _task: Option<JoinSet<()>>,
}

pub(super) async fn run(proxy: Proxy, network: Network, alive: Alive) {
    let mut changes = proxy.shared.changes.subscribe();
    let mut open: HashMap<Frontend, Open> = HashMap::new();
    loop {
        changes.mark_unchanged();
        let wanted = wanted(&proxy);
        // What failed is tried again; what has no endpoint is closed, so that clients are refused at once.
        open.retain(|frontend, socket| {
            wanted.get(frontend) == Some(&socket.seen.service) && socket.seen.actual.is_ok()
        });
        for ((asked, protocol), service) in wanted {
            open.entry((asked, protocol))
                .or_insert_with(|| bind(&proxy, &network, &alive, asked, protocol, service));
        }
        let failed = open.values().any(|socket| socket.seen.actual.is_err());
        publish(&proxy, &open);
        let again =
            async { if failed { tokio::time::sleep(AGAIN).await } else { std::future::pending().await } };
        tokio::select! {
            changed = changes.changed() => if changed.is_err() { return },
            () = again => {}
        }
    }
}

fn wanted(proxy: &Proxy) -> BTreeMap<Frontend, ServiceName> {
    let table = proxy.table();
    let ours = table.frontends().filter(|((asked, _), backend)| {
        backend.own && asked.ip().is_loopback() && !backend.endpoints.is_empty()
    });
    ours.map(|(frontend, backend)| (*frontend, backend.service.clone())).collect()
}

fn bind(
    proxy: &Proxy,
    network: &Network,
    alive: &Alive,
    asked: SocketAddr,
    protocol: Protocol,
    service: ServiceName,
) -> Open {
    let mut task = JoinSet::new();
    let context =
        relay::RelayContext { proxy: proxy.clone(), network: network.clone(), _alive: alive.clone() };
    let actual = match protocol {
        Protocol::Tcp => network.listen_tcp(asked).map(|(listener, place)| {
            let actual = place.actual;
            task.spawn(relay::connections(context, listener, place));
            actual
        }),
        Protocol::Udp => network.listen_udp(asked).map(|(socket, place)| {
            let actual = place.actual;
            task.spawn(relay::datagrams(context, socket, place));
            actual
        }),
    };
    if let Err(error) = &actual {
        tracing::debug!(%asked, %protocol, %service, %error, "cannot listen for a Service");
    }
    let actual = actual.map_err(|error| error.to_string());
    Open { seen: Listening { service, asked, protocol, actual }, _task: Some(task) }
}

fn publish(proxy: &Proxy, open: &HashMap<Frontend, Open>) {
    let mut all: Vec<_> = open.values().map(|socket| socket.seen.clone()).collect();
    all.sort_by(|a, b| (&a.service, a.asked, a.protocol).cmp(&(&b.service, b.asked, b.protocol)));
    *proxy.shared.listening.lock().unwrap_or_else(PoisonError::into_inner) = all;
}
