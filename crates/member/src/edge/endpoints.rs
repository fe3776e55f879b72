//! Ports and endpoints of slices, both ways; and strings that occur often, kept once.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

use atoll_engine::facts::{EndpointConditions, Protocol, SlicePort};
use atoll_engine::limits::{ADDRESSES_OF_ENDPOINT, ZONES_OF_ENDPOINT};
use atoll_engine::names::{AppProtocol, BadName, Hostname, NodeName, PortName, Zone};
use atoll_engine::network::Family;
use atoll_engine::plan::Endpoint;
use k8s_openapi::api::discovery::v1 as discovery;

/// Keeps one copy of each node name, zone and port name.
#[derive(Debug, Default)]
pub(crate) struct Interned(Mutex<HashSet<Arc<str>>>);

impl Interned {
    /// The shared copy of a text.
    pub(crate) fn get(&self, text: &str) -> Arc<str> {
        const MANY: usize = 4096;
        const LONGEST: usize = 253;
        if text.len() > LONGEST {
            return text.into(); // no name: it is refused, and must not stay
        }
        let Ok(mut known) = self.0.lock() else { return text.into() };
        if let Some(known) = known.get(text) {
            return Arc::clone(known);
        }
        if known.len() >= MANY {
            known.retain(|text| Arc::strong_count(text) > 1);
            if known.len() >= MANY {
                return text.into();
            }
        }
        let text: Arc<str> = text.into();
        known.insert(Arc::clone(&text));
        text
    }
}

/// `TCP` and the like.
pub(crate) fn protocol(text: Option<&str>) -> Result<Protocol, BadName> {
    Protocol::parse(text).ok_or_else(|| BadName::new("protocol", text.unwrap_or_default()))
}

/// `IPv4` and the like.
pub(crate) fn family(text: &str) -> Option<Family> {
    Family::BOTH.into_iter().find(|family| family.as_str() == text)
}

/// A number that is a port.
pub(crate) fn port_number(number: i32) -> Result<u16, BadName> {
    u16::try_from(number)
        .ok()
        .filter(|number| *number > 0)
        .ok_or_else(|| BadName { kind: "port", text: number.to_string() })
}

/// What is spoken at a port.
pub(crate) fn app_protocol(text: Option<&str>) -> Result<Option<AppProtocol>, BadName> {
    text.filter(|text| !text.is_empty()).map(AppProtocol::parse).transpose()
}

/// A port of a slice.
pub(crate) fn read_port(port: &discovery::EndpointPort, interned: &Interned) -> Result<SlicePort, BadName> {
    Ok(SlicePort {
        name: PortName::parse(interned.get(port.name.as_deref().unwrap_or_default()))?,
        protocol: protocol(port.protocol.as_deref())?,
        port: port.port.map(port_number).transpose()?,
        app_protocol: app_protocol(port.app_protocol.as_deref())?,
    })
}

/// Reads an endpoint; a name that does not parse is an error.
pub(crate) fn read(endpoint: &discovery::Endpoint, interned: &Interned) -> Result<Endpoint, BadName> {
    let address = |text: &String| text.parse::<IpAddr>().map_err(|_| BadName::new("IP address", text));
    let conditions = endpoint.conditions.as_ref().map_or_else(EndpointConditions::default, |conditions| {
        EndpointConditions {
            ready: conditions.ready,
            serving: conditions.serving,
            terminating: conditions.terminating,
        }
    });
    let hints = endpoint.hints.as_ref();
    let zones = hints.and_then(|hints| hints.for_zones.as_deref()).unwrap_or_default();
    let nodes = hints.and_then(|hints| hints.for_nodes.as_deref()).unwrap_or_default();
    Ok(Endpoint {
        addresses: endpoint
            .addresses
            .iter()
            .take(ADDRESSES_OF_ENDPOINT)
            .map(address)
            .collect::<Result<_, _>>()?,
        conditions,
        hostname: endpoint.hostname.as_deref().map(Hostname::parse).transpose()?,
        node: endpoint.node_name.as_deref().map(|name| NodeName::parse(interned.get(name))).transpose()?,
        zone: endpoint.zone.as_deref().map(|zone| Zone::parse(interned.get(zone))).transpose()?,
        for_zones: zones
            .iter()
            .take(ZONES_OF_ENDPOINT)
            .map(|zone| Zone::parse(interned.get(&zone.name)))
            .collect::<Result<_, _>>()?,
        for_nodes: nodes
            .iter()
            .map(|node| NodeName::parse(interned.get(&node.name)))
            .collect::<Result<_, _>>()?,
    })
}

