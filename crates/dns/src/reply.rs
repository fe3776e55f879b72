//! Writes answers as bytes: the question as it was asked, then records whose names point into it.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::answer::{Absent, Answer, Records};
use crate::query::{Edns, Query, Rejected, Unread};
use crate::service::{Ranked, Service, Target};
use crate::snapshot::Snapshot;
use crate::wire::{HEADER, IN, flag, rcode, rtype};

/// Datagrams up to this size pass every network unbroken.
const LARGEST_DATAGRAM: u16 = 1232;
/// What all clients take.
const SMALLEST_DATAGRAM: u16 = 512;
/// An EDNS record without options.
const EDNS: usize = 11;
/// A pointer can't lead farther.
const FARTHEST: usize = 0x3fff;

/// How the question came, and so how long the answer may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// In a datagram: cut at what the asker takes, and marked as cut.
    Udp,
    /// In a datagram of a client that we do not know, and that may be another: cut at what all clients take.
    UdpOfStranger,
    /// In a stream.
    Tcp,
}

/// What was answered, for the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Summary {
    /// The place of the zone that the name is in; none if it is in none of ours.
    pub zone: Option<usize>,
    /// The type that was asked for; 0 if that could not be read.
    pub rtype: u16,
    /// The code, the extended one included.
    pub rcode: u16,
    /// The answer is cut off.
    pub truncated: bool,
}

/// Answers one packet into `out`, which it empties first. None: the packet deserves no answer. `turn` counts answers, so that their
/// order changes.
pub fn respond(
    snapshot: &Snapshot,
    packet: &[u8],
    transport: Transport,
    turn: u32,
    out: &mut Vec<u8>,
) -> Option<Summary> {
    respond_from(&[snapshot], packet, transport, turn, out)
}

/// As [`respond`], from the one of several zones that the name is in. No zone lies in another.
pub fn respond_from(
    zones: &[&Snapshot],
    packet: &[u8],
    transport: Transport,
    turn: u32,
    out: &mut Vec<u8>,
) -> Option<Summary> {
    out.clear();
    match Query::read(packet) {
        Ok(query) => {
            let zone = zones.iter().position(|zone| zone.is_ours(&query));
            // Of a name that is in none, any zone says that it is not its own.
            let snapshot = zones.get(zone.unwrap_or(0))?;
            Some(Summary { zone, ..answer(snapshot, &query, transport, turn, out) })
        }
        Err(Unread::Silent(_)) => None,
        Err(Unread::Rejected(why)) => Some(reject(packet, why, out)),
    }
}

/// Answers that the question should be asked by TCP, and nothing else: never longer than the question was. None: the packet deserves no
/// answer.
pub fn truncate(packet: &[u8], out: &mut Vec<u8>) -> Option<Summary> {
    out.clear();
    match Query::read(packet) {
        Ok(query) => {
            out.extend_from_slice(query.head);
            let mut counts = [1, 0, 0, 0];
            if let Some(edns) = query.edns {
                write_edns(out, edns, rcode::NO_ERROR);
                counts[ADDITIONALS] += 1;
            }
            set_flags(out, flag::TRUNCATED, rcode::NO_ERROR);
            set_counts(out, counts);
            Some(Summary { zone: None, rtype: query.rtype, rcode: rcode::NO_ERROR, truncated: true })
        }
        Err(Unread::Silent(_)) => None,
        Err(Unread::Rejected(why)) => Some(reject(packet, why, out)),
    }
}

/// A header that says why, and nothing else: what followed could not be read.
fn reject(packet: &[u8], why: Rejected, out: &mut Vec<u8>) -> Summary {
    out.extend_from_slice(&packet[..HEADER]);
    set_flags(out, 0, why.rcode());
    set_counts(out, [0; 4]);
    Summary { zone: None, rtype: 0, rcode: why.rcode(), truncated: false }
}

