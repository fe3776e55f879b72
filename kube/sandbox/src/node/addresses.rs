//! Which pod has which address. Pure.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// The addresses of one member's pods.
#[derive(Debug)]
pub(super) struct Addresses {
    first: u32,
    last: u32,
    next: u32,
    /// By pod's uid.
    taken: HashMap<Ipv4Addr, String>,
}

impl Addresses {
    pub(super) fn new(range: &RangeInclusive<Ipv4Addr>) -> Self {
        let (first, last) = (range.start().to_bits(), range.end().to_bits());
        Self { first, last, next: first, taken: HashMap::new() }
    }

    /// Gives a pod the address that it had. False if another has it, or it is none of ours.
    pub(super) fn claim(&mut self, address: Ipv4Addr, uid: &str) -> bool {
        if !(self.first..=self.last).contains(&address.to_bits()) {
            return false;
        }
        // New ones come after it, so that an address is not reused soon.
        self.next = self.next.max(address.to_bits() + 1);
        self.taken.entry(address).or_insert_with(|| uid.to_owned()) == uid
    }

    /// Gives a pod an address. One that was given back is used again as late as possible.
    pub(super) fn give(&mut self, uid: &str) -> Option<Ipv4Addr> {
        for _ in self.first..=self.last {
            if self.next > self.last {
                self.next = self.first;
            }
            let address = Ipv4Addr::from_bits(self.next);
            self.next += 1;
            // Those look like a network and a broadcast address, and confuse people.
            let odd = matches!(address.octets()[3], 0 | 255);
            if !odd && !self.taken.contains_key(&address) {
                self.taken.insert(address, uid.to_owned());
                return Some(address);
            }
        }
        None
    }

    /// Takes an address back.
    pub(super) fn release(&mut self, address: Ipv4Addr, uid: &str) {
        if self.taken.get(&address).is_some_and(|holder| holder == uid) {
            self.taken.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Block;

    #[test]
    fn no_two_pods_have_one_address() {
        let mut addresses = Addresses::new(&Block(7).pods());
        let at = |text: &str| text.parse::<Ipv4Addr>().unwrap();
        assert!(addresses.claim(at("127.7.1.2"), "kept"));
        assert!(!addresses.claim(at("127.7.1.2"), "other"));
        assert!(!addresses.claim(at("127.8.1.2"), "elsewhere"));
        assert_eq!(addresses.give("a"), Some(at("127.7.1.3")));
        addresses.release(at("127.7.1.3"), "another uid");
        addresses.release(at("127.7.1.2"), "kept");
        assert_eq!(addresses.give("b"), Some(at("127.7.1.4")), "not at once again");
    }

    #[test]
    fn addresses_come_round() {
        let mut addresses = Addresses::new(&("127.7.1.254".parse().unwrap()..="127.7.2.2".parse().unwrap()));
        let given: Vec<_> = ["a", "b", "c", "d"].iter().map(|uid| addresses.give(uid)).collect();
        let given: Vec<_> = given.iter().map(|one| one.map(|one| one.to_string())).collect();
        let given: Vec<_> = given.iter().map(Option::as_deref).collect();
        assert_eq!(given, [Some("127.7.1.254"), Some("127.7.2.1"), Some("127.7.2.2"), None]);
        addresses.release("127.7.2.1".parse().unwrap(), "b");
        assert_eq!(addresses.give("e").map(|one| one.to_string()).as_deref(), Some("127.7.2.1"));
    }
}
