//! The names and records of one service, made of its facts once and read many times.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::facts::{Import, Port, Slice};
use crate::name::Name;

/// Everything that can be answered about one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    pub(crate) name: Name,
    pub(crate) v4: Ranked<Ipv4Addr>,
    pub(crate) v6: Ranked<Ipv6Addr>,
    /// At the service's own name: every named port, each target and port once.
    pub(crate) all_ports: Ranked<Target>,
    /// `_http._tcp` and the like, in the order of the names.
    pub(crate) ports: Box<[(Name, Ranked<Target>)]>,
    /// `<hostname>.<cluster>`, in the order of the names.
    pub(crate) hosts: Box<[Host]>,
    /// Names with nothing at them and something below: `_tcp`, `<cluster>`. In order.
    pub(crate) between: Box<[Name]>,
}

/// Things in an order that turns from answer to answer, the near ones always before the others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ranked<T> {
    items: Box<[T]>,
    near: usize,
}

impl<T> Default for Ranked<T> {
    fn default() -> Self {
        Self { items: Box::default(), near: 0 }
    }
}

impl<T> Ranked<T> {
    fn new(near: impl IntoIterator<Item = T>, far: impl IntoIterator<Item = T>) -> Self {
        let mut items: Vec<T> = near.into_iter().collect();
        let near = items.len();
        items.extend(far);
        Self { items: items.into(), near }
    }

    /// All of them, near ones first.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// None at all.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Their places in the order of answer number `turn`.
    pub(crate) fn turned(&self, turn: u32) -> impl Iterator<Item = usize> {
        let (near, far) = (self.near, self.items.len() - self.near);
        let start = |count: usize| turn as usize % count.max(1);
        let (first, second) = (start(near), start(far));
        (first..near).chain(0..first).chain((near + second..near + far).chain(near..near + second))
    }

    /// Are some near and this one is not?
    pub(crate) fn is_second_choice(&self, place: usize) -> bool {
        self.near > 0 && place >= self.near
    }
}

/// Where an SRV record points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// The place of the host among the service's; none: the service itself.
    pub host: Option<u32>,
    /// The port there.
    pub port: u16,
}

/// One endpoint by its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// `<hostname>.<cluster>`.
    pub name: Name,
    pub(crate) v4: Box<[Ipv4Addr]>,
    pub(crate) v6: Box<[Ipv6Addr]>,
}

impl Service {
    /// Makes the records of the service called `name` in full; none if it has no name at all, because it is headless and nothing is
    /// ready. `local` is the cluster whose endpoints are near.
    pub(crate) fn new<'a>(
        name: Name,
        import: &Import,
        slices: impl Iterator<Item = &'a Slice>,
        local: Option<&Name>,
    ) -> Option<Self> {
        if import.headless {
            headless(name, slices, local.filter(|_| import.local_first))
        } else {
            Some(with_address(name, import))
        }
    }

    pub(crate) fn host(&self, below: &[u8]) -> Option<&Host> {
        let place = self.hosts.binary_search_by(|host| host.name.wire().cmp(below)).ok()?;
        self.hosts.get(place)
    }

    pub(crate) fn port(&self, below: &[u8]) -> Option<&Ranked<Target>> {
        let place = self.ports.binary_search_by(|(name, _)| name.wire().cmp(below)).ok()?;
        self.ports.get(place).map(|(_, targets)| targets)
    }

    pub(crate) fn is_between(&self, below: &[u8]) -> bool {
        self.between.binary_search_by(|name| name.wire().cmp(below)).is_ok()
    }
}

/// A service with addresses of its own: its SRV records point to itself.
fn with_address(name: Name, import: &Import) -> Service {
    let (v4, v6) = by_family(import.ips.iter().copied());
    let mut ports: BTreeMap<Name, BTreeSet<Target>> = BTreeMap::new();
    if !import.ips.is_empty() {
        for port in &import.ports {
            let Some(name) = port_name(port) else { continue };
            ports.entry(name).or_default().insert(Target { host: None, port: port.port });
        }
    }
    let all: BTreeSet<Target> = ports.values().flatten().copied().collect();
    let ports: Box<[_]> = ports.into_iter().map(|(name, targets)| (name, Ranked::new([], targets))).collect();
    Service {
        name,
        v4: Ranked::new([], v4),
        v6: Ranked::new([], v6),
        all_ports: Ranked::new([], all),
        between: between(ports.iter().map(|(name, _)| name)),
        ports,
        hosts: Box::default(),
    }
}

#[derive(Default)]
struct HostFacts {
    addresses: BTreeSet<IpAddr>,
    ports: BTreeSet<(Name, u16)>,
    near: bool,
}

