//! How long an answer may be, and what EDNS says.

use atoll_dns::Transport;
use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::RecordType::{A, SRV};

use crate::world::{World, headless, query, shop, slice_of};

const DB: &str = "db.shop.svc.clusterset.local.";

fn crowd(count: u32) -> World {
    let addresses: Vec<String> = (0..count).map(|n| format!("10.11.{}.{}", n / 250, n % 250 + 1)).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    World::new().import("db.shop", headless()).slice("db-1.shop", slice_of("db", "paris", &addresses))
}

fn asked(world: &World, payload: Option<u16>, transport: Transport) -> (usize, Message) {
    let reply = world.raw(&query(DB, A, payload), transport, 0);
    (reply.len(), Message::from_vec(&reply).unwrap())
}

#[test]
fn five_hundred_endpoints_are_cut_over_udp_and_whole_over_tcp() {
    let world = crowd(500);
    for (payload, limit) in
        [(None, 512), (Some(512), 512), (Some(100), 512), (Some(1232), 1232), (Some(65_535), 1232)]
    {
        let (length, reply) = asked(&world, payload, Transport::Udp);
        assert!(reply.metadata.truncation, "{payload:?}");
        assert!(length <= limit && length + 16 > limit, "full, and not over: {length} {payload:?}");
    }
    let (_, reply) = asked(&world, None, Transport::Tcp);
    assert!(!reply.metadata.truncation);
    assert_eq!(reply.answers.len(), 500);
}

/// Attack: a small question with a large answer, in the name of a victim.
#[test]
fn a_stranger_gets_at_most_512_bytes_over_udp_whatever_he_says_he_takes() {
    let world = crowd(500);
    for payload in [None, Some(512), Some(1232), Some(65_535)] {
        let (length, reply) = asked(&world, payload, Transport::UdpOfStranger);
        assert!(reply.metadata.truncation && length <= 512, "{length} {payload:?}");
    }
    let mut out = Vec::new();
    let question = query(DB, A, Some(1232));
    atoll_dns::truncate(&question, &mut out).unwrap();
    let reply = Message::from_vec(&out).unwrap();
    assert!(reply.metadata.truncation && reply.answers.is_empty() && out.len() <= question.len());
    assert!(reply.edns.is_some());
}

#[test]
fn what_fits_is_not_cut() {
    let (length, reply) = asked(&crowd(50), Some(1232), Transport::Udp);
    assert!(!reply.metadata.truncation);
    assert_eq!(reply.answers.len(), 50, "{length} bytes");
}

#[test]
fn addresses_brought_along_never_cut_an_answer() {
    let world = crowd(6);
    let reply = world.raw(&query("_http._tcp.db.shop.svc.clusterset.local.", SRV, None), Transport::Udp, 0);
    let reply = Message::from_vec(&reply).unwrap();
    assert_eq!(reply.answers.len(), 6);
    assert!(!reply.metadata.truncation && reply.additionals.len() < 6, "{}", reply.additionals.len());
}

#[test]
fn a_stream_has_an_end_too() {
    let world = crowd(5000);
    let reply = world.raw(&query(DB, A, None), Transport::Tcp, 0);
    assert!(reply.len() <= usize::from(u16::MAX));
    assert!(Message::from_vec(&reply).unwrap().metadata.truncation);
}

#[test]
fn edns_is_answered_with_edns_and_nothing_else_is() {
    let (_, reply) = asked(&shop(), None, Transport::Udp);
    assert_eq!(reply.edns, None);
    let (_, reply) = asked(&shop(), Some(4096), Transport::Udp);
    let edns = reply.edns.unwrap();
    assert_eq!((edns.version(), edns.max_payload(), edns.flags().dnssec_ok), (0, 1232, false));
}

#[test]
fn an_unknown_version_of_edns_is_told_so() {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(DB.parse().unwrap(), A));
    let mut edns = Edns::new();
    edns.set_version(1).set_dnssec_ok(true);
    message.set_edns(edns);
    let reply = Message::from_vec(&shop().raw(&message.to_vec().unwrap(), Transport::Udp, 0)).unwrap();
    // Two names share the number.
    assert_eq!(u16::from(reply.metadata.response_code), atoll_dns::rcode::BAD_VERSION);
    let edns = reply.edns.unwrap();
    assert_eq!((edns.version(), edns.flags().dnssec_ok), (0, true));
    assert!(reply.answers.is_empty());
}

#[test]
fn the_header_repeats_what_was_asked() {
    let mut message = Message::new(0xbeef, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(DB.parse().unwrap(), A));
    message.metadata.recursion_desired = true;
    message.metadata.checking_disabled = true;
    message.metadata.authentic_data = true;
    let reply = Message::from_vec(&shop().raw(&message.to_vec().unwrap(), Transport::Udp, 0)).unwrap();
    let head = reply.metadata;
    assert_eq!(head.id, 0xbeef);
    assert_eq!((head.recursion_desired, head.checking_disabled), (true, true));
    assert_eq!(
        (head.recursion_available, head.authentic_data),
        (false, false),
        "we resolve and check nothing"
    );
}
