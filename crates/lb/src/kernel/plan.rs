//! What the kernel should do, as data.

use std::net::{IpAddr, SocketAddr};

use atoll_balance::{Maglev, Picture};

use crate::desired::{Listener, Protocol, Source};

/// Places of a map: a share is within a thousandth. A prime.
const PLACES: usize = 1021;

/// Everything that the kernel should do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) forwards: Vec<Forward>,
}

impl Plan {
    /// Whether the rules of `other` are the same, and only who has which place differs.
    pub(crate) fn has_rules_of(&self, other: &Self) -> bool {
        let pairs = || self.forwards.iter().zip(&other.forwards);
        self.forwards.len() == other.forwards.len() && pairs().all(|(one, two)| one.has_rule_of(two))
    }
}

/// From one address and port to backends of the same family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Forward {
    pub(crate) protocol: Protocol,
    pub(crate) listener: SocketAddr,
    /// Who has which place of the hash. Empty if there is no backend: then the kernel refuses clients by itself.
    pub(crate) places: Vec<SocketAddr>,
    /// All connections of a client alike.
    pub(crate) by_client: bool,
    pub(crate) source: Source,
    pub(crate) seed: u32,
}

impl Forward {
    pub(crate) fn new(listener: &Listener, picture: &Picture) -> Self {
        let family = |ip: IpAddr| ip.is_ipv4() == listener.address.is_ipv4();
        let backends: Vec<_> = picture
            .candidates()
            .iter()
            .filter(|one| family(one.address.ip()))
            .map(|one| (one.address, one.weight))
            .collect();
        let table = Maglev::of_size(listener.settings.seed, &backends, PLACES);
        Self {
            protocol: listener.protocol,
            listener: listener.address,
            places: table.places().iter().map(|number| backends[usize::from(*number)].0).collect(),
            by_client: listener.settings.affinity.is_some(),
            source: listener.source,
            // Half of it is as good as all of it.
            seed: (listener.settings.seed >> 32) as u32 ^ listener.settings.seed as u32,
        }
    }

    fn has_rule_of(&self, other: &Self) -> bool {
        let rule =
            |one: &Self| (one.protocol, one.listener, one.places.len(), one.by_client, one.source, one.seed);
        rule(self) == rule(other)
    }

    /// The places that are another's in `next`, with whose they become.
    pub(crate) fn moved<'a>(
        &self,
        next: &'a Self,
    ) -> impl Iterator<Item = (usize, &'a SocketAddr)> + use<'a, '_> {
        let pairs = self.places.iter().zip(&next.places).enumerate();
        pairs.filter(|(_, (was, is))| was != is).map(|(place, (_, is))| (place, is))
    }
}

/// Why the kernel can't carry this listener; none if it can.
pub(crate) fn refusal(listener: &Listener) -> Option<&'static str> {
    if listener.proxy_protocol {
        return Some("the kernel data path does not support the PROXY protocol: use user space");
    }
    if listener.backends.len() > PLACES {
        return Some("too many backends for the kernel data path: use user space");
    }
    if listener.address.ip().is_unspecified() || listener.address.port() == 0 {
        return Some("the kernel data path needs one address and one port: set them, or use user space");
    }
    let other = |backend: &atoll_balance::Backend| backend.address.is_ipv4() != listener.address.is_ipv4();
    if listener.backends.iter().any(other) {
        return Some(
            "a backend is of the other IP family, which the kernel data path does not support: use user space",
        );
    }
    if listener.backends.iter().any(|backend| backend.address.ip().is_loopback()) {
        return Some(
            "a backend is on loopback, which the kernel does not forward to from outside: use --data-path user-space",
        );
    }
    (!listener.source.fits(listener.address.ip()))
        .then_some("the source addresses are not a range of the listener's IP family")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use atoll_balance::{Backend, ClusterShare, Pool, Settings};

    use super::*;

    #[test]
    fn places_have_the_shares_of_the_weights() {
        let backend = |address: &str, cluster| Backend::new(address.parse().unwrap(), cluster);
        let backends = vec![backend("10.1.0.1:80", "paris"), backend("10.2.0.1:81", "tokyo")];
        let mut listener =
            Listener::new("web", Protocol::Tcp, "192.0.2.1:80".parse().unwrap(), backends.clone());
        let share = |weight| ClusterShare { weight: Some(weight), tier: 0 };
        listener.settings = Settings {
            clusters: [("paris".into(), share(3)), ("tokyo".into(), share(1))].into(),
            ..Settings::default()
        };
        let mut pool = Pool::default();
        pool.configure(listener.settings.clone(), backends, Duration::ZERO);
        let forward = Forward::new(&listener, pool.picture());
        let paris = forward.places.iter().filter(|place| place.port() == 80).count();
        assert_eq!((forward.places.len(), paris.abs_diff(766) < 3), (PLACES, true), "{paris}");
        assert_eq!(refusal(&listener), None);
    }

    #[test]
    fn a_lost_backend_moves_its_own_places_and_hardly_another() {
        let backend = |number: u16| Backend::new(SocketAddr::from(([10, 1, 0, 1], 8000 + number)), "paris");
        let all: Vec<Backend> = (0..10).map(backend).collect();
        let listener = Listener::new("web", Protocol::Tcp, "192.0.2.1:80".parse().unwrap(), all.clone());
        let forward = |backends: &[Backend]| {
            let mut pool = Pool::default();
            pool.configure(Settings::default(), backends.to_vec(), Duration::ZERO);
            Forward::new(&listener, pool.picture())
        };
        let (before, after) = (forward(&all), forward(&all[1..]));
        let one = Plan { forwards: vec![before.clone()] };
        assert!(one.has_rules_of(&Plan { forwards: vec![after.clone()] }));
        assert!(!one.has_rules_of(&Plan { forwards: vec![forward(&[])] }), "without places there is no rule");
        assert!(!one.has_rules_of(&Plan::default()));
        let lost = before.places.iter().filter(|place| **place == all[0].address).count();
        let moved = before.moved(&after).count();
        assert!(lost > 80 && moved >= lost && moved < lost * 3, "{lost} were lost, {moved} moved");
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused() {
        let listener = |address: &str, backend: &str| {
            let backends = vec![Backend::new(backend.parse().unwrap(), "paris")];
            Listener::new("web", Protocol::Tcp, address.parse().unwrap(), backends)
        };
        let good = listener("192.0.2.1:80", "10.0.0.1:80");
        let ip = |text: &str| text.parse().unwrap();
        for (listener, refused) in [
            (good.clone(), false),
            (listener("0.0.0.0:80", "10.0.0.1:80"), true),
            (listener("192.0.2.1:80", "[fd00::1]:80"), true),
            (listener("192.0.2.1:80", "127.0.0.1:80"), true),
            (Listener { proxy_protocol: true, ..good.clone() }, true),
            (Listener { source: Source::Pool(ip("10.9.0.1"), ip("10.9.0.4")), ..good.clone() }, false),
            (Listener { source: Source::Pool(ip("10.9.0.4"), ip("10.9.0.1")), ..good.clone() }, true),
            (Listener { source: Source::Pool(ip("fd00::1"), ip("fd00::2")), ..good }, true),
        ] {
            assert_eq!(refusal(&listener).is_some(), refused, "{listener:?}");
        }
    }
}
