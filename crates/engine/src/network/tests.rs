//! Who may announce what: each row is a lie, or the honest word beside it.

use std::net::IpAddr;

use ipnet::IpNet;

use super::AddressRefused::*;
use super::territory::Territory;
use super::*;
use crate::names::ClusterId;

fn cidrs(text: &str) -> Vec<IpNet> {
    text.split_whitespace().map(|one| one.parse().unwrap()).collect()
}

fn pods(text: &str) -> Ranges {
    Ranges { pods: cidrs(text), ..Ranges::default() }
}

fn id(name: &str) -> ClusterId {
    ClusterId::parse(name).unwrap()
}

fn territory(members: &[(&str, Networks)]) -> Territory {
    reserving(members, &Reserved::default())
}

fn reserving(members: &[(&str, Networks)], reserved: &Reserved) -> Territory {
    let members: std::collections::BTreeMap<ClusterId, &Networks> =
        members.iter().map(|(name, networks)| (id(name), networks)).collect();
    Territory::new(members.iter().map(|(id, networks)| (id, *networks)), reserved)
}

fn judge(territory: &Territory, member: &str, address: &str) -> Result<(), AddressRefused> {
    let address: IpAddr = address.parse().unwrap();
    territory.border(&id(member)).judge(address, Family::of(address))
}

#[test]
fn only_addresses_that_lead_to_the_source_pass() {
    let set = territory(&[
        ("sandbox", Networks { endpoints: cidrs("127.8.0.0/16"), ..Networks::default() }),
        (
            "strict",
            Networks {
                declared: pods("10.1.0.0/16 fd01::/64"),
                observed: Ranges { nodes: cidrs("192.168.0.4/32"), ..Ranges::default() },
                ..Networks::default()
            },
        ),
    ]);
    for (member, address, want) in [
        ("open", "10.7.2.3", Ok(())),
        ("open", "8.8.8.8", Ok(())),
        ("open", "127.0.0.1", Err(Loopback)),
        ("open", "::1", Err(Loopback)),
        ("open", "169.254.169.254", Err(LinkLocal)),
        ("open", "fe80::1", Err(LinkLocal)),
        ("open", "0.0.0.0", Err(Unspecified)),
        ("open", "0.1.2.3", Err(Unspecified)),
        ("open", "::", Err(Unspecified)),
        ("open", "224.0.0.1", Err(Multicast)),
        ("open", "ff02::1", Err(Multicast)),
        ("open", "255.255.255.255", Err(Multicast)),
        ("sandbox", "127.8.3.4", Ok(())),
        ("sandbox", "127.9.3.4", Err(Loopback)),
        ("strict", "10.1.2.3", Ok(())),
        ("strict", "192.168.0.4", Ok(())),
        ("strict", "192.168.0.5", Err(OutsideDeclaredNetworks)),
        ("strict", "fd01::9", Ok(())),
        ("strict", "fd02::9", Err(OutsideDeclaredNetworks)),
        ("strict", "::ffff:10.1.2.3", Ok(())),
    ] {
        assert_eq!(judge(&set, member, address), want, "{member} {address}");
    }
    let four = "10.0.0.1".parse().unwrap();
    assert_eq!(set.border(&id("open")).judge(four, Family::V6), Err(WrongFamily));
}

