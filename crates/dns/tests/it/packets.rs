//! Packets that any host may send: whatever comes, it costs little and kills nothing.
//!
//! `tests/seeds` holds one packet per file, as hexadecimal digits after a line that says what it is. `PROPTEST_CASES=1000000 cargo test -p
//! atoll-dns --test it packets` looks longer for new ones.

use std::path::Path;

use atoll_dns::{Rejected, Silent, Transport, Unread};
use hickory_proto::op::Message;
use hickory_proto::rr::RecordType;
use proptest::prelude::*;

use crate::world::{World, query, shop};

/// What holds for every packet.
fn check(world: &World, packet: &[u8]) {
    let mut cut = Vec::new();
    if let Some(summary) = atoll_dns::truncate(packet, &mut cut) {
        assert!(cut.len() <= packet.len(), "what is sent in another's name is no longer than what came");
        assert_eq!(cut[..2], packet[..2], "the id");
        assert_eq!((summary.rcode == 0, cut[2] & 0x82 == 0x82), (summary.truncated, summary.truncated));
    }
    for transport in [Transport::Udp, Transport::UdpOfStranger, Transport::Tcp] {
        let mut reply = vec![1, 2, 3];
        let Some(summary) = atoll_dns::respond(&world.snapshot, packet, transport, 3, &mut reply) else {
            assert!(packet.len() < 12 || packet[2] & 0x80 != 0, "silence is for what is no question");
            assert!(reply.is_empty());
            continue;
        };
        assert_eq!(reply[..2], packet[..2], "the id");
        assert_eq!(reply[2] & 0x80, 0x80, "an answer");
        let limit = match transport {
            Transport::Udp => 1232,
            Transport::UdpOfStranger => 512,
            Transport::Tcp => 65_535,
        };
        assert!(reply.len() <= limit);
        if summary.rcode == 1 || summary.rcode == 4 {
            assert_eq!(reply.len(), 12, "what can't be read is answered by a header");
            continue;
        }
        let question = atoll_dns::Query::read(packet).unwrap();
        let end = 12 + question_length(&packet[12..]);
        assert_eq!(reply[12..end], packet[12..end], "the question as it came");
        assert_eq!((question.rtype, summary.truncated), (summary.rtype, reply[2] & 2 != 0));
        // Names with bytes that are no text are ours to echo; another parser may not want them.
        if packet[12..end].iter().all(|byte| byte.is_ascii_alphanumeric() || *byte < 64 || *byte == b'_') {
            let read = Message::from_vec(&reply);
            assert!(read.is_ok(), "{read:?} of {reply:02x?}");
        }
    }
}

fn question_length(mut rest: &[u8]) -> usize {
    let all = rest.len();
    while rest[0] != 0 {
        rest = &rest[1 + usize::from(rest[0])..];
    }
    all - rest.len() + 5
}

#[test]
fn packets_that_were_once_of_interest() {
    let world = shop();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/seeds");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let digits: String = text.lines().skip(1).flat_map(|line| line.split_whitespace()).collect();
        let packet: Vec<u8> = (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect();
        check(&world, &packet);
        count += 1;
    }
    assert!(count >= 10, "{count} seeds");
}

#[test]
fn broken_packets_are_told_what_is_wrong() {
    let good = query("db.shop.svc.clusterset.local.", RecordType::A, Some(1232));
    let with = |changes: &[(usize, u8)]| {
        let mut packet = good.clone();
        for (at, byte) in changes {
            packet[*at] = *byte;
        }
        packet
    };
    let edns_at = good.len() - 11;
    let twice = [&with(&[(11, 2)])[..], &good[edns_at..]].concat();
    for (packet, want) in [
        (good[..11].to_vec(), Unread::Silent(Silent::TooShort)),
        (with(&[(2, 0x81)]), Unread::Silent(Silent::IsResponse)),
        (with(&[(2, 0x28)]), Unread::Rejected(Rejected::OtherOpcode)),
        (with(&[(5, 0)]), Unread::Rejected(Rejected::NotOneQuestion)),
        (with(&[(5, 2)]), Unread::Rejected(Rejected::NotOneQuestion)),
        (with(&[(12, 0xc0)]), Unread::Rejected(Rejected::BadName)),
        (with(&[(12, 64)]), Unread::Rejected(Rejected::BadName)),
        (with(&[(12, 63)]), Unread::Rejected(Rejected::CutOff)),
        (with(&[(10, 255)]), Unread::Rejected(Rejected::CutOff)),
        (good[..good.len() - 1].to_vec(), Unread::Rejected(Rejected::CutOff)),
        (with(&[(good.len() - 1, 4)]), Unread::Rejected(Rejected::CutOff)),
        (twice, Unread::Rejected(Rejected::BadEdns)),
        (with(&[(7, 1), (11, 0)]), Unread::Rejected(Rejected::BadEdns)),
    ] {
        assert_eq!(atoll_dns::Query::read(&packet).unwrap_err(), want, "{packet:02x?}");
        check(&shop(), &packet);
    }
}

#[test]
fn names_as_long_as_they_may_be_and_one_longer() {
    let packet = |labels: usize, last: u8| {
        let mut packet = b"\0\x01\x01\0\0\x01\0\0\0\0\0\0".to_vec();
        for _ in 0..labels {
            packet.extend([1, b'a']);
        }
        packet.push(last);
        packet.extend(vec![b'b'; usize::from(last)]);
        packet.extend([0, 0, 1, 0, 1]);
        packet
    };
    assert!(atoll_dns::Query::read(&packet(126, 1)).is_ok());
    let too_long = Unread::Rejected(Rejected::BadName);
    assert_eq!(atoll_dns::Query::read(&packet(126, 2)).unwrap_err(), too_long);
    assert_eq!(atoll_dns::Query::read(&packet(127, 1)).unwrap_err(), too_long);
}

/// A well-formed question, then a few bytes that are not.
fn spoiled() -> impl Strategy<Value = Vec<u8>> {
    let names = prop::sample::select(vec![
        "db.shop.svc.clusterset.local.",
        "_http._tcp.db.shop.svc.clusterset.local.",
        "db-0.paris.db.shop.svc.clusterset.local.",
        "DNS-version.clusterset.local.",
        "a.b.c.d.e.f.g.clusterset.local.",
        "example.org.",
        ".",
    ]);
    let types = any::<u16>().prop_map(RecordType::from);
    let known = prop::sample::select(vec![RecordType::A, RecordType::SRV, RecordType::ANY, RecordType::SOA]);
    let rtype = prop_oneof![types, known];
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4);
    let whole =
        (names, rtype, prop::option::of(any::<u16>()), changes, any::<prop::sample::Index>(), any::<bool>());
    whole.prop_map(|(name, rtype, payload, changes, end, cut)| {
        let mut packet = query(name, rtype, payload);
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if cut {
            packet.truncate(end.index(packet.len()));
        }
        packet
    })
}

proptest! {
    #[test]
    fn any_bytes_are_survived(packet in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&shop(), &packet);
    }

    #[test]
    fn spoiled_questions_are_survived(packet in spoiled()) {
        check(&shop(), &packet);
    }
}
