//! The addresses and node ports of Services: each is given once.

use crate::environment::SharedEnvironment;
use crate::http::encode;
use crate::resources::resource::Resource;
use crate::resources::strategy::{Special, is_headless, needs_address, needs_node_ports};
use crate::storage::store::{Key, Store};
use atoll_apimachinery::invalid::{FieldError, TOLD_MOST};
use ipnet::Ipv4Net;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The addresses that Services get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network(Ipv4Net);

impl Default for Network {
    fn default() -> Self {
        Self::new(Ipv4Net::new_assert(Ipv4Addr::new(10, 96, 0, 0), 16))
    }
}

impl Network {
    /// One of a few addresses would be of no use: there are at least four.
    pub(crate) fn new(range: Ipv4Net) -> Self {
        let range = Ipv4Net::new_assert(range.addr(), range.prefix_len().clamp(1, 30));
        Self(range.trunc())
    }

    fn start(self) -> u32 {
        self.0.network().to_bits()
    }

    fn size(self) -> u32 {
        1 << (32 - u32::from(self.0.prefix_len()))
    }

    /// The address of the API itself.
    pub(crate) fn first(self) -> Ipv4Addr {
        Ipv4Addr::from(self.start() + 1)
    }

    fn holds(self, address: Ipv4Addr) -> bool {
        self.0.contains(&address)
    }

    /// Every address but the first and the last, beginning somewhere.
    fn candidates(self, from: u32) -> impl Iterator<Item = Ipv4Addr> {
        let inner = self.size() - 2;
        (0..inner).map(move |step| Ipv4Addr::from(self.start() + 1 + (from % inner + step) % inner))
    }
}

/// The ports that Services get on nodes.
const FIRST_PORT: u16 = 30_000;
const LAST_PORT: u16 = 32_767;

/// What there is, and what of it is taken.
#[derive(Debug)]
pub(crate) struct Addresses {
    network: Network,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    addresses: BTreeSet<Ipv4Addr>,
    ports: BTreeSet<u16>,
}

/// What was given to one Service; taken back unless it is kept.
#[derive(Debug, Default)]
pub(crate) struct Reservation<'a> {
    given: Option<&'a Addresses>,
    addresses: Vec<Ipv4Addr>,
    ports: Vec<u16>,
    /// Held by the old state only: free once the new one is written.
    freed: (Vec<Ipv4Addr>, Vec<u16>),
}

impl Reservation<'_> {
    /// The Service was written.
    pub(crate) fn keep(mut self) {
        if let Some(given) = self.given.take() {
            let mut taken = given.lock();
            for address in &self.freed.0 {
                taken.addresses.remove(address);
            }
            for port in &self.freed.1 {
                taken.ports.remove(port);
            }
        }
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if let Some(given) = self.given.take() {
            let mut taken = given.lock();
            for address in &self.addresses {
                taken.addresses.remove(address);
            }
            for port in &self.ports {
                taken.ports.remove(port);
            }
        }
    }
}

impl Addresses {
    /// What the Services in a store have.
    pub(crate) fn of(store: &Store, network: Network) -> Self {
        let mut taken = Taken::default();
        let page = store.list(&Key::resource_prefix("", "services"), None, None, None);
        for object in page.map(|page| page.objects).unwrap_or_default() {
            let (addresses, ports) = held(&encode::read(&object.body));
            taken.addresses.extend(addresses);
            taken.ports.extend(ports);
        }
        Self { network, taken: Mutex::new(taken) }
    }

    pub(crate) fn network(&self) -> Network {
        self.network
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives a Service what it needs and has not. Other kinds need nothing.
    pub(crate) fn reserve(
        &self,
        resource: &Resource,
        service: &mut Value,
        old: Option<&Value>,
        environment: &SharedEnvironment,
    ) -> Result<Reservation<'_>, Vec<FieldError>> {
        if resource.rules.special != Special::Service {
            return Ok(Reservation::default());
        }
        let before = old.map(held).unwrap_or_default();
        let mut reservation = Reservation::default();
        reservation.given = Some(self);
        let mut taken = self.lock();
        let mut errors = Vec::new();
        if needs_address(service) {
            families(service);
            let start = u32::try_from(environment.below(u64::from(self.network.size()))).unwrap_or(0);
            address(
                &mut taken,
                service,
                &before.0,
                (self.network, start),
                &mut reservation.addresses,
                &mut errors,
            );
        }
        if needs_node_ports(service) {
            node_ports(&mut taken, service, &before.1, environment, &mut reservation.ports, &mut errors);
        }
        let after = held(service);
        reservation.freed.0 = before.0.into_iter().filter(|one| !after.0.contains(one)).collect();
        reservation.freed.1 = before.1.into_iter().filter(|one| !after.1.contains(one)).collect();
        drop(taken);
        if errors.is_empty() { Ok(reservation) } else { Err(errors) }
    }

    /// A Service is gone.
    pub(crate) fn release(&self, resource: &Resource, service: &Value) {
        if resource.rules.special != Special::Service {
            return;
        }
        let (addresses, ports) = held(service);
        let mut taken = self.lock();
        for address in addresses {
            taken.addresses.remove(&address);
        }
        for port in ports {
            taken.ports.remove(&port);
        }
    }
}

/// What a Service has.
fn held(service: &Value) -> (Vec<Ipv4Addr>, Vec<u16>) {
    if !needs_address(service) {
        return Default::default();
    }
    let address = service["spec"]["clusterIP"].as_str().and_then(|text| text.parse().ok());
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let ports =
        ports.filter_map(|port| port["nodePort"].as_u64()).filter_map(|port| u16::try_from(port).ok());
    let health = service["spec"]["healthCheckNodePort"].as_u64().and_then(|port| u16::try_from(port).ok());
    (address.into_iter().collect(), ports.chain(health).filter(|port| *port != 0).collect())
}

