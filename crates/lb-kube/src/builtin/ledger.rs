//! Who has which addresses and ports: read once per leadership, and kept by what is written after that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use atoll_lb::Protocol;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::addresses::Taken;
use crate::configmap;

type Ports = BTreeSet<(Protocol, u16)>;

/// What every service has, by the name of its `ConfigMap`.
#[derive(Default)]
pub(super) struct Ledger(BTreeMap<String, BTreeMap<IpAddr, Ports>>);

impl Ledger {
    /// With what `map` says of its service.
    pub(super) fn with(mut self, map: &ConfigMap) -> Self {
        let mut ports: BTreeMap<IpAddr, Ports> =
            configmap::addresses(map).into_iter().map(|address| (address, Ports::new())).collect();
        match configmap::config(map) {
            Ok(config) => {
                for listener in config.listeners {
                    let place = (listener.protocol, listener.address.port());
                    ports.entry(listener.address.ip()).or_default().insert(place);
                }
            }
            // Its addresses are still its own; which ports it uses there is not known.
            Err(error) => {
                tracing::warn!(configmap = map.name_any(), %error, "cannot read the configuration of a load balancer");
            }
        }
        self.0.insert(map.name_any(), ports);
        self
    }

    /// Without what the service of the `ConfigMap` called `name` had.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// What all but the service of the `ConfigMap` called `name` have.
    pub(super) fn taken_beside(&self, name: &str) -> Taken {
        let mut taken = Taken::new();
        for (other, addresses) in self.0.iter().filter(|(other, _)| *other != name) {
            let who = configmap::service(other);
            for (address, ports) in addresses {
                taken.entry(*address).or_default().push((who.clone(), ports.clone()));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn map(name: &str, addresses: &str, listeners: &[(&str, &str)]) -> ConfigMap {
        let listeners: Vec<_> = listeners
            .iter()
            .map(|(address, protocol)| json!({"name": "x", "address": address, "protocol": protocol}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "annotations": {"atoll.dev/lb-addresses": addresses}},
            "data": {"lb.json": json!({"listeners": listeners}).to_string()},
        }))
        .unwrap()
    }

    #[test]
    fn what_is_written_and_deleted_is_known() {
        let ledger = Ledger::default()
            .with(&map("lb.shop.web", "192.0.2.1,2001:db8::1", &[("192.0.2.1:80", "TCP")]))
            .with(&map("lb.shop.dns", "192.0.2.1", &[("192.0.2.1:53", "UDP")]));
        let names = |taken: &Taken, address: &str| -> Vec<(String, Vec<(Protocol, u16)>)> {
            let who = taken.get(&address.parse().unwrap()).cloned().unwrap_or_default();
            who.into_iter().map(|(who, ports)| (who, ports.into_iter().collect())).collect()
        };
        let web = ("shop/web".to_owned(), vec![(Protocol::Tcp, 80)]);
        let dns = ("shop/dns".to_owned(), vec![(Protocol::Udp, 53)]);
        assert_eq!(names(&ledger.taken_beside("lb.shop.new"), "192.0.2.1"), [dns.clone(), web.clone()]);
        assert_eq!(names(&ledger.taken_beside("lb.shop.web"), "192.0.2.1"), [dns]);
        assert_eq!(
            names(&ledger.taken_beside("lb.shop.dns"), "2001:db8::1"),
            [("shop/web".to_owned(), vec![])]
        );
        // A service that moved has only what it has now; one that is gone has nothing.
        let ledger =
            ledger.with(&map("lb.shop.web", "192.0.2.2", &[("192.0.2.2:80", "TCP")])).without("lb.shop.dns");
        let taken = ledger.taken_beside("lb.shop.new");
        assert_eq!(names(&taken, "192.0.2.2"), [web]);
        assert_eq!(taken.len(), 1, "{taken:?}");
    }
}