/// An endpoint to be held.
pub(crate) fn write(endpoint: &Endpoint) -> discovery::Endpoint {
    let EndpointConditions { ready, serving, terminating } = endpoint.conditions;
    let zones: Vec<_> =
        endpoint.for_zones.iter().map(|zone| discovery::ForZone { name: zone.to_string() }).collect();
    let nodes: Vec<_> =
        endpoint.for_nodes.iter().map(|node| discovery::ForNode { name: node.to_string() }).collect();
    let hints = (!zones.is_empty() || !nodes.is_empty()).then(|| discovery::EndpointHints {
        for_zones: Some(zones).filter(|zones| !zones.is_empty()),
        for_nodes: Some(nodes).filter(|nodes| !nodes.is_empty()),
    });
    discovery::Endpoint {
        addresses: endpoint.addresses.iter().map(ToString::to_string).collect(),
        conditions: Some(discovery::EndpointConditions { ready, serving, terminating }),
        hostname: endpoint.hostname.as_ref().map(ToString::to_string),
        node_name: endpoint.node.as_ref().map(ToString::to_string),
        zone: endpoint.zone.as_ref().map(ToString::to_string),
        hints,
        ..discovery::Endpoint::default()
    }
}

/// A port to be held.
pub(crate) fn write_port(port: &SlicePort) -> discovery::EndpointPort {
    discovery::EndpointPort {
        name: Some(port.name.to_string()),
        protocol: Some(port.protocol.as_str().to_owned()),
        port: port.port.map(i32::from),
        app_protocol: port.app_protocol.as_ref().map(ToString::to_string),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(endpoint: serde_json::Value) -> Result<Endpoint, BadName> {
        read(&serde_json::from_value(endpoint).unwrap(), &Interned::default())
    }

    #[test]
    fn an_endpoint_says_no_more_than_kubernetes_lets_it() {
        let zones: Vec<_> = (0..5000).map(|n| json!({"name": format!("zone-{n}")})).collect();
        let addresses: Vec<_> = (0..5000).map(|n| format!("10.1.{}.{}", n / 250, n % 250)).collect();
        let read = read_json(json!({"addresses": addresses, "hints": {"forZones": zones}})).unwrap();
        assert_eq!((read.addresses.len(), read.for_zones.len()), (ADDRESSES_OF_ENDPOINT, ZONES_OF_ENDPOINT));
    }

    #[test]
    fn a_hostname_cannot_take_a_name_in_another_clusters_zone() {
        for lie in ["web-0.paris", "web-0.paris.web", "*", "a/b", "WEB", &"x".repeat(64)] {
            let read = read_json(json!({"addresses": ["10.1.0.1"], "hostname": lie}));
            assert!(read.is_err(), "{lie}");
        }
        assert!(read_json(json!({"addresses": ["10.1.0.1"], "hostname": "web-0"})).is_ok());
    }

    #[test]
    fn a_megabyte_in_the_place_of_a_name_is_not_repeated_in_messages() {
        let why = read_json(json!({"addresses": ["10.1.0.1"], "zone": "z".repeat(1_000_000)})).unwrap_err();
        assert!(why.to_string().len() < 400, "{}", why.to_string().len());
        let why = read_json(json!({"addresses": ["9".repeat(1_000_000)]})).unwrap_err();
        assert!(why.to_string().len() < 400, "{}", why.to_string().len());
    }

    #[test]
    fn no_port_has_the_number_zero() {
        for (number, good) in [(-1, false), (0, false), (1, true), (65_535, true), (65_536, false)] {
            assert_eq!(port_number(number).is_ok(), good, "{number}");
        }
    }
}