fn answer(
    snapshot: &Snapshot,
    query: &Query<'_>,
    transport: Transport,
    turn: u32,
    out: &mut Vec<u8>,
) -> Summary {
    let answer = snapshot.answer(query);
    let limit = match (transport, query.edns) {
        (Transport::Tcp, _) => u16::MAX,
        (Transport::Udp, None) | (Transport::UdpOfStranger, _) => SMALLEST_DATAGRAM,
        (Transport::Udp, Some(edns)) => edns.payload.clamp(SMALLEST_DATAGRAM, LARGEST_DATAGRAM),
    };
    let limit = usize::from(limit) - if query.edns.is_some() { EDNS } else { 0 };
    out.extend_from_slice(query.head);
    let mut writer = Writer { out, limit, snapshot, query, counts: [1, 0, 0, 0], truncated: false };
    let mut authoritative = flag::AUTHORITATIVE;
    match answer {
        Answer::Records(records) => writer.records(records, turn),
        Answer::Absent(Absent::NoData(_) | Absent::NxDomain(_)) => writer.zone_record(2),
        Answer::Refused(_) | Answer::NotSynced | Answer::BadVersion => authoritative = 0,
    }
    let Writer { mut counts, truncated, .. } = writer;
    let code = answer.rcode();
    if let Some(edns) = query.edns {
        write_edns(out, edns, code);
        counts[3] += 1;
    }
    let cut = if truncated { flag::TRUNCATED } else { 0 };
    set_flags(out, authoritative | cut, code);
    set_counts(out, counts);
    Summary { zone: None, rtype: query.rtype, rcode: code, truncated }
}

/// What the asker said it wants is repeated, as is its wish to have nothing checked.
fn set_flags(out: &mut [u8], ours: u16, code: u16) {
    let asked = u16::from_be_bytes([out[2], out[3]]);
    let kept = asked & (flag::OPCODE | flag::RECURSION_DESIRED | flag::CHECKING_DISABLED);
    out[2..4].copy_from_slice(&(flag::RESPONSE | kept | ours | (code & 0xf)).to_be_bytes());
}

fn set_counts(out: &mut [u8], counts: [u16; 4]) {
    for (place, count) in out[4..HEADER].chunks_exact_mut(2).zip(counts) {
        place.copy_from_slice(&count.to_be_bytes());
    }
}

fn write_edns(out: &mut Vec<u8>, edns: Edns, code: u16) {
    let [_, extended] = (code >> 4).to_be_bytes();
    let dnssec = if edns.dnssec { 0x80 } else { 0 };
    let [t1, t2] = rtype::OPT.to_be_bytes();
    let [s1, s2] = LARGEST_DATAGRAM.to_be_bytes();
    out.extend_from_slice(&[0, t1, t2, s1, s2, extended, 0, dnssec, 0, 0, 0]);
}

struct Writer<'a, 's> {
    out: &'a mut Vec<u8>,
    limit: usize,
    snapshot: &'s Snapshot,
    query: &'a Query<'a>,
    /// Questions, answers, authorities, additionals.
    counts: [u16; 4],
    truncated: bool,
}

/// The section that answers are counted in.
const ANSWERS: usize = 1;
const ADDITIONALS: usize = 3;

impl Writer<'_, '_> {
    fn records(&mut self, records: Records<'_>, turn: u32) {
        match records {
            Records::V4(service) => self.addresses(&service.v4, turn, rtype::A, Ipv4Addr::octets),
            Records::V6(service) => self.addresses(&service.v6, turn, rtype::AAAA, Ipv6Addr::octets),
            Records::HostV4(host) => self.all(&host.v4, rtype::A, Ipv4Addr::octets),
            Records::HostV6(host) => self.all(&host.v6, rtype::AAAA, Ipv6Addr::octets),
            Records::Srv(service, targets) => self.srv(service, targets, turn),
            Records::SchemaVersion => {
                let schema = self.snapshot.settings.schema.as_bytes();
                let length = u8::try_from(schema.len()).unwrap_or_default();
                self.record(ANSWERS, HEADER, rtype::TXT, &[&[length], schema]);
            }
            Records::Soa => self.zone_record(ANSWERS),
            Records::Ns => {
                let zone = self.zone_pointer();
                self.record(ANSWERS, HEADER, rtype::NS, &[b"\x02ns\x03dns", &zone]);
            }
            Records::Minimal => {
                self.record(ANSWERS, HEADER, rtype::HINFO, &[b"\x07RFC8482\x00"]);
            }
        }
    }

    fn addresses<T: Copy, const N: usize>(
        &mut self,
        set: &Ranked<T>,
        turn: u32,
        rtype: u16,
        octets: impl Fn(&T) -> [u8; N],
    ) {
        for place in set.turned(turn) {
            if !self.record(ANSWERS, HEADER, rtype, &[&octets(&set.items()[place])]) {
                self.truncated = true;
                return;
            }
        }
    }

