//! Which of several endpoints a client gets.

use super::table::{Backend, ServiceName};
use crate::network::Protocol;
use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many clients are remembered before those whose time is up are looked for.
const MANY: usize = 1024;

/// Chooses among endpoints.
pub trait Choose: Send + Sync + 'static {
    /// One of `count` (more than none) endpoints of what was dialled.
    fn choose(&self, dialled: SocketAddr, protocol: Protocol, count: usize) -> usize;
}

/// One after the other, for each port of each Service.
#[derive(Debug, Default)]
pub struct RoundRobin(Mutex<HashMap<(SocketAddr, Protocol), usize>>);

impl Choose for RoundRobin {
    fn choose(&self, dialled: SocketAddr, protocol: Protocol, count: usize) -> usize {
        let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = turns.entry((dialled, protocol)).or_default();
        let chosen = *turn % count.max(1);
        *turn = chosen + 1;
        chosen
    }
}

pub(super) fn pick(endpoints: &[SocketAddr], choose: impl Fn(usize) -> usize) -> Option<SocketAddr> {
    match endpoints {
        [] => None,
        some => some.get(choose(some.len())).or(some.first()).copied(),
    }
}

/// Which client stays with which endpoint, and since when it was last seen.
#[derive(Debug, Default)]
pub(super) struct Affinity(HashMap<(ServiceName, String, IpAddr), (SocketAddr, Instant)>);

impl Affinity {
    pub(super) fn pick(
        &mut self,
        backend: &Backend,
        client: IpAddr,
        timeout: Duration,
        now: Instant,
        choose: impl Fn(usize) -> usize,
    ) -> Option<SocketAddr> {
        if self.0.len() > MANY {
            self.0.retain(|_, (_, seen)| now.duration_since(*seen) < timeout);
        }
        let key = (backend.service.clone(), backend.port.clone(), client);
        let kept = self.0.get(&key).filter(|(endpoint, seen)| {
            now.duration_since(*seen) < timeout && backend.endpoints.contains(endpoint)
        });
        let chosen = match kept {
            Some((endpoint, _)) => Some(*endpoint),
            None => pick(&backend.endpoints, choose),
        };
        match chosen {
            Some(endpoint) => self.0.insert(key, (endpoint, now)),
            None => self.0.remove(&key),
        };
        chosen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(endpoints: &[&str]) -> Backend {
        Backend {
            service: ServiceName::default(),
            port: String::new(),
            endpoints: endpoints.iter().map(|text| text.parse().unwrap()).collect(),
            affinity: None,
            own: true,
        }
    }

    #[test]
    fn each_endpoint_has_its_turn() {
        let choice = RoundRobin::default();
        let dialled = "127.1.128.1:80".parse().unwrap();
        let turns: Vec<_> = (0..5).map(|_| choice.choose(dialled, Protocol::Tcp, 3)).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1]);
        assert_eq!(choice.choose(dialled, Protocol::Udp, 3), 0, "each port counts for itself");
    }

    #[test]
    fn a_client_stays_until_its_time_is_up_or_its_endpoint_goes() {
        let mut affinity = Affinity::default();
        let (begin, timeout) = (Instant::now(), Duration::from_secs(10));
        let client = "127.1.1.9".parse().unwrap();
        let both = backend(&["127.1.1.1:80", "127.1.1.2:80"]);
        let mut ask = |backend: &Backend, after: u64, turn: usize| {
            let now = begin + Duration::from_secs(after);
            affinity.pick(backend, client, timeout, now, |_| turn).unwrap().to_string()
        };
        assert_eq!(ask(&both, 0, 0), "127.1.1.1:80");
        assert_eq!(ask(&both, 9, 1), "127.1.1.1:80");
        assert_eq!(ask(&both, 18, 1), "127.1.1.1:80", "each use counts anew");
        assert_eq!(ask(&both, 28, 1), "127.1.1.2:80", "the time is up");
        assert_eq!(ask(&backend(&["127.1.1.1:80"]), 29, 0), "127.1.1.1:80", "its endpoint is gone");
    }
}
