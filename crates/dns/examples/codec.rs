//! Our codec and hickory's, on the same questions: `cargo run --profile dist -p atoll-dns --example codec`.
//!
//! hickory's side decodes the question, puts the same records into a message and encodes it; it looks nothing up, which favours it.

use std::hint::black_box;
use std::net::Ipv4Addr;
use std::time::Instant;

use atoll_dns::{Catalog, Endpoint, Event, Import, Kind, Name, Settings, Slice, Snapshot, Transport};
use hickory_proto::op::Message;
use hickory_proto::rr::{RData, Record};

const ROUNDS: u32 = 200_000;

fn main() {
    let snapshot = snapshot();
    for (what, name, addresses) in [("1 address", "web", 1), ("50 addresses", "db", 50)] {
        let packet = question(name);
        let mut out = Vec::new();
        let ours = nanoseconds(|turn| {
            black_box(atoll_dns::respond(&snapshot, black_box(&packet), Transport::Udp, turn, &mut out));
        });
        let theirs = nanoseconds(|_| {
            black_box(hickory(black_box(&packet), addresses));
        });
        println!("{what:<14} ours {ours:>7.0} ns   hickory {theirs:>7.0} ns   {:.1} times", theirs / ours);
    }
}

fn nanoseconds(mut answer: impl FnMut(u32)) -> f64 {
    (0..ROUNDS / 10).for_each(&mut answer);
    let since = Instant::now();
    (0..ROUNDS).for_each(&mut answer);
    since.elapsed().as_secs_f64() * 1e9 / f64::from(ROUNDS)
}

fn hickory(packet: &[u8], addresses: u8) -> Option<Vec<u8>> {
    let mut message = Message::from_vec(packet).ok()?.into_response();
    let name = message.queries.first()?.name().clone();
    for host in 1..=addresses {
        message.add_answer(Record::from_rdata(
            name.clone(),
            5,
            RData::A(Ipv4Addr::new(10, 11, 0, host).into()),
        ));
    }
    message.to_vec().ok()
}

fn question(name: &str) -> Vec<u8> {
    let mut packet = b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\x01".to_vec();
    if let Ok(name) = Name::parse(&format!("{name}.shop.svc.clusterset.local")) {
        packet.extend(name.wire());
    }
    packet.extend(b"\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\0\0\0\0");
    packet
}

/// A thousand services, among them the two that are asked for.
fn snapshot() -> Snapshot {
    let mut catalog = Catalog::new(Settings::default(), 1);
    let mut put = |name: String, import: Import| {
        catalog.apply(Event::Import { namespace: "shop".to_owned(), name, import });
    };
    let with_address = Import { ips: vec![Ipv4Addr::new(10, 111, 0, 7).into()], ..Import::default() };
    put("web".to_owned(), with_address.clone());
    put("db".to_owned(), Import { headless: true, ..Import::default() });
    (0..1000).for_each(|number| put(format!("s{number}"), with_address.clone()));
    let endpoints =
        (1..=50).map(|host| Endpoint { address: Ipv4Addr::new(10, 11, 0, host).into(), hostname: None });
    let slice = Slice {
        service: "db".to_owned(),
        cluster: Name::label("paris").unwrap_or_default(),
        ports: Box::default(),
        endpoints: endpoints.collect(),
    };
    catalog.apply(Event::Slice { namespace: "shop".to_owned(), name: "db-1".to_owned(), slice });
    catalog.apply(Event::Listed(Kind::Imports));
    catalog.apply(Event::Listed(Kind::Slices));
    catalog.publish();
    catalog.snapshot().clone()
}