    fn all<T, const N: usize>(&mut self, set: &[T], rtype: u16, octets: impl Fn(&T) -> [u8; N]) {
        for address in set {
            self.truncated |= !self.record(ANSWERS, HEADER, rtype, &[&octets(address)]);
        }
    }

    /// SRV records, and after them, as far as there is room, the addresses that they lead to.
    fn srv(&mut self, service: &Service, targets: &Ranked<Target>, turn: u32) {
        const BEFORE_TARGET: usize = 18;
        let mut led_to = Vec::new();
        for place in targets.turned(turn) {
            let target = targets.items()[place];
            let host = target.host.and_then(|host| service.hosts.get(host as usize));
            let below = host.map_or(&[][..], |host| host.name.wire());
            let priority: u16 = if targets.is_second_choice(place) { 10 } else { 0 };
            let ([p1, p2], [n1, n2]) = (priority.to_be_bytes(), target.port.to_be_bytes());
            let at = self.out.len() + BEFORE_TARGET;
            // The target's name is never compressed (RFC 2782). All weigh the same.
            let data: [&[u8]; 4] = [&[p1, p2, 0, 1, n1, n2], below, service.name.wire(), &[0]];
            if !self.record(ANSWERS, HEADER, rtype::SRV, &data) {
                self.truncated = true;
                return;
            }
            let before = place.checked_sub(1).map(|before| targets.items()[before].host);
            if before != Some(target.host) {
                led_to.push((at, host));
            }
        }
        for (at, host) in led_to {
            let (v4, v6) =
                host.map_or((service.v4.items(), service.v6.items()), |host| (&*host.v4, &*host.v6));
            let fits = at <= FARTHEST
                && v4.iter().all(|address| self.record(ADDITIONALS, at, rtype::A, &[&address.octets()]))
                && v6.iter().all(|address| self.record(ADDITIONALS, at, rtype::AAAA, &[&address.octets()]));
            if !fits {
                return;
            }
        }
    }

    /// The zone's own record, at the zone's place in the question.
    fn zone_record(&mut self, section: usize) {
        let (ttl, zone) = (self.snapshot.settings.ttl, self.zone_pointer());
        let mut numbers = [0; 20];
        // Serial, refresh, retry, expire, and how long "there is none" may be believed.
        for (place, number) in
            numbers.chunks_exact_mut(4).zip([self.snapshot.serial, 7200, 1800, 86_400, ttl])
        {
            place.copy_from_slice(&number.to_be_bytes());
        }
        let at = self.zone_at();
        let data: [&[u8]; 5] = [b"\x02ns\x03dns", &zone, b"\x0ahostmaster", &zone, &numbers];
        self.record(section, at, rtype::SOA, &data);
    }

    /// Where the zone's name begins in the reply.
    fn zone_at(&self) -> usize {
        HEADER + self.query.name.start(self.query.name.labels() - self.snapshot.zone_labels)
    }

    fn zone_pointer(&self) -> [u8; 2] {
        pointer(self.zone_at())
    }

    /// Writes one record, or nothing if it does not fit.
    #[inline]
    fn record(&mut self, section: usize, name_at: usize, rtype: u16, data: &[&[u8]]) -> bool {
        const BEFORE_DATA: usize = 12;
        let length: usize = data.iter().map(|part| part.len()).sum();
        let (Ok(short), true) = (u16::try_from(length), self.out.len() + BEFORE_DATA + length <= self.limit)
        else {
            return false;
        };
        let mut before = [0; BEFORE_DATA];
        before[..2].copy_from_slice(&pointer(name_at));
        before[2..4].copy_from_slice(&rtype.to_be_bytes());
        before[4..6].copy_from_slice(&IN.to_be_bytes());
        before[6..10].copy_from_slice(&self.snapshot.settings.ttl.to_be_bytes());
        before[10..].copy_from_slice(&short.to_be_bytes());
        self.out.extend_from_slice(&before);
        for part in data {
            self.out.extend_from_slice(part);
        }
        self.counts[section] += 1;
        true
    }
}

/// A pointer to a name that begins at `at`, which is not beyond [`FARTHEST`].
fn pointer(at: usize) -> [u8; 2] {
    let [high, low] = u16::try_from(at & FARTHEST).unwrap_or_default().to_be_bytes();
    [high | 0xc0, low]
}

// A code above 15 needs EDNS; the only one that we have comes with it.
const _: () = assert!(rcode::BAD_VERSION > 15);
