//! Which addresses of the pool a service gets. What it has it keeps; what it asks for it gets, if its ports are free there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use atoll_api::names::annotation::balancing::ADDRESSES;
use atoll_lb::Protocol;
use ipnet::IpNet;

use crate::pool::{Pool, hosts};

/// The ports that are taken on an address, and by whom.
pub(super) type Taken = BTreeMap<IpAddr, Vec<(String, BTreeSet<(Protocol, u16)>)>>;

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
}

/// The addresses of a service: one of each family that the pool has, or those that it asks for.
pub(super) fn choose(
    pool: &Pool,
    asked: &[IpAddr],
    has: &[IpAddr],
    ports: &BTreeSet<(Protocol, u16)>,
    taken: &Taken,
) -> Result<Vec<IpAddr>, Refused> {
    if ports.is_empty() {
        return Err(Refused::NoPorts);
    }
    if pool.is_empty() {
        return Err(Refused::NoPool);
    }
    if !asked.is_empty() {
        for address in asked {
            if !pool.contains(*address) {
                return Err(Refused::OutsidePool { address: *address, pool: pool.clone() });
            }
            clash(*address, ports, taken)?;
        }
        return Ok(asked.to_vec());
    }
    let mut chosen: Vec<IpAddr> = Vec::new();
    for four in [true, false] {
        let ranges: Vec<IpNet> = pool.ranges().filter(|range| range.addr().is_ipv4() == four).collect();
        let Some(last) = ranges.last() else { continue };
        let of_pool = |address: &IpAddr| ranges.iter().any(|range| range.contains(address));
        if let Some(address) = has.iter().find(|address| of_pool(address)) {
            clash(*address, ports, taken)?;
            chosen.push(*address);
            continue;
        }
        let free = ranges.iter().flat_map(|range| hosts(*range)).find(|address| !taken.contains_key(address));
        chosen.push(free.ok_or(Refused::Exhausted { pool: *last })?);
    }
    Ok(chosen)
}

fn clash(address: IpAddr, ports: &BTreeSet<(Protocol, u16)>, taken: &Taken) -> Result<(), Refused> {
    for (other, theirs) in taken.get(&address).into_iter().flatten() {
        if let Some((protocol, port)) = ports.intersection(theirs).next() {
            let (protocol, port, other) = (*protocol, *port, other.clone());
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

    fn web() -> BTreeSet<(Protocol, u16)> {
        [(Protocol::Tcp, 80)].into()
    }

    fn taken(list: &[(&str, u16)]) -> Taken {
        let mut taken = Taken::new();
        for (address, port) in list {
            let ports = [(Protocol::Tcp, *port)].into();
            taken.entry(address.parse().unwrap()).or_default().push(("shop/other".to_owned(), ports));
        }
        taken
    }

    #[test]
    fn a_service_gets_one_address_of_each_family_and_keeps_it() {
        let pool: Pool = "10.9.0.0/30,fd00::/126".parse().unwrap();
        for (asked, has, others, want) in [
            (&[][..], &[][..], &[][..], &["10.9.0.1", "fd00::1"][..]),
            (&[], &[], &[("10.9.0.1", 443)], &["10.9.0.2", "fd00::1"]),
            (&[], &["10.9.0.2", "fd00::2"], &[], &["10.9.0.2", "fd00::2"]),
            (&[], &["10.9.0.2"], &[], &["10.9.0.2", "fd00::1"]),
            (&[], &["192.0.2.1"], &[], &["10.9.0.1", "fd00::1"]),
            (&["10.9.0.2"], &["10.9.0.1"], &[], &["10.9.0.2"]),
            (&["10.9.0.2"], &[], &[("10.9.0.2", 443)], &["10.9.0.2"]),
        ] {
            let got = choose(&pool, &ips(asked), &ips(has), &web(), &taken(others));
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
            let pool: Pool = pool.parse().unwrap();
            let refused = choose(&pool, &ips(asked), &[], &ports, &taken(others)).unwrap_err().to_string();
            assert!(refused.contains(want), "{refused}");
        }
    }
}
