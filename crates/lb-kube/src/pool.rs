//! The addresses that the built-in balancer gives to services.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;

/// So many addresses of one range are given at the most.
const MOST_HOSTS: usize = 65_535;

/// A text that is no range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a range of addresses such as 192.0.2.0/28")]
pub struct BadPool {
    /// What came.
    pub text: String,
}

/// Ranges of addresses, written with commas in between.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Pool(BTreeSet<IpNet>);

impl Pool {
    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, in order.
    pub fn ranges(&self) -> impl Iterator<Item = IpNet> {
        self.0.iter().copied()
    }

    /// Whether the address is in one of them.
    pub(crate) fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|range| range.contains(&address))
    }
}

/// The addresses that a host can have, in order; of a large range the first ones.
pub(crate) fn hosts(range: IpNet) -> impl Iterator<Item = IpAddr> {
    // The network's own address is no host's; a range of one or two has none.
    let own = matches!(range, IpNet::V6(range) if range.prefix_len() < 127);
    range.hosts().skip(usize::from(own)).take(MOST_HOSTS)
}

impl FromStr for Pool {
    type Err = BadPool;

    fn from_str(text: &str) -> Result<Self, BadPool> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let range = |part: &str| part.parse().map_err(|_| BadPool { text: part.to_owned() });
        parts.map(range).collect::<Result<_, _>>().map(Self)
    }
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, range) in self.0.iter().enumerate() {
            write!(f, "{}{range}", if i == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_the_addresses_that_a_network_does_not_need_itself() {
        for (range, count, first, last) in [
            ("10.9.0.5/32", 1, "10.9.0.5", "10.9.0.5"),
            ("10.9.0.4/31", 2, "10.9.0.4", "10.9.0.5"),
            ("10.9.0.7/30", 2, "10.9.0.5", "10.9.0.6"),
            ("10.9.0.0/28", 14, "10.9.0.1", "10.9.0.14"),
            ("fd00::8/128", 1, "fd00::8", "fd00::8"),
            ("fd00::/127", 2, "fd00::", "fd00::1"),
            ("fd00::/126", 3, "fd00::1", "fd00::3"),
            ("fd00::/64", 65_535, "fd00::1", "fd00::ffff"),
            ("::/0", 65_535, "::1", "::ffff"),
        ] {
            let hosts: Vec<String> =
                hosts(range.parse().unwrap()).map(|address| address.to_string()).collect();
            assert_eq!(hosts.len(), count, "{range}");
            assert_eq!((hosts[0].as_str(), hosts[count - 1].as_str()), (first, last), "{range}");
        }
    }

    #[test]
    fn ranges_have_commas_in_between() {
        let pool: Pool = "fd00::/126, 10.9.0.0/30,".parse().unwrap();
        assert_eq!(pool.to_string(), "10.9.0.0/30,fd00::/126");
        assert!(pool.contains("10.9.0.3".parse().unwrap()) && !pool.contains("10.9.0.4".parse().unwrap()));
        assert!("".parse::<Pool>().unwrap().is_empty());
        assert_eq!("10.9.0.1".parse::<Pool>().unwrap_err().text, "10.9.0.1");
    }
}
