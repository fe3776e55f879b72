//! Which addresses of the pool a service gets. What it has it keeps; what it asks for it gets, if its ports are free there and whoever has
//! the address agrees.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use atoll_api::names::annotation::balancing::{ADDRESSES, SHARE_WITH};
use atoll_lb::Protocol;
use ipnet::IpNet;

use crate::pool::{Pool, hosts};

/// The ports of a service.
pub(super) type Ports = BTreeSet<(Protocol, u16)>;

/// Another service that has an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Neighbour {
    /// The name of its `ConfigMap`.
    pub(super) map: String,
    /// Its namespace and name, for people.
    pub(super) who: String,
    /// The ports that it uses there.
    pub(super) ports: Ports,
    /// Whether the two may share an address: of one namespace, or each names the other.
    pub(super) agrees: bool,
    /// Whether it had the address first.
    pub(super) first: bool,
}

/// Who else has which addresses.
pub(super) type Taken = BTreeMap<IpAddr, Vec<Neighbour>>;

/// What a service wants.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    /// The addresses that it asks for; none: any.
    pub(super) asked: &'a [IpAddr],
    /// Those that it has.
    pub(super) has: &'a [IpAddr],
    /// Where its clients come in.
    pub(super) ports: &'a Ports,
    /// The addresses of the other services of its namespace.
    pub(super) of_namespace: &'a BTreeSet<IpAddr>,
    /// So many addresses can a namespace have.
    pub(super) most: Option<usize>,
}

/// Why a service gets no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refused {
    #[error(
        "the service has no ports: no provider cluster has a Service of this name with a requested TCP or UDP port"
    )]
    NoPorts,
    #[error(
        "the hub has no addresses for load balancers; start it with --lb-pool, such as --lb-pool 192.0.2.0/28"
    )]
    NoPool,
    #[error(
        "all addresses of the pool {pool} are in use; delete a service, share the address of another service with {ADDRESSES}, or start the hub with a larger --lb-pool"
    )]
    Exhausted { pool: IpNet },
    #[error("{address} is not in the pool {pool}")]
    OutsidePool { address: IpAddr, pool: Pool },
    #[error("{} port {port} of {address} is used by {other}; use another port or address", protocol.name())]
    Clash { address: IpAddr, protocol: Protocol, port: u16, other: String },
    /// Whose it is stays unsaid: the asker may not be meant to know.
    #[error(
        "{address} belongs to a service of another namespace; use another address, or have both services name each other in {SHARE_WITH}"
    )]
    NotShared { address: IpAddr },
    #[error(
        "this namespace has as many load balancer addresses as the hub allows ({most}); delete a service, share an address within the namespace with {ADDRESSES}, or ask the hub's operator"
    )]
    Quota { most: usize },
}

/// The addresses of a service: one of each family that the pool has, or those that it asks for.
pub(super) fn choose(pool: &Pool, wanted: &Wanted<'_>, taken: &Taken) -> Result<Vec<IpAddr>, Refused> {
    if wanted.ports.is_empty() {
        return Err(Refused::NoPorts);
    }
    if pool.is_empty() {
        return Err(Refused::NoPool);
    }
    let chosen =
        if wanted.asked.is_empty() { any(pool, wanted, taken)? } else { asked(pool, wanted, taken)? };
    let new = chosen.iter().any(|address| !wanted.has.contains(address));
    let all: BTreeSet<&IpAddr> = wanted.of_namespace.iter().chain(&chosen).collect();
    match wanted.most {
        // What it has stays with it also if the limit is lowered.
        Some(most) if new && all.len() > most => Err(Refused::Quota { most }),
        Some(_) | None => Ok(chosen),
    }
}

fn asked(pool: &Pool, wanted: &Wanted<'_>, taken: &Taken) -> Result<Vec<IpAddr>, Refused> {
    for address in wanted.asked {
        if !pool.contains(*address) {
            return Err(Refused::OutsidePool { address: *address, pool: pool.clone() });
        }
        fits(*address, wanted.ports, taken)?;
    }
    Ok(wanted.asked.to_vec())
}

