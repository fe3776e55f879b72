//! Who has which addresses and ports, since when, and whom he lets share them: read once per leadership, and kept by what is written
//! after that.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;

use super::addresses::{Neighbour, Ports, Taken};
use crate::configmap;
use crate::sharing::{Sharing, may_share};

/// What one service has.
struct Holding {
    sharing: Sharing,
    /// When its `ConfigMap` was made, in seconds: it decides between two that have no turn.
    made: i64,
    /// The ports of each address, and the service's turn there.
    places: BTreeMap<IpAddr, (Ports, u64)>,
}

/// What every service has, by the name of its `ConfigMap`.
#[derive(Default)]
pub(super) struct Ledger(BTreeMap<String, Holding>);

impl Ledger {
    /// With what `map` says of its service.
    pub(super) fn with(mut self, map: &ConfigMap) -> Self {
        let turns = configmap::turns(map);
        let turn = |address: &IpAddr| turns.get(address).copied().unwrap_or_default();
        let mut places: BTreeMap<IpAddr, (Ports, u64)> = configmap::addresses(map)
            .into_iter()
            .map(|address| (address, (Ports::new(), turn(&address))))
            .collect();
        match configmap::config(map) {
            Ok(config) => {
                for listener in config.listeners {
                    let (address, place) =
                        (listener.address.ip(), (listener.protocol, listener.address.port()));
                    places.entry(address).or_insert_with(|| (Ports::new(), turn(&address))).0.insert(place);
                }
            }
            // Its addresses are still its own; which ports it uses there is not known.
            Err(error) => {
                tracing::warn!(configmap = map.name_any(), %error, "cannot read the configuration of a load balancer");
            }
        }
        // One that has no time yet has just been made by us.
        let made = map.creation_timestamp().map_or(i64::MAX, |time| time.0.as_second());
        self.0.insert(map.name_any(), Holding { sharing: configmap::sharing(map), made, places });
        self
    }

