//! The addresses that are no member's to announce: those of the hub's own host, and those that its balancers give to services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use atoll_engine::network::Reserved;
use ipnet::IpNet;

use crate::mcs::balancing::Balancing;
use crate::options::Options;

/// Those of this hub.
pub(crate) fn reserved(options: &Options) -> Reserved {
    let pool = match &options.balancing {
        Balancing::BuiltIn(pool) | Balancing::Limited(pool, _) => pool.ranges().collect(),
        Balancing::Off | Balancing::Provider(_) => Vec::new(),
    };
    let read = |path| std::fs::read_to_string(path).unwrap_or_default(); // elsewhere than on Linux nothing is known
    let (four, six) = (read("/proc/net/fib_trie"), read("/proc/net/if_inet6"));
    let all = of_routes(&four).map(IpAddr::V4).chain(of_interfaces(&six).map(IpAddr::V6));
    let mut hub: Vec<IpNet> = all.map(IpNet::from).collect();
    hub.sort();
    hub.dedup();
    Reserved { hub, pool }
}

/// The IPv4 addresses that are the host's own: in the kernel's table each stands on the line before `host LOCAL`.
fn of_routes(table: &str) -> impl Iterator<Item = Ipv4Addr> {
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    let own = lines.windows(2).filter(|pair| pair[1] == "/32 host LOCAL").map(|pair| pair[0]);
    let own: Vec<Ipv4Addr> = own.filter_map(|line| line.strip_prefix("|-- ")?.parse().ok()).collect();
    own.into_iter()
}

/// The IPv6 addresses of its interfaces: 32 digits without colons at the beginning of each line.
fn of_interfaces(table: &str) -> impl Iterator<Item = Ipv6Addr> {
    let numbers =
        table.lines().filter_map(|line| u128::from_str_radix(line.split_whitespace().next()?, 16).ok());
    numbers.map(Ipv6Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_own_addresses_are_read_off_the_kernels_tables() {
        let table = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n     |-- 10.0.0.0\n        /24 link UNICAST\nLocal:\n     |-- 10.0.0.5\n        /32 host LOCAL\n     |-- 10.0.0.255\n        /32 link BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\n";
        let own: Vec<String> = of_routes(table).map(|address| address.to_string()).collect();
        assert_eq!(own, ["10.0.0.5", "127.0.0.1"]);
        let table = "fe80000000000000021122fffe334455 02 40 20 80     eth0\nfd000200000000000000000000000005 02 40 00 80     eth0\n";
        let own: Vec<String> = of_interfaces(table).map(|address| address.to_string()).collect();
        assert_eq!(own, ["fe80::211:22ff:fe33:4455", "fd00:200::5"]);
    }
}