#[test]
fn metadata_addresses_are_refused_in_every_form() {
    // The widest word that an operator can give: it does not open these either.
    let all = Networks {
        declared: pods("0.0.0.0/0 ::/0"),
        endpoints: cidrs("0.0.0.0/0 ::/0"),
        ..Networks::default()
    };
    let set = territory(&[("wide", all)]);
    let four = |address: &str, plain| {
        let octets = address.parse::<std::net::Ipv4Addr>().unwrap().octets();
        let [a, b, c, d] = octets;
        let [na, nb, nc, nd] = octets.map(|octet| !octet);
        [
            address.to_owned(),
            format!("::ffff:{address}"),
            format!("::{address}"),
            format!("::ffff:0:{address}"),
            format!("64:ff9b::{address}"),
            format!("64:ff9b:1::{address}"),
            format!("64:ff9b:1:{a:02x}{b:02x}:00{c:02x}:{d:02x}00::"),
            format!("64:ff9b:1:ff{a:02x}:00{b:02x}:{c:02x}{d:02x}::"),
            format!("64:ff9b:1:ffff:00{a:02x}:{b:02x}{c:02x}:{d:02x}00:0"),
            format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
            format!("2001:0:102:304:0:0:{na:02x}{nb:02x}:{nc:02x}{nd:02x}"),
            format!("2001:0:{a:02x}{b:02x}:{c:02x}{d:02x}::1"),
            format!("2001:db8::5efe:{address}"),
            format!("2001:db8::200:5efe:{address}"),
        ]
        .map(|form| (form, plain))
    };
    let mut forms: Vec<(String, AddressRefused)> = Vec::new();
    for (address, why) in [
        ("169.254.169.254", LinkLocal), // nearly all clouds
        ("169.254.170.2", LinkLocal),   // Amazon's containers
        ("169.254.0.23", LinkLocal),    // Tencent
        ("100.100.100.200", Metadata),  // Alibaba
        ("168.63.129.16", Metadata),    // Azure
        ("192.0.0.192", Metadata),      // Oracle
    ] {
        forms.extend(four(address, why));
    }
    for six in [
        "fd00:ec2::254",
        "fd00:ec2::23",
        "fd00:0ec2:0:0:0:0:0:0254",
        "fd20:ce::254",
        "fd00:42::42",
        "fd00:a9fe:a9fe::1",
        "fd00:c1::a9fe:a9fe",
    ] {
        forms.push((six.to_owned(), Metadata));
    }
    for (form, why) in &forms {
        assert_eq!(judge(&set, "wide", form), Err(*why), "{form}");
        assert_eq!(judge(&Territory::default(), "open", form), Err(*why), "{form}, where nothing is known");
    }
    for honest in
        ["64:ff9b::8.8.8.8", "2002:808:808::1", "2001:db8::5efe:8.8.8.8", "fd00:ec3::254", "100.100.100.201"]
    {
        assert_eq!(judge(&set, "wide", honest), Ok(()), "{honest}");
    }
}

#[test]
fn loopback_in_disguise_is_loopback() {
    let sandbox = Networks { endpoints: cidrs("127.8.0.0/16"), ..Networks::default() };
    let set = territory(&[("sandbox", sandbox)]);
    for form in
        ["::ffff:127.0.0.1", "::127.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:1::", "fd00::5efe:127.0.0.1"]
    {
        assert_eq!(judge(&set, "sandbox", form), Err(Loopback), "{form}");
    }
    assert_eq!(judge(&set, "sandbox", "::ffff:127.8.0.1"), Ok(()), "its own, however it is written");
}

#[test]
fn no_member_announces_what_is_another_members() {
    let paris = Networks {
        declared: Ranges { pods: cidrs("10.1.0.0/16"), nodes: cidrs("172.16.0.0/24"), ..Ranges::default() },
        observed: Ranges {
            services: cidrs("10.96.0.0/16"),
            api: cidrs("203.0.113.7/32"),
            nodes: cidrs("192.168.0.4/32 fd00:5::4/128"),
            ..Ranges::default()
        },
        ..Networks::default()
    };
    let tokyo = Networks { observed: pods("10.2.0.0/16"), binding: true, since: 5, ..Networks::default() };
    let set = territory(&[("paris", paris), ("tokyo", tokyo)]);
    for (address, why) in [
        ("10.1.0.9", Use::Pods),
        ("172.16.0.9", Use::Nodes),
        ("10.96.0.10", Use::Services),
        ("203.0.113.7", Use::Api),
        ("192.168.0.4", Use::Nodes),
        ("fd00:5::4", Use::Nodes),
        ("64:ff9b::10.1.0.9", Use::Pods),
    ] {
        for liar in ["tokyo", "nobody-knows"] {
            assert_eq!(judge(&set, liar, address), Err(OfAnotherMember(why)), "{liar} {address}");
        }
    }
    for (address, want) in [
        ("10.1.0.9", Ok(())),
        ("192.168.0.4", Ok(())),
        ("172.16.0.9", Ok(())),
        ("10.96.0.10", Err(OutsideDeclaredNetworks)),
        ("203.0.113.7", Err(OutsideDeclaredNetworks)),
    ] {
        assert_eq!(judge(&set, "paris", address), want, "paris {address}");
    }
}