fn any(pool: &Pool, wanted: &Wanted<'_>, taken: &Taken) -> Result<Vec<IpAddr>, Refused> {
    let mut chosen: Vec<IpAddr> = Vec::new();
    for four in [true, false] {
        let ranges: Vec<IpNet> = pool.ranges().filter(|range| range.addr().is_ipv4() == four).collect();
        let Some(last) = ranges.last() else { continue };
        let of_pool = |address: &IpAddr| ranges.iter().any(|range| range.contains(address));
        let keeps = |address: &IpAddr| of_pool(address) && !is_lost(*address, taken);
        if let Some(address) = wanted.has.iter().find(|address| keeps(address)) {
            fits(*address, wanted.ports, taken)?;
            chosen.push(*address);
            continue;
        }
        let free = ranges.iter().flat_map(|range| hosts(*range)).find(|address| !taken.contains_key(address));
        chosen.push(free.ok_or(Refused::Exhausted { pool: *last })?);
    }
    Ok(chosen)
}

/// Whether another service had the address first and does not agree.
pub(super) fn is_lost(address: IpAddr, taken: &Taken) -> bool {
    taken.get(&address).into_iter().flatten().any(|one| one.first && !one.agrees)
}

/// Who has to leave the address because the service had it first and does not agree.
pub(super) fn leave(address: IpAddr, taken: &Taken) -> impl Iterator<Item = &Neighbour> {
    taken.get(&address).into_iter().flatten().filter(|one| !one.first && !one.agrees)
}

