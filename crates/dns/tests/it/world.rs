//! A small clusterset, and words to ask it.

use atoll_dns::{
    Catalog, Endpoint, Event, Import, Kind, Name, Port, Protocol, Settings, Slice, Snapshot, Transport,
};
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::{RData, RecordType};

/// A catalog that is told of imports and slices.
pub(crate) struct World {
    pub(crate) catalog: Catalog,
    /// The last snapshot that was published.
    pub(crate) snapshot: Snapshot,
}

impl World {
    /// Nothing in it, and everything listed.
    pub(crate) fn new() -> Self {
        let mut catalog = Catalog::new(Settings::default(), 100);
        catalog.apply(Event::Listed(Kind::Imports));
        catalog.apply(Event::Listed(Kind::Slices));
        let snapshot = catalog.publish().unwrap();
        Self { catalog, snapshot }
    }

    pub(crate) fn apply(&mut self, event: Event) {
        self.catalog.apply(event);
        if let Some(snapshot) = self.catalog.publish() {
            self.snapshot = snapshot;
        }
    }

    pub(crate) fn import(mut self, name: &str, import: Import) -> Self {
        self.apply(mk_import(name, import));
        self
    }

    pub(crate) fn slice(mut self, name: &str, slice: Slice) -> Self {
        self.apply(mk_slice(name, slice));
        self
    }

    /// Asks over UDP, as `dig` does.
    pub(crate) fn ask(&self, name: &str, rtype: RecordType) -> Message {
        self.ask_turn(name, rtype, 0)
    }

    pub(crate) fn ask_turn(&self, name: &str, rtype: RecordType, turn: u32) -> Message {
        let reply = self.raw(&query(name, rtype, Some(1232)), Transport::Udp, turn);
        Message::from_vec(&reply).unwrap()
    }

    pub(crate) fn raw(&self, packet: &[u8], transport: Transport, turn: u32) -> Vec<u8> {
        let mut out = Vec::new();
        atoll_dns::respond(&self.snapshot, packet, transport, turn, &mut out).unwrap();
        out
    }
}

/// The packet of a question.
pub(crate) fn query(name: &str, rtype: RecordType, payload: Option<u16>) -> Vec<u8> {
    let mut message = Message::new(0x1234, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    // Not `parse`, which makes letters small.
    message.add_query(Query::query(hickory_proto::rr::Name::from_ascii(name).unwrap(), rtype));
    if let Some(payload) = payload {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        message.set_edns(edns);
    }
    message.to_vec().unwrap()
}

/// The data of the answers, as text.
pub(crate) fn answers(message: &Message) -> Vec<String> {
    message.answers.iter().map(|record| text(&record.data)).collect()
}

pub(crate) fn sorted(message: &Message) -> Vec<String> {
    let mut answers = answers(message);
    answers.sort();
    answers
}

pub(crate) fn text(data: &RData) -> String {
    match data {
        RData::SRV(srv) => format!("{} {} {} {}", srv.priority, srv.weight, srv.port, srv.target),
        other => other.to_string(),
    }
}

/// `web.shop`
pub(crate) fn mk_import(name: &str, import: Import) -> Event {
    let (name, namespace) = name.split_once('.').unwrap();
    Event::Import { namespace: namespace.to_owned(), name: name.to_owned(), import }
}

/// `web-1.shop`
pub(crate) fn mk_slice(name: &str, slice: Slice) -> Event {
    let (name, namespace) = name.split_once('.').unwrap();
    Event::Slice { namespace: namespace.to_owned(), name: name.to_owned(), slice }
}

pub(crate) fn gone(kind: Kind, name: &str) -> Event {
    let (name, namespace) = name.split_once('.').unwrap();
    Event::Gone { kind, namespace: namespace.to_owned(), name: name.to_owned() }
}

pub(crate) fn port(name: &str, protocol: Protocol, port: u16) -> Port {
    Port { name: name.to_owned(), protocol, port }
}

pub(crate) fn cluster_set_ip(ips: &[&str]) -> Import {
    Import {
        ips: ips.iter().map(|ip| ip.parse().unwrap()).collect(),
        ports: vec![
            port("http", Protocol::Tcp, 80),
            port("dns", Protocol::Udp, 53),
            port("", Protocol::Tcp, 9),
        ],
        ..Import::default()
    }
}

pub(crate) fn headless() -> Import {
    Import { headless: true, ports: vec![port("http", Protocol::Tcp, 80)], ..Import::default() }
}

/// Endpoints as `10.11.0.7` or `db-0=10.11.0.7`.
pub(crate) fn slice_of(service: &str, cluster: &str, endpoints: &[&str]) -> Slice {
    let endpoint = |text: &&str| {
        let (hostname, address) =
            text.split_once('=').map_or((None, *text), |(name, address)| (Some(name), address));
        Endpoint {
            address: address.parse().unwrap(),
            hostname: hostname.map(|name| Name::label(name).unwrap()),
        }
    };
    Slice {
        service: service.to_owned(),
        cluster: Name::label(cluster).unwrap(),
        ports: [port("http", Protocol::Tcp, 8080), port("metrics", Protocol::Tcp, 9100)].into(),
        endpoints: endpoints.iter().map(endpoint).collect(),
    }
}

/// `web.shop` with two addresses; `db.shop` headless, with hosts in paris and tokyo.
pub(crate) fn shop() -> World {
    World::new()
        .import("web.shop", cluster_set_ip(&["10.111.0.7", "fd00:20:1::7"]))
        .import("db.shop", headless())
        .slice("db-p4.shop", slice_of("db", "paris", &["db-0=10.11.0.7", "10.11.0.8"]))
        .slice("db-p6.shop", slice_of("db", "paris", &["db-0=fd00:10:1::7", "fd00:10:1::8"]))
        .slice("db-t4.shop", slice_of("db", "tokyo", &["db-0=10.12.0.7"]))
}