#[test]
fn a_liar_cannot_deny_a_range_to_its_owner() {
    let owner = || Networks { observed: pods("10.1.0.0/16"), since: 10, ..Networks::default() };
    let declared = || Networks { declared: pods("10.1.0.0/16"), since: 10, ..Networks::default() };
    // What a liar's Node objects said when it joined, or was first heard: all of the world, the owner's range, a piece of it.
    for lie in ["0.0.0.0/0", "10.1.0.0/16", "10.1.0.0/24", "10.1.0.9/32"] {
        let observed = Networks { observed: pods(lie), since: 20, ..Networks::default() };
        let node = Networks {
            observed: Ranges {
                nodes: cidrs(lie),
                services: cidrs(lie),
                api: cidrs(lie),
                ..Ranges::default()
            },
            since: 20,
            ..Networks::default()
        };
        let elder = Networks { learnt: pods(lie), since: 1, ..Networks::default() };
        for liar in [observed, node, elder] {
            for owner in [owner(), declared()] {
                let set = territory(&[("owner", owner), ("liar", liar.clone())]);
                assert_eq!(judge(&set, "owner", "10.1.0.9"), Ok(()), "{lie}");
                assert_eq!(judge(&set, "liar", "10.1.0.9"), Err(OfAnotherMember(Use::Pods)), "{lie}");
            }
        }
    }
    // Not even against one of whom nothing is declared: of an elder it holds what was read at its join.
    let elder = Networks { observed: pods("10.1.0.0/16"), since: 1, ..Networks::default() };
    let set = territory(&[("declared", declared()), ("elder", elder)]);
    assert_eq!(judge(&set, "declared", "10.1.0.9"), Ok(()), "the operator's word counts more than age");
}

#[test]
fn a_range_is_shared_by_the_operators_word_on_both_and_the_narrower_word_counts() {
    let says = |text: &str| Networks { declared: pods(text), ..Networks::default() };
    let flat = territory(&[("a", says("10.0.0.0/16")), ("b", says("10.0.0.0/16"))]);
    assert_eq!((judge(&flat, "a", "10.0.1.1"), judge(&flat, "b", "10.0.1.1")), (Ok(()), Ok(())));
    let one = Networks { observed: pods("10.0.0.0/16"), ..Networks::default() };
    let half = territory(&[("a", says("10.0.0.0/16")), ("b", one)]);
    assert_eq!(
        judge(&half, "b", "10.0.1.1"),
        Err(OfAnotherMember(Use::Pods)),
        "only one of them was declared"
    );
    let nested = territory(&[("a", says("10.0.0.0/8")), ("b", says("10.1.0.0/16"))]);
    assert_eq!(judge(&nested, "a", "10.1.0.1"), Err(OfAnotherMember(Use::Pods)));
    assert_eq!((judge(&nested, "a", "10.2.0.1"), judge(&nested, "b", "10.1.0.1")), (Ok(()), Ok(())));
}

#[test]
fn the_hub_and_the_balancers_are_no_members_endpoints() {
    let reserved = Reserved { hub: cidrs("10.0.0.5/32"), pool: cidrs("192.0.2.0/28") };
    let wide = Networks { declared: pods("0.0.0.0/0"), ..Networks::default() };
    let same = Networks {
        declared: Ranges { nodes: cidrs("10.0.0.5/32"), pods: cidrs("192.0.2.0/28"), ..Ranges::default() },
        ..Networks::default()
    };
    let set = reserving(&[("wide", wide), ("same", same)], &reserved);
    for member in ["wide", "open"] {
        assert_eq!(judge(&set, member, "10.0.0.5"), Err(OfTheHub), "{member}");
        assert_eq!(judge(&set, member, "64:ff9b::10.0.0.5"), Err(OfTheHub), "{member}");
        assert_eq!(judge(&set, member, "192.0.2.3"), Err(OfABalancer), "{member}");
    }
    assert_eq!(judge(&set, "same", "10.0.0.5"), Ok(()), "a hub on a member's node, by the operator's word");
    assert_eq!(judge(&set, "same", "192.0.2.3"), Err(OfABalancer));
}