fn fits(address: IpAddr, ports: &Ports, taken: &Taken) -> Result<(), Refused> {
    if is_lost(address, taken) {
        return Err(Refused::NotShared { address });
    }
    for one in taken.get(&address).into_iter().flatten().filter(|one| one.agrees) {
        if let Some((protocol, port)) = ports.intersection(&one.ports).next() {
            let (protocol, port, other) = (*protocol, *port, one.who.clone());
            return Err(Refused::Clash { address, protocol, port, other });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ips(list: &[&str]) -> Vec<IpAddr> {
        list.iter().map(|text| text.parse().unwrap()).collect()
    }

    fn web() -> Ports {
        [(Protocol::Tcp, 80)].into()
    }

    fn neighbour(port: u16, agrees: bool, first: bool) -> Neighbour {
        let ports = [(Protocol::Tcp, port)].into();
        Neighbour { map: "lb.shop.other".to_owned(), who: "shop/other".to_owned(), ports, agrees, first }
    }

    fn taken(list: &[(&str, u16)]) -> Taken {
        let mut taken = Taken::new();
        for (address, port) in list {
            taken.entry(address.parse().unwrap()).or_default().push(neighbour(*port, true, true));
        }
        taken
    }

    fn given(
        pool: &str,
        asked: &[&str],
        has: &[&str],
        ports: &Ports,
        taken: &Taken,
    ) -> Result<Vec<IpAddr>, Refused> {
        let (asked, has, of_namespace) = (ips(asked), ips(has), BTreeSet::new());
        let wanted = Wanted { asked: &asked, has: &has, ports, of_namespace: &of_namespace, most: None };
        choose(&pool.parse().unwrap(), &wanted, taken)
    }

    #[test]
    fn a_service_gets_one_address_of_each_family_and_keeps_it() {
        for (asked, has, others, want) in [
            (&[][..], &[][..], &[][..], &["10.9.0.1", "fd00::1"][..]),
            (&[], &[], &[("10.9.0.1", 443)], &["10.9.0.2", "fd00::1"]),
            (&[], &["10.9.0.2", "fd00::2"], &[], &["10.9.0.2", "fd00::2"]),
            (&[], &["10.9.0.2"], &[], &["10.9.0.2", "fd00::1"]),
            (&[], &["192.0.2.1"], &[], &["10.9.0.1", "fd00::1"]),
            (&["10.9.0.2"], &["10.9.0.1"], &[], &["10.9.0.2"]),
            (&["10.9.0.2"], &[], &[("10.9.0.2", 443)], &["10.9.0.2"]),
        ] {
            let got = given("10.9.0.0/30,fd00::/126", asked, has, &web(), &taken(others));
            assert_eq!(got, Ok(ips(want)), "{asked:?} {has:?} {others:?}");
        }
    }

    #[test]
    fn whoever_gets_none_is_told_why() {
        let pool = "10.9.0.0/30";
        for (pool, asked, ports, others, want) in [
            (pool, &[][..], BTreeSet::new(), &[][..], "no ports"),
            ("", &[], web(), &[], "--lb-pool"),
            (pool, &["10.8.0.1"], web(), &[], "10.8.0.1 is not in the pool 10.9.0.0/30"),
            (
                pool,
                &["10.9.0.1"],
                web(),
                &[("10.9.0.1", 80)],
                "TCP port 80 of 10.9.0.1 is used by shop/other",
            ),
            (
                pool,
                &[],
                web(),
                &[("10.9.0.1", 1), ("10.9.0.2", 1)],
                "all addresses of the pool 10.9.0.0/30 are in use",
            ),
        ] {
            let refused = given(pool, asked, &[], &ports, &taken(others)).unwrap_err().to_string();
            assert!(refused.contains(want), "{refused}");
        }
    }

    /// Attack: a free port of another tenant's address.
    #[test]
    fn a_thief_gets_no_free_port_of_anothers_address_and_is_not_told_whose_it_is() {
        let theirs = |agrees, first| -> Taken {
            [("10.9.0.1".parse().unwrap(), vec![neighbour(443, agrees, first)])].into()
        };
        let pool = "10.9.0.0/30";
        for asked in [&["10.9.0.1"][..], &["10.9.0.2", "10.9.0.1"]] {
            let refused = given(pool, asked, &[], &web(), &theirs(false, true)).unwrap_err();
            assert_eq!(refused, Refused::NotShared { address: "10.9.0.1".parse().unwrap() });
            assert!(!refused.to_string().contains("shop"), "{refused}");
            assert_eq!(given(pool, asked, &[], &web(), &theirs(true, true)), Ok(ips(asked)), "with consent");
        }
        // Consent that ended: who came first stays, the other goes elsewhere or is refused.
        let (first, second) = (theirs(false, false), theirs(false, true));
        assert_eq!(given(pool, &["10.9.0.1"], &["10.9.0.1"], &web(), &first), Ok(ips(&["10.9.0.1"])));
        assert_eq!(leave("10.9.0.1".parse().unwrap(), &first).count(), 1);
        assert_eq!(given(pool, &[], &["10.9.0.1"], &web(), &second), Ok(ips(&["10.9.0.2"])));
        assert!(given(pool, &["10.9.0.1"], &["10.9.0.1"], &web(), &second).is_err());
        // Not even the same port holds the first one up.
        let same = [("10.9.0.1".parse().unwrap(), vec![neighbour(80, false, false)])].into();
        assert_eq!(given(pool, &["10.9.0.1"], &["10.9.0.1"], &web(), &same), Ok(ips(&["10.9.0.1"])));
    }

    /// Attack: one namespace takes the whole pool.
    #[test]
    fn a_namespace_gets_no_more_addresses_than_the_operator_allows() {
        let (ports, of_namespace) = (web(), ips(&["10.9.0.1", "10.9.0.2"]).into_iter().collect());
        let pool = "10.9.0.0/28".parse().unwrap();
        let choose = |asked: &[&str], has: &[&str], most| {
            let (asked, has) = (ips(asked), ips(has));
            let wanted =
                Wanted { asked: &asked, has: &has, ports: &ports, of_namespace: &of_namespace, most };
            choose(&pool, &wanted, &taken(&[("10.9.0.1", 1), ("10.9.0.2", 1)]))
        };
        assert_eq!(choose(&[], &[], Some(2)), Err(Refused::Quota { most: 2 }));
        assert_eq!(choose(&["10.9.0.7"], &[], Some(2)), Err(Refused::Quota { most: 2 }));
        assert_eq!(
            choose(&["10.9.0.2"], &[], Some(2)),
            Ok(ips(&["10.9.0.2"])),
            "shared within the namespace"
        );
        assert_eq!(choose(&[], &["10.9.0.9"], Some(2)), Ok(ips(&["10.9.0.9"])), "what it has stays");
        assert_eq!(choose(&[], &[], Some(3)), choose(&[], &[], None));
    }
}
