//! Which backend a client had last, for as long as it should come back to it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use crate::Time;

/// Clients, and where they were. Bounded: the one that was away longest is forgotten first.
#[derive(Debug)]
pub struct Affinity {
    span: Time,
    most: usize,
    clients: BTreeMap<IpAddr, (SocketAddr, Time)>,
    by_end: BTreeSet<(Time, IpAddr)>,
}

impl Affinity {
    /// Remembers for `span` after the last connection, and at most so many clients.
    pub fn new(span: Time, most: usize) -> Self {
        Self { span, most: most.max(1), clients: BTreeMap::new(), by_end: BTreeSet::new() }
    }

    /// Where `client` was last, if that is not too long ago.
    pub fn recall(&self, client: IpAddr, now: Time) -> Option<SocketAddr> {
        self.clients.get(&client).filter(|(_, end)| *end > now).map(|(backend, _)| *backend)
    }

    /// `client` goes to `backend` now.
    pub fn remember(&mut self, client: IpAddr, backend: SocketAddr, now: Time) {
        let end = now + self.span;
        match self.clients.get(&client) {
            // Most connections come soon after another: they need not move anything.
            Some((same, old)) if *same == backend && end.saturating_sub(*old) < self.span / 16 => return,
            Some((_, old)) => drop(self.by_end.remove(&(*old, client))),
            None if self.clients.len() >= self.most => {
                if let Some((_, oldest)) = self.by_end.pop_first() {
                    self.clients.remove(&oldest);
                }
            }
            None => {}
        }
        self.clients.insert(client, (backend, end));
        self.by_end.insert((end, client));
    }

    /// How many are remembered.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// Whether no client is.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Forgets whoever was away too long.
    pub fn forget(&mut self, now: Time) {
        while let Some((end, client)) = self.by_end.first().copied().filter(|(end, _)| *end <= now) {
            self.by_end.remove(&(end, client));
            self.clients.remove(&client);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, last])
    }

    #[test]
    fn a_client_comes_back_until_it_was_away_too_long() {
        let (one, other) = ("10.0.0.1:80".parse().unwrap(), "10.0.0.2:80".parse().unwrap());
        let second = Time::from_secs;
        let mut affinity = Affinity::new(second(160), 2);
        affinity.remember(ip(1), one, second(0));
        assert_eq!(affinity.recall(ip(1), second(159)), Some(one));
        assert_eq!(affinity.recall(ip(1), second(160)), None);
        affinity.remember(ip(1), one, second(100));
        assert_eq!(affinity.recall(ip(1), second(259)), Some(one));
        affinity.remember(ip(1), other, second(101));
        assert_eq!(affinity.recall(ip(1), second(102)), Some(other));
        affinity.remember(ip(2), one, second(110));
        affinity.remember(ip(3), one, second(120));
        assert_eq!((affinity.recall(ip(1), second(121)), affinity.len()), (None, 2));
        affinity.forget(second(275));
        assert_eq!((affinity.recall(ip(3), second(275)), affinity.len()), (Some(one), 1));
        affinity.forget(second(300));
        assert!(affinity.is_empty() && affinity.by_end.is_empty());
    }
}
