//! Addresses of a name without a packet on a wire, for programs in the same process.

use std::net::IpAddr;

use crate::answer::{Absent, Answer, NxDomain, Records};
use crate::name::Name;
use crate::query::Query;
use crate::snapshot::Snapshot;
use crate::wire::{IN, rtype};

/// What a name has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup {
    /// These addresses; none if the name is there and has none.
    Addresses(Vec<IpAddr>),
    /// The name is not there.
    NoSuchName(NxDomain),
    /// Not a name of these zones.
    NotOurs,
    /// Not everything has been listed yet.
    NotSynced,
}

/// The addresses of both families, in the order of answer number `turn`: what a resolver would be told.
pub fn lookup(zones: &[&Snapshot], name: &Name, turn: u32) -> Lookup {
    let mut found = Vec::new();
    for asked in [rtype::A, rtype::AAAA] {
        let packet = question(name, asked);
        let Ok(query) = Query::read(&packet) else { return Lookup::NotOurs };
        let Some(zone) = zones.iter().find(|zone| zone.is_ours(&query)) else { return Lookup::NotOurs };
        match zone.answer(&query) {
            Answer::Records(Records::V4(service)) => {
                found.extend(service.v4.turned(turn).map(|place| IpAddr::from(service.v4.items()[place])));
            }
            Answer::Records(Records::V6(service)) => {
                found.extend(service.v6.turned(turn).map(|place| IpAddr::from(service.v6.items()[place])));
            }
            Answer::Records(Records::HostV4(host)) => found.extend(host.v4.iter().copied().map(IpAddr::from)),
            Answer::Records(Records::HostV6(host)) => found.extend(host.v6.iter().copied().map(IpAddr::from)),
            Answer::Absent(Absent::NxDomain(why)) => return Lookup::NoSuchName(why),
            Answer::NotSynced => return Lookup::NotSynced,
            Answer::Records(_) | Answer::Absent(_) | Answer::Refused(_) | Answer::BadVersion => {}
        }
    }
    Lookup::Addresses(found)
}

/// A question as it would come over a wire: so there is one way to find an answer.
fn question(name: &Name, asked: u16) -> Vec<u8> {
    let mut packet = b"\0\0\x01\0\0\x01\0\0\0\0\0\0".to_vec();
    packet.extend_from_slice(name.wire());
    packet.push(0);
    packet.extend_from_slice(&asked.to_be_bytes());
    packet.extend_from_slice(&IN.to_be_bytes());
    packet
}