    /// Without what the service of the `ConfigMap` called `name` had.
    pub(super) fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }

    /// What all but the service of the `ConfigMap` called `name` have, as one that lets these share its addresses sees it.
    pub(super) fn taken_beside(&self, name: &str, sharing: &Sharing) -> Taken {
        let me = self.0.get(name);
        let mut taken = Taken::new();
        for (other, holding) in self.0.iter().filter(|(other, _)| *other != name) {
            let who = configmap::service(other);
            let agrees = may_share((configmap::service(name), sharing), (who, &holding.sharing));
            for (address, (ports, turn)) in &holding.places {
                let mine = me.and_then(|me| Some((me.places.get(address)?.1, me.made, name)));
                let neighbour = Neighbour {
                    map: other.clone(),
                    who: format!("{}/{}", who.0, who.1),
                    ports: ports.clone(),
                    agrees,
                    first: mine.is_none_or(|mine| (*turn, holding.made, other.as_str()) < mine),
                };
                taken.entry(*address).or_default().push(neighbour);
            }
        }
        taken
    }

    /// The addresses of the namespace's services but that of the `ConfigMap` called `name`.
    pub(super) fn of_namespace(&self, namespace: &str, name: &str) -> BTreeSet<IpAddr> {
        let its = |other: &str| other != name && configmap::service(other).0 == namespace;
        let theirs = self.0.iter().filter(|(other, _)| its(other));
        theirs.flat_map(|(_, holding)| holding.places.keys().copied()).collect()
    }

    /// The service's turn at each of these addresses: the one that it has, or the next.
    pub(super) fn turns(&self, name: &str, addresses: &[IpAddr]) -> BTreeMap<IpAddr, u64> {
        let at = |name: &str, address: &IpAddr| Some(self.0.get(name)?.places.get(address)?.1);
        let last = |address: &IpAddr| self.0.keys().filter_map(|one| at(one, address)).max();
        let next = |address: &IpAddr| last(address).map_or(1, |last| last.saturating_add(1));
        addresses
            .iter()
            .map(|address| (*address, at(name, address).unwrap_or_else(|| next(address))))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use atoll_lb::Protocol;
    use serde_json::json;

    fn map(name: &str, addresses: &str, listeners: &[(&str, &str)], turns: &str, made: &str) -> ConfigMap {
        let listeners: Vec<_> = listeners
            .iter()
            .map(|(address, protocol)| json!({"name": "x", "address": address, "protocol": protocol}))
            .collect();
        serde_json::from_value(json!({
            "metadata": {"name": name, "creationTimestamp": made,
                "annotations": {"atoll.dev/lb-addresses": addresses, "atoll.dev/lb-turns": turns}},
            "data": {"lb.json": json!({"listeners": listeners}).to_string()},
        }))
        .unwrap()
    }

    const TODAY: &str = "2026-02-01T00:00:00Z";
    const BEFORE: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn what_is_written_and_deleted_is_known() {
        let ledger = Ledger::default()
            .with(&map("lb.shop.web", "192.0.2.1,2001:db8::1", &[("192.0.2.1:80", "TCP")], "", TODAY))
            .with(&map("lb.shop.dns", "192.0.2.1", &[("192.0.2.1:53", "UDP")], "", TODAY));
        let nobody = Sharing::default();
        let names = |taken: &Taken, address: &str| -> Vec<(String, Vec<(Protocol, u16)>)> {
            let who = taken.get(&address.parse().unwrap()).cloned().unwrap_or_default();
            who.into_iter().map(|one| (one.who, one.ports.into_iter().collect())).collect()
        };
        let web = ("shop/web".to_owned(), vec![(Protocol::Tcp, 80)]);
        let dns = ("shop/dns".to_owned(), vec![(Protocol::Udp, 53)]);
        assert_eq!(
            names(&ledger.taken_beside("lb.shop.new", &nobody), "192.0.2.1"),
            [dns.clone(), web.clone()]
        );
        assert_eq!(names(&ledger.taken_beside("lb.shop.web", &nobody), "192.0.2.1"), [dns]);
        assert_eq!(
            names(&ledger.taken_beside("lb.shop.dns", &nobody), "2001:db8::1"),
            [("shop/web".to_owned(), vec![])]
        );
        // A service that moved has only what it has now; one that is gone has nothing.
        let ledger = ledger
            .with(&map("lb.shop.web", "192.0.2.2", &[("192.0.2.2:80", "TCP")], "", TODAY))
            .without("lb.shop.dns");
        let taken = ledger.taken_beside("lb.shop.new", &nobody);
        assert_eq!(names(&taken, "192.0.2.2"), [web]);
        assert_eq!(taken.len(), 1, "{taken:?}");
    }

    #[test]
    fn who_came_first_is_known_also_of_what_an_earlier_build_gave() {
        let nobody = Sharing::default();
        let at = |turns: &str, made| map("lb.a.web", "192.0.2.1", &[], turns, made);
        for (mine, my_birth, theirs, their_birth, first) in [
            ("192.0.2.1=1", TODAY, "192.0.2.1=2", BEFORE, false),
            ("192.0.2.1=2", BEFORE, "192.0.2.1=1", TODAY, true),
            ("", TODAY, "192.0.2.1=1", BEFORE, false),
            ("", TODAY, "", BEFORE, true),
            ("", BEFORE, "", TODAY, false),
            ("192.0.2.1=x,,=", BEFORE, "", TODAY, false),
        ] {
            let other = map("lb.b.web", "192.0.2.1", &[], theirs, their_birth);
            let ledger = Ledger::default().with(&at(mine, my_birth)).with(&other);
            let here = |me: &str| ledger.taken_beside(me, &nobody)[&"192.0.2.1".parse().unwrap()][0].first;
            assert_eq!((here("lb.a.web"), here("lb.b.web")), (first, !first), "{mine:?} {theirs:?}");
            assert!(here("lb.c.web"), "whoever comes now is last");
        }
        let ledger = Ledger::default().with(&at("192.0.2.1=4", TODAY));
        let turns = |name| ledger.turns(name, &["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()]);
        assert_eq!(turns("lb.a.web").into_values().collect::<Vec<_>>(), [4, 1]);
        assert_eq!(turns("lb.b.web").into_values().collect::<Vec<_>>(), [5, 1]);
    }
}