/// Which families a Service has: the one that there is.
fn families(service: &mut Value) {
    let selects = service["spec"]["selector"].as_object().is_some_and(|selector| !selector.is_empty());
    let headless = is_headless(service);
    let spec = &mut service["spec"];
    let unset = |value: &Value| value.is_null();
    if headless && !selects && unset(&spec["ipFamilyPolicy"]) && unset(&spec["ipFamilies"]) {
        spec["ipFamilyPolicy"] = "RequireDualStack".into();
        spec["ipFamilies"] = json!(["IPv4", "IPv6"]);
    }
    if unset(&spec["ipFamilyPolicy"]) {
        spec["ipFamilyPolicy"] = "SingleStack".into();
    }
    if unset(&spec["ipFamilies"]) {
        spec["ipFamilies"] = json!(["IPv4"]);
    }
}

fn address(
    taken: &mut Taken,
    service: &mut Value,
    own: &[Ipv4Addr],
    (network, start): (Network, u32),
    given: &mut Vec<Ipv4Addr>,
    errors: &mut Vec<FieldError>,
) {
    let first =
        service["spec"]["clusterIPs"].as_array().and_then(|list| list.first()).cloned().unwrap_or_default();
    let asked = match service["spec"]["clusterIP"].as_str().filter(|text| !text.is_empty()) {
        Some(text) => text.to_owned(),
        None => first.as_str().unwrap_or_default().to_owned(),
    };
    if asked == "None" {
        service["spec"]["clusterIP"] = "None".into();
        service["spec"]["clusterIPs"] = json!(["None"]);
        return;
    }
    let address = if asked.is_empty() {
        let free = network.candidates(start).find(|one| !taken.addresses.contains(one));
        let Some(free) = free else {
            errors.push(FieldError::internal(
                "spec.clusterIPs",
                "failed to allocate a serviceIP: range is full",
            ));
            return;
        };
        free
    } else {
        let shown = json!([asked]);
        let Ok(address) = asked.parse::<Ipv4Addr>() else {
            let why = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
            errors.push(FieldError::invalid("spec.clusterIPs[0]", asked.as_str(), why));
            return;
        };
        if !network.holds(address) {
            let why = format!(
                "failed to allocate IP {asked}: the provided network does not match the current range"
            );
            errors.push(FieldError::invalid("spec.clusterIPs", shown, why));
            return;
        }
        if !own.contains(&address) && taken.addresses.contains(&address) {
            let why = format!("failed to allocate IP {asked}: provided IP is already allocated");
            errors.push(FieldError::invalid("spec.clusterIPs", shown, why));
            return;
        }
        address
    };
    if !own.contains(&address) && taken.addresses.insert(address) {
        given.push(address);
    }
    service["spec"]["clusterIP"] = address.to_string().into();
    service["spec"]["clusterIPs"] = json!([address.to_string()]);
}

fn node_ports(
    taken: &mut Taken,
    service: &mut Value,
    own: &[u16],
    environment: &SharedEnvironment,
    given: &mut Vec<u16>,
    errors: &mut Vec<FieldError>,
) {
    // Ports of one number and different protocols may share a node port.
    let mut mine: Vec<u16> = own.to_vec();
    let ports = service["spec"]["ports"].as_array_mut().into_iter().flatten();
    for (index, port) in ports.enumerate() {
        if errors.len() >= TOLD_MOST {
            break;
        }
        let path = format!("spec.ports[{index}].nodePort");
        match port["nodePort"].as_u64().filter(|number| *number != 0) {
            Some(number) => {
                let Some(number) =
                    u16::try_from(number).ok().filter(|number| (FIRST_PORT..=LAST_PORT).contains(number))
                else {
                    let why = format!(
                        "provided port is not in the valid range. The range of valid ports is {FIRST_PORT}-{LAST_PORT}"
                    );
                    errors.push(FieldError::invalid(&path, number, why));
                    continue;
                };
                if mine.contains(&number) {
                    continue;
                }
                if !taken.ports.insert(number) {
                    errors.push(FieldError::invalid(&path, number, "provided port is already allocated"));
                    continue;
                }
                mine.push(number);
                given.push(number);
            }
            None => {
                let size = u64::from(LAST_PORT - FIRST_PORT + 1);
                let start = u16::try_from(environment.below(size)).unwrap_or(0);
                let width = LAST_PORT - FIRST_PORT + 1;
                let free = (0..width)
                    .map(|step| FIRST_PORT + (start + step) % width)
                    .find(|one| !taken.ports.contains(one));
                let Some(free) = free else {
                    errors.push(FieldError::internal(&path, "failed to allocate a nodePort: range is full"));
                    continue;
                };
                taken.ports.insert(free);
                mine.push(free);
                given.push(free);
                port["nodePort"] = free.into();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_gives_all_but_its_first_and_last_address() {
        let network = Network::new("127.3.128.9/29".parse().unwrap());
        assert_eq!(network.first(), Ipv4Addr::new(127, 3, 128, 9));
        let mut given: Vec<u8> = network.candidates(4).map(|address| address.octets()[3]).collect();
        assert_eq!(given, [13, 14, 9, 10, 11, 12]);
        given.sort_unstable();
        assert!(given.iter().all(|last| network.holds(Ipv4Addr::new(127, 3, 128, *last))));
        assert!(
            !network.holds(Ipv4Addr::new(127, 3, 128, 7)) && !network.holds(Ipv4Addr::new(127, 3, 128, 16))
        );
        assert_eq!(Network::new("127.3.128.0/32".parse().unwrap()).candidates(0).count(), 2);
    }
}