/// A service that is its endpoints: each has a name, and SRV records point to them.
fn headless<'a>(
    name: Name,
    slices: impl Iterator<Item = &'a Slice>,
    local: Option<&Name>,
) -> Option<Service> {
    let mut hosts: BTreeMap<Name, HostFacts> = BTreeMap::new();
    for slice in slices {
        let ports: Vec<_> =
            slice.ports.iter().filter_map(|port| Some((port_name(port)?, port.port))).collect();
        for endpoint in &slice.endpoints {
            let made;
            let hostname = match &endpoint.hostname {
                Some(hostname) => hostname,
                None => {
                    made = dashed(endpoint.address);
                    &made
                }
            };
            // Too long a name for DNS: the address is answered, under the service's name only.
            let named =
                Name::join(&[hostname, &slice.cluster]).filter(|host| Name::join(&[host, &name]).is_some());
            let host = hosts.entry(named.unwrap_or_default()).or_default();
            host.addresses.insert(endpoint.address);
            host.ports.extend(ports.iter().cloned());
            host.near = Some(&slice.cluster) == local;
        }
    }
    let ranked = |near: bool| {
        hosts.values().filter(move |host| host.near == near).flat_map(|host| host.addresses.iter().copied())
    };
    let (near_v4, near_v6) = by_family(ranked(true));
    let (far_v4, far_v6) = by_family(ranked(false));
    hosts.remove(&Name::default());
    let (mut all, mut ports): (Sides, BTreeMap<Name, Sides>) = Default::default();
    for (place, host) in hosts.values().enumerate() {
        for (name, port) in &host.ports {
            let target = Target { host: u32::try_from(place).ok(), port: *port };
            all.add(target, host.near);
            ports.entry(name.clone()).or_default().add(target, host.near);
        }
    }
    let ports: Box<[_]> = ports.into_iter().map(|(name, sides)| (name, sides.ranked())).collect();
    let hosts: Box<[_]> = hosts
        .into_iter()
        .map(|(name, host)| {
            let (v4, v6) = by_family(host.addresses.into_iter());
            Host { name, v4: v4.into_iter().collect(), v6: v6.into_iter().collect() }
        })
        .collect();
    let service = Service {
        name,
        v4: Ranked::new(near_v4, far_v4),
        v6: Ranked::new(near_v6, far_v6),
        all_ports: all.ranked(),
        between: between(ports.iter().map(|(name, _)| name).chain(hosts.iter().map(|host| &host.name))),
        ports,
        hosts,
    };
    let answers = !service.v4.is_empty() || !service.v6.is_empty();
    answers.then_some(service)
}

#[derive(Default)]
struct Sides {
    near: BTreeSet<Target>,
    far: BTreeSet<Target>,
}

impl Sides {
    fn add(&mut self, target: Target, near: bool) {
        if near { &mut self.near } else { &mut self.far }.insert(target);
    }

    fn ranked(self) -> Ranked<Target> {
        Ranked::new(self.near, self.far)
    }
}

fn by_family(addresses: impl Iterator<Item = IpAddr>) -> (BTreeSet<Ipv4Addr>, BTreeSet<Ipv6Addr>) {
    let (mut v4, mut v6) = (BTreeSet::new(), BTreeSet::new());
    for address in addresses {
        match address {
            IpAddr::V4(address) => drop(v4.insert(address)),
            IpAddr::V6(address) => drop(v6.insert(address)),
        }
    }
    (v4, v6)
}

/// `_http._tcp`; none for a port without a name.
fn port_name(port: &Port) -> Option<Name> {
    if port.name.is_empty() {
        return None;
    }
    Name::parse(&format!("_{}._{}", port.name, port.protocol.as_str())).ok()
}

/// The name of an endpoint that has none: its address, with dashes.
fn dashed(address: IpAddr) -> Name {
    // Letters, digits and dashes, far shorter than a label may be.
    Name::label(&address.to_string().replace(['.', ':'], "-")).unwrap_or_default()
}

/// Every name above these that is not one of them.
fn between<'a>(names: impl Iterator<Item = &'a Name> + Clone) -> Box<[Name]> {
    let known: BTreeSet<&Name> = names.clone().collect();
    let mut between = BTreeSet::new();
    for name in names {
        let mut above = name.parent();
        while let Some(name) = above {
            above = name.parent();
            if !known.contains(&name) {
                between.insert(name);
            }
        }
    }
    between.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ones_stay_before_the_others_in_every_turn() {
        let ranked = Ranked::new(["a", "b"], ["c", "d", "e"]);
        let turn = |turn| ranked.turned(turn).map(|place| ranked.items()[place]).collect::<String>();
        assert_eq!([turn(0), turn(1), turn(2), turn(3)], ["abcde", "badec", "abecd", "bacde"]);
        assert_eq!(Ranked::<u8>::default().turned(7).count(), 0);
        assert!(ranked.is_second_choice(2) && !ranked.is_second_choice(1));
        assert!(!Ranked::new([], ["a"]).is_second_choice(0));
    }

    #[test]
    fn addresses_make_a_label() {
        for (address, want) in
            [("10.11.0.7", "10-11-0-7"), ("fd00:10::7", "fd00-10--7"), ("::ffff:1.2.3.4", "--ffff-1-2-3-4")]
        {
            assert_eq!(dashed(address.parse().unwrap()).to_string(), want);
        }
    }
}
