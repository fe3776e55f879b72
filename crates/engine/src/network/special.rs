//! Addresses that lead nowhere good from any cluster, in every form in which they can be written.
//!
//! An IPv6 address can have an IPv4 address inside it that a translator, a tunnel or the kernel itself unpacks. What is inside is
//! judged like the IPv4 address that it is.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::AddressRefused;

/// Where clouds answer with credentials or act for the host, beside those on the link, which are refused as such: Alibaba, Azure, Oracle.
const METADATA_V4: [Ipv4Addr; 3] =
    [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16), Ipv4Addr::new(192, 0, 0, 192)];

/// Google, Scaleway, Akamai, Oracle. Amazon has a network of its own: [`is_amazons`].
const METADATA_V6: [Ipv6Addr; 4] = [
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42),
    Ipv6Addr::new(0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 1),
    Ipv6Addr::new(0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Why no member may announce this address, if that is so. Loopback has an exception, which is the caller's to make.
pub(super) fn refused(address: IpAddr) -> Option<AddressRefused> {
    match address {
        IpAddr::V4(four) => refused_v4(four),
        IpAddr::V6(six) => refused_v6(six),
    }
}

fn refused_v4(address: Ipv4Addr) -> Option<AddressRefused> {
    if address.octets()[0] == 0 {
        Some(AddressRefused::Unspecified) // the whole of "this network" reaches the own host
    } else if address.is_loopback() {
        Some(AddressRefused::Loopback)
    } else if address.is_link_local() {
        Some(AddressRefused::LinkLocal)
    } else if address.is_multicast() || address.is_broadcast() {
        Some(AddressRefused::Multicast)
    } else if METADATA_V4.contains(&address) {
        Some(AddressRefused::Metadata)
    } else {
        None
    }
}

fn refused_v6(address: Ipv6Addr) -> Option<AddressRefused> {
    if address.is_unspecified() {
        Some(AddressRefused::Unspecified)
    } else if address.is_loopback() {
        Some(AddressRefused::Loopback)
    } else if address.is_unicast_link_local() {
        Some(AddressRefused::LinkLocal)
    } else if address.is_multicast() {
        Some(AddressRefused::Multicast)
    } else if is_amazons(address) || METADATA_V6.contains(&address) {
        Some(AddressRefused::Metadata)
    } else {
        None
    }
}

/// `fd00:ec2::/32`: metadata, time, names and credentials of pods.
fn is_amazons(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    segments[0] == 0xfd00 && segments[1] == 0xec2
}

/// The IPv4 addresses that are written inside an IPv6 address, by whoever would unpack it. (`::ffff:a.b.c.d` is not here: it *is* the
/// IPv4 address, and is judged as nothing else.)
pub(super) fn inside(address: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let octets = address.octets();
    let at = |places: [usize; 4]| Ipv4Addr::from(places.map(|place| octets[place]));
    let (last, none) = (at([12, 13, 14, 15]), None);
    let found: [Option<Ipv4Addr>; 4] = match octets {
        // IPv4-compatible, ::a.b.c.d; :: and ::1 are told apart by themselves.
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, ..] => [Some(last), none, none, none],
        // Translated by SIIT, ::ffff:0:a.b.c.d.
        [0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0, 0, ..] => [Some(last), none, none, none],
        // NAT64, 64:ff9b::a.b.c.d.
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, ..] => [Some(last), none, none, none],
        // NAT64 with a prefix of a network's own, 64:ff9b:1::/48: of which length is not known (RFC 6052).
        [0, 0x64, 0xff, 0x9b, 0, 1, ..] => {
            [Some(at([6, 7, 9, 10])), Some(at([7, 9, 10, 11])), Some(at([9, 10, 11, 12])), Some(last)]
                .map(|one| one.filter(|one| one.octets()[0] != 0))
        }
        // 6to4, 2002:aabb:ccdd::.
        [0x20, 0x02, ..] => [Some(at([2, 3, 4, 5])), none, none, none],
        // Teredo: the server, and the client with all bits turned.
        [0x20, 0x01, 0, 0, ..] => {
            let client = Ipv4Addr::from(last.octets().map(|octet| !octet));
            [Some(at([4, 5, 6, 7])), Some(client), none, none]
        }
        // ISATAP, in any network.
        [_, _, _, _, _, _, _, _, 0 | 2, 0, 0x5e, 0xfe, ..] => [Some(last), none, none, none],
        _ => [none; 4],
    };
    found.into_iter().flatten()
}
